"""Sources: where pages come from and outcomes go to."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Protocol

from recrawl.client import AsyncClient, Outcome
from recrawl.contrib.scrapy.options import Options
from recrawl.contrib.scrapy.process import ProcessSource
from recrawl.desk import Picked, Report
from recrawl.errors import ServiceError
from recrawl.logs import event_line

log = logging.getLogger(__name__)
_SOON, _LATE = 0.0, 60.0  # seconds for which a service that does not answer is asked again: before it is said, after
WAIT = 5.0  # seconds that a pick waits for work at a service; a spider that closes waits for the call


class Source(Protocol):
    """Gives pages with leases and takes in what came of them; see `recrawl.desk` for the words."""

    @property
    def n_pages(self) -> int | None:
        """Pages when it was opened; None: not known."""

    async def pick(self, n: int, lease: float) -> list[Picked]:
        """At most n pages; waits for work, not for long."""

    async def record(self, reports: Sequence[Report]) -> list[str]:
        """Take in outcomes; one word each."""

    async def release(self, leases: Sequence[str]) -> list[str]:
        """Give leases back; one word each."""

    async def add(self, urls: Sequence[str]) -> int:
        """Add pages; how many are new."""

    async def holds(self, lease: str) -> bool:
        """Whether a lease of an earlier run may still be used."""

    async def close(self) -> None:
        """Write everything and end."""


class ServiceSource:
    """The desk of ``recrawl serve``, over HTTP."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    @classmethod
    async def open(cls, url: str, token: str) -> ServiceSource:
        """Ask the service once, so that a wrong address or token is known before a page is wanted."""
        for patience in (_SOON, _LATE):
            client = AsyncClient(url, token, patience=patience)
            try:
                await client.release([])
            except ServiceError as problem:
                await client.close()
                if problem.status or patience == _LATE:
                    raise
                reason = f"{problem}; is recrawl serve running?"
                event_line(log, logging.WARNING, "scrapy.waiting", reason=reason, seconds=_LATE)
            else:
                break
        return cls(client)

    @property
    def n_pages(self) -> None:
        """The service is not asked."""

    async def pick(self, n: int, lease: float) -> list[Picked]:
        """At most n pages; the service lets the call wait for work."""
        found = await self._client.pick(n, lease=lease, wait=WAIT)
        return [Picked(page.lease, page.url, page.until, page.etag, page.last_modified) for page in found]

    async def record(self, reports: Sequence[Report]) -> list[str]:
        """Take in outcomes."""
        return await self._client.record([Outcome(**report._asdict()) for report in reports])

    async def release(self, leases: Sequence[str]) -> list[str]:
        """Give leases back."""
        return await self._client.release(leases)

    async def add(self, urls: Sequence[str]) -> int:
        """Add pages."""
        return await self._client.add(urls)

    async def holds(self, lease: str) -> bool:
        """A lease that has not ended by its own time may be used; the service takes an outcome once."""
        return True

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


async def open_source(options: Options) -> Source:
    """The source that the options name."""
    if options.url:
        return await ServiceSource.open(options.url, options.token)
    if options.process and os.name == "posix":
        return await ProcessSource.open(options.crawl_settings())
    from recrawl._compile import compiling
    from recrawl.contrib.scrapy.database import DatabaseSource
    from recrawl.desk.rehearsal import rehearse

    compiling.say_by(lambda progress: log.info("recrawl: %s", progress))
    compiling.announce()
    await rehearse()
    return await DatabaseSource.open(options.crawl_settings())
