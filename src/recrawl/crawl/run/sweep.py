"""Sweep: one pass over all pages, the pages of each host in the order of their value."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection

import numpy as np

from recrawl.crawl.run.loop import CrawlLoop
from recrawl.engine import Engine
from recrawl.engine.names.addresses import host_of

Pair = tuple[int, str]


async def sweep(loop: CrawlLoop, until: float, done: Collection[str] = ()) -> None:
    """Crawl every page once but those ``done`` already, or until a time comes or the loop is stopped."""
    components = loop.components
    loop.starter.picking = False  # the loop does not wake for pages that could be picked
    concurrency = components.options.concurrency
    queues, slots = hosts_in_order(components.engine, components.clock.now(), done), asyncio.Semaphore(concurrency)
    most = components.engine.settings.host_concurrency or concurrency
    shares = [pages for pages in queues for _ in range(min(most, len(pages)))]
    workers = [asyncio.create_task(_crawl_all(loop, pages, slots)) for pages in shares]
    for worker in workers:
        components.pool.watch(worker)
    try:
        while not all(worker.done() for worker in workers):
            now = loop.settle()
            if loop.stopped or now >= until:
                return
            await loop.cover(now)
            components.budget.ready(now)
            loop.books.save_if_due(now)
            await loop.rest(now, until, False)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _crawl_all(loop: CrawlLoop, pages: deque[Pair], slots: asyncio.Semaphore) -> None:
    """Crawl the pages of one host, one after the other."""
    components, starter = loop.components, loop.starter
    while pages:
        page, url = pages.popleft()
        crawled = False
        while not crawled:
            if not await starter.allowed(page, url, components.clock.now()):
                break
            await components.limiter.reserved(url)
            async with slots:
                await components.budget.further()
                copies = asyncio.create_task(components.recorder.copies([url]))
                crawled = await asyncio.shield(starter.attempts.begin(page, url, copies))


def hosts_in_order(engine: Engine, now: float, done: Collection[str] = ()) -> list[deque[Pair]]:
    """Per host its pages with their URLs, most valuable first, without those that are done or that the user paused."""
    ids = engine.ids()
    ids = np.setdiff1d(ids[~engine.is_paused(ids)], engine.addresses.known(list(done)) if done else ())
    if not len(ids):
        return []
    order = ids[np.argsort(-engine.scheduler.value(ids, now), kind="stable")].tolist()
    queues: dict[str, deque[Pair]] = {}
    for page, url in zip(order, engine.url(order), strict=True):
        queues.setdefault(host_of(url), deque()).append((page, url))
    return list(queues.values())
