"""The service of a cluster: the same routes and dashboard, in a process beside the workers."""

from __future__ import annotations

from collections.abc import Callable
from socket import socket

from recrawl.cluster.tables import Cluster
from recrawl.crawl.config.settings import Settings
from recrawl.serve.api.figures import Figures
from recrawl.serve.api.service import Service
from recrawl.serve.app import Context
from recrawl.serve.cluster_metrics import ClusterCollector
from recrawl.serve.crawls.shard_desk import ShardDesk
from recrawl.serve.crawls.shard_events import ShardEvents
from recrawl.serve.crawls.shard_inbox import ShardInbox
from recrawl.serve.crawls.shards import ClusterCrawl
from recrawl.serve.dashboard.board import Dashboard
from recrawl.serve.running import run_service
from recrawl.serve.server import HttpServer, started


async def start_cluster_server(crawl: ClusterCrawl, listen: str | socket) -> tuple[Service, HttpServer]:
    """A service of a cluster that was looked at, and its server, which accepts connections."""
    service = Service(crawl, ShardDesk(crawl), Figures(crawl.questions), ShardEvents(crawl.reader))
    context = Context(
        crawl,
        ShardInbox(crawl),
        crawl.tokens,
        crawl.settings.public_url,
        dashboard=Dashboard(crawl),
        service=service,
        metrics=ClusterCollector(crawl),
        why_not_ready=crawl.why_not_ready,
    )
    return service, await started(context, listen)


async def serve_cluster(
    cluster: Cluster, settings: Settings, *, on_started: Callable[[HttpServer], None] | None = None
) -> None:
    """Serve a cluster until SIGTERM or SIGINT."""
    crawl = ClusterCrawl(cluster, settings)
    try:
        await crawl.look()
        service, server = await start_cluster_server(crawl, settings.listen.strip())
        await run_service(service, server, crawl=False, on_started=on_started)
    finally:
        await crawl.close()
