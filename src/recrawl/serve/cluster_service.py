"""The service of a cluster: the same routes and dashboard, in a process beside the workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
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
from recrawl.serve.crawls.shard_receivers import ShardPings
from recrawl.serve.crawls.shards import ClusterCrawl
from recrawl.serve.dashboard.board import Dashboard
from recrawl.serve.receive.indexnow import indexnow_routes
from recrawl.serve.receive.shard_websub import shard_websub_routes
from recrawl.serve.running import run_service
from recrawl.serve.server import HttpServer, started


async def start_cluster_server(
    crawl: ClusterCrawl, listen: str | socket, *, receives: bool = False
) -> tuple[Service, HttpServer]:
    """A service of a cluster that was looked at, and its server, which accepts connections.

    With ``receives``, pings of IndexNow and deliveries of hubs are taken too.
    """
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
        routers=[indexnow_routes(ShardPings(crawl)), shard_websub_routes(crawl)] if receives else (),
    )
    return service, await started(context, listen)


@asynccontextmanager
async def beside_worker(cluster: Cluster, settings: Settings) -> AsyncIterator[HttpServer]:
    """The service in the process of a worker, with all that it receives."""
    crawl = ClusterCrawl(cluster, settings)
    try:
        await crawl.look()
        service, server = await start_cluster_server(crawl, settings.listen.strip(), receives=True)
        looking = asyncio.create_task(crawl.run())
        try:
            yield server
        finally:
            await server.close()
            crawl.stop()
            await looking
            await service.close()
    finally:
        await crawl.close()


async def serve_cluster(
    cluster: Cluster, settings: Settings, *, on_started: Callable[[HttpServer], None] | None = None
) -> None:
    """Serve a cluster until SIGTERM or SIGINT."""
    crawl = ClusterCrawl(cluster, settings)
    try:
        await crawl.look()
        service, server = await start_cluster_server(crawl, settings.listen.strip(), receives=True)
        await run_service(service, server, crawl=False, on_started=on_started)
    finally:
        await crawl.close()
