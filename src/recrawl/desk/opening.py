"""Opening of a desk: the crawl of a database, and what others may ask of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.assemble import LiveCrawl, open_crawl
from recrawl.desk.desk import Desk
from recrawl.desk.no_web import no_web

Opening = Callable[..., Awaitable[LiveCrawl]]


async def open_desk(settings: Settings, crawl: Opening | None = None, **options: Any) -> tuple[LiveCrawl, Desk]:
    """The crawl of a database, with or without pages, and its desk; ``options`` as for `open_crawl`.

    ``crawl`` opens a crawl that fetches pages itself, such as `open_crawl`; by default nothing is fetched. The loop of
    the crawl must run while the desk is used: ``live.crawler.run(crawl=False)`` runs it without crawling.
    """
    if crawl is None:
        options.setdefault("web", no_web())
    live = await (crawl or open_crawl)(settings, may_be_empty=True, **options)
    try:
        desk = Desk(live.crawler)
        await desk.load()
    except BaseException:
        await live.close()
        raise
    return live, desk
