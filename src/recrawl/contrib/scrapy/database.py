"""DatabaseSource: the desk of a database, opened in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.assemble import LiveCrawl
from recrawl.crawl.run.progress import Counters
from recrawl.desk import Desk, NewPage, Picked, Report, open_desk

WAIT = 1.0  # seconds that one pick waits for work; what happens meanwhile wakes it


class DatabaseSource:
    """A desk on a database that this process has to itself, in the running event loop."""

    def __init__(self, live: LiveCrawl, desk: Desk, running: asyncio.Task[Counters]) -> None:
        self._live, self._desk, self._running = live, desk, running

    @classmethod
    async def open(cls, settings: Settings) -> DatabaseSource:
        """Open the database, which is made if there is none."""
        live, desk = await open_desk(settings)
        return cls(live, desk, asyncio.create_task(live.crawler.run(crawl=False)))

    @property
    def n_pages(self) -> int:
        """Pages in the database."""
        return len(self._live.crawler.engine)

    async def pick(self, n: int, lease: float) -> list[Picked]:
        """At most n pages. Raises what ended the loop of the crawl, if that has ended."""
        if self._running.done():
            self._running.result()
        return await self._desk.pick(n, lease=lease, wait=WAIT)

    async def record(self, reports: Sequence[Report]) -> list[str]:
        """Take in outcomes."""
        return await self._desk.record(reports)

    async def release(self, leases: Sequence[str]) -> list[str]:
        """Give leases back."""
        return await self._desk.release(leases)

    async def add(self, urls: Sequence[str]) -> int:
        """Add pages."""
        return await self._desk.add([NewPage(url) for url in urls])

    async def holds(self, lease: str) -> bool:
        """Whether a lease is held; what an earlier run has recorded or lost is not."""
        return self._desk.holds(lease)

    async def close(self) -> None:
        """Write everything, end the loop of the crawl and close the database."""
        try:
            await self._desk.close()
            self._live.crawler.stop()
            await self._running
        finally:
            await self._live.close()
