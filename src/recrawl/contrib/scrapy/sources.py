"""Sources: where pages come from and outcomes go to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Protocol

from recrawl.client import AsyncClient, Outcome
from recrawl.contrib.scrapy.options import Options
from recrawl.crawl.run.opening.assemble import LiveCrawl
from recrawl.crawl.run.progress import Counters
from recrawl.desk import Desk, NewPage, Picked, Report, open_desk

WAIT = 1.0  # seconds that one pick waits for work; what happens meanwhile wakes it
SERVICE_WAIT = 5.0  # the same for a service: a spider that closes waits for the call


class Source(Protocol):
    """Gives pages with leases and takes in what came of them; see `recrawl.desk` for the words."""

    async def pick(self, n: int, lease: float) -> list[Picked]:
        """At most n pages; waits for work, not for long."""

    async def record(self, reports: Sequence[Report]) -> list[str]:
        """Take in outcomes; one word each."""

    async def release(self, leases: Sequence[str]) -> list[str]:
        """Give leases back; one word each."""

    async def add(self, urls: Sequence[str]) -> int:
        """Add pages; how many are new."""

    def holds(self, lease: str) -> bool:
        """Whether a lease of an earlier run may still be used."""

    async def close(self) -> None:
        """Write everything and end."""


class DatabaseSource:
    """A desk on a database that this process has to itself, in Scrapy's event loop."""

    def __init__(self, live: LiveCrawl, desk: Desk, running: asyncio.Task[Counters]) -> None:
        self._live, self._desk, self._running = live, desk, running

    @classmethod
    async def open(cls, options: Options) -> DatabaseSource:
        """Open the database, which is made if there is none."""
        live, desk = await open_desk(options.crawl_settings())
        return cls(live, desk, asyncio.create_task(live.crawler.run(crawl=False)))

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

    def holds(self, lease: str) -> bool:
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


class ServiceSource:
    """The desk of ``recrawl serve``, over HTTP."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def pick(self, n: int, lease: float) -> list[Picked]:
        """At most n pages; the service lets the call wait for work."""
        found = await self._client.pick(n, lease=lease, wait=SERVICE_WAIT)
        return [Picked(page.lease, page.url, page.until, page.etag, page.last_modified) for page in found]

    async def record(self, reports: Sequence[Report]) -> list[str]:
        """Take in outcomes."""
        return await self._client.record([Outcome(**asdict(report)) for report in reports])

    async def release(self, leases: Sequence[str]) -> list[str]:
        """Give leases back."""
        return await self._client.release(leases)

    async def add(self, urls: Sequence[str]) -> int:
        """Add pages."""
        return await self._client.add(urls)

    def holds(self, lease: str) -> bool:
        """A lease that has not ended by its own time may be used; the service takes an outcome once."""
        return True

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


async def open_source(options: Options) -> Source:
    """The source that the options name."""
    if options.url:
        return ServiceSource(AsyncClient(options.url, options.token))
    return await DatabaseSource.open(options)
