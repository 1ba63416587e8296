"""Once: one pass over all pages, each host's in the order of their value."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from recrawl.engine import Engine
from recrawl.engine.addresses import host_of

if TYPE_CHECKING:
    from recrawl.crawl.run.crawler import Crawler


async def every_page_once(crawler: Crawler, until: float) -> None:
    """Crawl every page one time, or until a time comes or the crawler is stopped."""
    queues, places = hosts_in_order(crawler.engine, crawler.now()), asyncio.Semaphore(crawler.concurrency)
    most = crawler.engine.settings.host_concurrency or crawler.concurrency
    walks = [
        asyncio.create_task(_walk(crawler, pages, places)) for pages in queues for _ in range(min(most, len(pages)))
    ]
    for walk in walks:
        crawler._tending.watch(walk)
    try:
        while not all(walk.done() for walk in walks):
            now = crawler.now()
            crawler._recorder.settle(now)
            crawler._check()
            if crawler.stopped or now >= until:
                return
            await crawler._cover(now)
            crawler.pace.ready(now)
            crawler._save_if_due(now)
            await crawler._rest(now, until, False)
    finally:
        for walk in walks:
            walk.cancel()
        await asyncio.gather(*walks, return_exceptions=True)


async def _walk(crawler: Crawler, pages: deque[tuple[int, str]], places: asyncio.Semaphore) -> None:
    while pages:
        page, url = pages.popleft()
        visited = False
        while not visited:
            async with places:
                await crawler._further()
                if not crawler._may(page, url, crawler.now()):
                    break
                copy = crawler._recorder.copies([url]).get(url)
                visited = await asyncio.shield(crawler._spawn(page, url, copy))


def hosts_in_order(engine: Engine, now: float) -> list[deque[tuple[int, str]]]:
    """Per host its pages with their URLs, most valuable first; pages that the user paused are left out."""
    ids = engine.ids()
    ids = ids[~engine.is_paused(ids)]
    if not len(ids):
        return []
    order = ids[np.argsort(-engine.scheduler.value(ids, now), kind="stable")].tolist()
    queues: dict[str, deque[tuple[int, str]]] = {}
    for page, url in zip(order, engine.url(order), strict=True):
        queues.setdefault(host_of(url), deque()).append((page, url))
    return list(queues.values())
