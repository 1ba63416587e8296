"""Opening of a crawl or a worker by its settings: with a browser where rules let pages be rendered."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from recrawl.cli.shared.options.extras import need

if TYPE_CHECKING:
    from recrawl.cluster.tables import Cluster
    from recrawl.cluster.worker import ShardWorker
    from recrawl.crawl.config.settings import Settings
    from recrawl.crawl.run.opening.assemble import LiveCrawl


async def opened(settings: Settings, **options: Any) -> LiveCrawl:
    """The crawl of a database, with options of `open_crawl`; ParameterError if a browser is needed and missing."""
    if _renders(settings):
        need("browser")
        from recrawl.contrib.browser.assemble import open_rendered

        return await open_rendered(settings, **options)
    from recrawl.crawl.run.opening.assemble import open_crawl

    return await open_crawl(settings, **options)


def worker_of(cluster: Cluster, settings: Settings, **options: Any) -> ShardWorker:
    """A worker of a cluster, with options of `ShardWorker`; ParameterError if a browser is needed and missing."""
    from recrawl.cluster.worker import ShardWorker

    if _renders(settings):
        need("browser")
        from recrawl.contrib.browser.assemble import rendered_web

        options["web"] = partial(rendered_web, settings)
    return ShardWorker(cluster, settings, **options)


def _renders(settings: Settings) -> bool:
    return any(rule.render for rule in settings.rules().rules)
