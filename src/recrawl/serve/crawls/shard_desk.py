"""The desk of a cluster: pages are listed, added, changed and removed; its workers crawl them themselves."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Collection, Sequence
from typing import NoReturn

from recrawl.cluster.reading import ShardReader
from recrawl.crawl.run.commands import add_command, remove_command
from recrawl.desk import NewPage, PageChange, PageFacts, Picked, Report
from recrawl.desk.pages import MOST_LISTED, canonical_pages, canonical_urls, facts_of, update_commands
from recrawl.errors import ParameterError, RowError
from recrawl.serve.crawls.shards import ClusterCrawl
from recrawl.serve.problems import ProblemError


class ShardDesk:
    """See `PageDesk`. Changes are queued for the workers that have the shards; they take them within seconds."""

    def __init__(self, crawl: ClusterCrawl) -> None:
        self._crawl, self._reader = crawl, crawl.reader

    async def pick(
        self, n: int, *, lease: float = 300.0, hosts: Collection[str] | None = None, wait: float = 0.0
    ) -> list[Picked]:
        """Refused."""
        _refuse()

    async def record(self, reports: Sequence[Report]) -> list[str]:
        """Refused."""
        _refuse()

    async def release(self, leases: Sequence[str]) -> list[str]:
        """Refused."""
        _refuse()

    async def requested(self, urls: Sequence[str]) -> tuple[int, int]:
        """Refused."""
        raise ProblemError(409, "a cluster does not count requests of readers")

    async def listed(self, cursor: str | None, n: int) -> tuple[list[PageFacts], str | None]:
        """See `PageDesk`: shard after shard, in each in the order in which pages were added."""
        if not 1 <= n <= MOST_LISTED:
            raise ParameterError(f"n is {n}: must lie between 1 and {MOST_LISTED}")
        shard, last = (0, 0) if cursor is None else _place(cursor, self._reader)
        found: list[PageFacts] = []
        while shard < self._reader.cluster.shards:
            part = await self._reader.pages_after(shard, last, n - len(found))
            if part:
                engine = await self._crawl.engine_of(shard, [url for _, url in part])
                found += await asyncio.to_thread(facts_of, engine, engine.ids(), self._crawl.clock.now())
                last = part[-1][0]
            if len(found) >= n:
                return found, _cursor(shard, last)
            shard, last = shard + 1, 0
        return found, None

    async def add(self, pages: Sequence[NewPage]) -> int:
        """See `PageDesk`."""
        urls = canonical_pages(pages)
        weights = {url: page.importance for url, page in zip(urls, pages, strict=True)}
        there = await self._reader.to_be(list(weights))
        new = [url for url in weights if url not in there]
        if new:
            await self._crawl.apply([add_command(new, [weights[url] for url in new])])
        return len(new)

    async def update(self, changes: Sequence[PageChange]) -> int:
        """See `PageDesk`."""
        urls, commands = update_commands(changes)
        there = await self._reader.to_be(urls)
        for row, url in enumerate(urls):
            if url not in there:
                raise RowError(row, "url", f"{url} is not among the pages")
        await self._crawl.apply(commands)
        return len(set(urls))

    async def remove(self, urls: Sequence[str]) -> int:
        """See `PageDesk`."""
        names = list(dict.fromkeys(canonical_urls(urls)))
        n = len(await self._reader.to_be(names))
        if names:
            await self._crawl.apply([remove_command(names)])
        return n

    async def close(self) -> None:
        """See `PageDesk`: nothing waits."""


def _refuse() -> NoReturn:
    raise ProblemError(409, "the workers of a cluster crawl its pages themselves: nothing is given to other crawlers")


def _cursor(shard: int, page: int) -> str:
    return base64.urlsafe_b64encode(f"{shard} {page}".encode()).decode()


def _place(cursor: str, reader: ShardReader) -> tuple[int, int]:
    """The shard and the page of a cursor."""
    try:
        shard, page = map(int, base64.urlsafe_b64decode(cursor.encode()).decode().split(" "))
        if not (0 <= shard < reader.cluster.shards and 0 <= page < 1 << 62):
            raise ValueError
    except (ValueError, binascii.Error):
        raise ParameterError("cursor: is not one that a list of pages gave") from None
    return shard, page
