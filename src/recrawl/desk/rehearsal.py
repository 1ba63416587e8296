"""Rehearsal: the calls of a desk once, in memory, so that the kernels that they need are loaded or compiled."""

from __future__ import annotations

import asyncio

from recrawl._system.threads import in_thread
from recrawl.crawl.config.settings import Settings
from recrawl.desk.opening import open_desk
from recrawl.desk.pages import NewPage
from recrawl.desk.reports import Report
from recrawl.logs import silent
from recrawl.store import MemoryStore

_URLS = [f"https://{host}.example/{k}" for host in "ab" for k in range(3)]


async def rehearse() -> None:
    """Load or compile the kernels of a desk in a thread, so that the event loop goes on meanwhile.

    The thread does not keep the program from ending.
    """

    def run() -> None:
        with silent():
            asyncio.run(_use())

    await in_thread(run, "recrawl-rehearsal")


async def _use() -> None:
    """Add pages, pick them, and record two rounds of outcomes: the second has changes."""
    settings = Settings(budget="1000/s", listings=False, keep=0, delay="0 s", host_concurrency=len(_URLS))
    live, desk = await open_desk(settings, store=MemoryStore())
    running = asyncio.create_task(live.crawler.run(crawl=False))
    try:
        await desk.add([NewPage(url) for url in _URLS])
        for text in (b"<p>one</p>", b"<p>two</p>"):
            picked = await desk.pick(len(_URLS), lease=60.0, wait=0.1)
            await desk.record([Report(one.lease, 200, body=text) for one in picked])
        live.crawler.engine.explain(0, live.clock.now())
        await desk.close()
        live.crawler.stop()
        await running
    finally:
        running.cancel()
        await live.close()
