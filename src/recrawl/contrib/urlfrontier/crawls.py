"""Crawls: puts and serves of strict and managed crawls together, and what is deleted."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from recrawl.contrib.urlfrontier.api.wire import FAIL, SKIPPED
from recrawl.contrib.urlfrontier.batches import Discovered
from recrawl.contrib.urlfrontier.frontier import Ask, Frontier, Served
from recrawl.contrib.urlfrontier.items import Put
from recrawl.contrib.urlfrontier.managed.managed import Managed
from recrawl.contrib.urlfrontier.queue_file import SOME, Row
from recrawl.contrib.urlfrontier.queues import Queue
from recrawl.errors import StoreError

Take = Callable[[Sequence[int]], Any]
Takers = tuple[Callable[[Any], list[int]], Callable[[Any], Awaitable[list[int]]] | None]  # strict, managed
_NONE = -1  # the kind of what is in no crawl
_LULL = 0.01  # seconds without a deletion, after which URLs of deleted queues are deleted


class Search(NamedTuple):
    """Which URLs are wanted: those that contain a text."""

    text: str = ""
    ignore_case: bool = False

    def finds(self, row: Row) -> bool:
        """Whether a URL contains it."""
        if self.ignore_case:
            return self.text.lower() in row.url.lower()
        return self.text in row.url


class Crawls:
    """All crawls; ``managed`` is None if the engine decides for none of them."""

    def __init__(self, frontier: Frontier, managed: Managed | None = None) -> None:
        self.frontier, self._managed = frontier, managed
        self._turn = 0  # whose turn it is to be asked first, if a client takes URLs of any crawl
        self._sweeping: asyncio.Task[None] | None = None
        self._deleting: asyncio.Task[dict[Queue, int]] | None = None
        self._condemned: list[Queue] = []
        self._closing = False

    async def open(self) -> None:
        """Take up what an earlier run left."""
        if self._managed is not None:
            await self._managed.take_up()
            await self._managed.adopt()
        self._sweep()

    async def close(self) -> None:
        """End what goes on beside the calls; the next run goes on with it."""
        self._closing = True
        if self._managed is not None:
            await self._managed.close()
        await self.swept()

    async def swept(self) -> None:
        """Wait until deleted URLs are out of the file."""
        if self._sweeping is not None:
            with suppress(sqlite3.Error, StoreError):  # the next deletion, or the next run, goes on with it
                await self._sweeping

    async def put(self, puts: Sequence[Put | None]) -> list[int]:
        """Take in URLs; a state for each. None, and what is no page of a managed crawl, is skipped."""
        managed = None if self._managed is None else self._managed.put
        by_engine = {name for name in {put.crawl for put in puts if put} if self.frontier.is_managed(name)}
        kinds = [_NONE if put is None else put.crawl in by_engine for put in puts]
        return await self._divide(kinds, puts, lambda rows: [puts[row] for row in rows], (self.frontier.put, managed))

    async def arrive(self, found: Discovered) -> list[int]:
        """Take in discovered URLs, which become rows and pages later; a state for each."""
        managed = None if self._managed is None else self._managed.arrive
        kinds = [*map(self.frontier.is_managed, found.crawls), _NONE]  # the last is that of -1
        if len(found.crawls) > 1 or found.crawls == [""]:
            kinds = [kinds[number] for number in found.crawl.tolist()]
        else:
            kinds = kinds[:1] * len(found)
        return await self._divide(kinds, found, found.take, (self.frontier.arrive, managed))

    async def _divide(self, kinds: Sequence[int], given: Any, take: Take, takers: Takers) -> list[int]:
        """Give the URLs of strict crawls (0) and of managed ones (1) to whom they concern; others are skipped."""
        if len(set(kinds)) == 1 and kinds[0] != _NONE:
            return await self._written(given, takers, by_engine=bool(kinds[0]))
        states = [SKIPPED] * len(kinds)
        for managed in (False, True):
            rows = [row for row, kind in enumerate(kinds) if kind == managed]
            found = await self._written(take(rows), takers, by_engine=managed) if rows else []
            for row, state in zip(rows, found, strict=True):
                states[row] = state
        return states

    async def _written(self, given: Any, takers: Takers, *, by_engine: bool) -> list[int]:
        """The states of URLs of one kind of crawls; FAIL where nothing can be written."""
        strict, managed = takers
        try:
            return await managed(given) if by_engine and managed is not None else strict(given)
        except (sqlite3.Error, StoreError):
            return [FAIL] * len(given)

    async def find(self, queue: Queue, url: str) -> Row | None:
        """A URL of a queue."""
        row = self.frontier.file.find(queue.id, url)
        if row is None and self._waits(queue):
            await self._open(queue)
            row = self.frontier.file.find(queue.id, url)
        return row

    def _waits(self, queue: Queue) -> bool:
        """Whether URLs of a queue may be no rows yet."""
        return bool(queue.arrived) or (
            queue.crawl.managed and self._managed is not None and self._managed.n_waiting > 0
        )

    async def _open(self, queue: Queue) -> None:
        """Make rows of all URLs of a queue."""
        if queue.crawl.managed and self._managed is not None:
            await self._managed.settle()
        while queue.arrived:
            self.frontier.arrivals.open(queue)
            await asyncio.sleep(0)

    async def take(self, crawl: str | None, ask: Ask) -> list[Served]:
        """Hand out URLs of a crawl; None: of any."""
        frontier = self.frontier
        if not frontier.active or (crawl is None and ask.key):
            return []
        if crawl is not None:
            known = frontier.crawls.get(crawl)
            if known is None:
                return []
            if known.managed:
                return [] if self._managed is None else await self._managed.take(crawl, ask)
            return frontier.take(known, ask)
        strict = [one for one in frontier.crawls.values() if not one.managed]
        sources = [*strict, *([None] if self._managed is not None else [])]
        self._turn += 1
        found: list[Served] = []
        for place in range(len(sources)):
            left = ask.queues - len({one.queue for one in found})
            if left <= 0:
                break
            rest, source = ask._replace(queues=left), sources[(self._turn + place) % len(sources)]
            if source is not None:
                found += frontier.take(source, rest)
            elif self._managed is not None:
                found += await self._managed.take(None, rest)
        return found

    async def rows(self, queues: Sequence[Queue], search: Search, skip: int = 0) -> AsyncIterator[tuple[Queue, Row]]:
        """The URLs of queues that are searched for, without the first ``skip``."""
        for queue in queues:
            if not search.text and queue.active + queue.completed <= skip:
                skip -= queue.active + queue.completed
                continue
            await self._open(queue)
            after = ""
            while rows := self.frontier.file.listed(queue.id, after):
                after = rows[-1].url
                for row in filter(search.finds, rows):
                    if skip > 0:
                        skip -= 1
                    else:
                        yield queue, row
                if len(rows) < SOME:
                    break
                await asyncio.sleep(0)

    # --- what is deleted ----------------------------------------------------------------------------------------------

    async def delete(self, queues: Sequence[Queue]) -> int:
        """Delete queues, with those that others delete meanwhile; how many active URLs they had."""
        if self._managed is not None:
            await self._managed.settle()
        if self._deleting is None:
            self._deleting = asyncio.get_running_loop().create_task(self._delete())
        deleting = self._deleting
        self._condemned += queues
        found = await asyncio.shield(deleting)
        return sum(found.pop(queue, 0) for queue in queues)

    async def _delete(self) -> dict[Queue, int]:
        """Delete all queues that are to be deleted; how many active URLs each had."""
        seen = -1
        while seen < len(self._condemned):
            seen = len(self._condemned)
            await asyncio.sleep(0)
        self._deleting, condemned, self._condemned = None, self._condemned, []
        found = {queue: queue.active for queue in condemned if queue.id in self.frontier.by_id}
        self.frontier.delete(list(found))
        self._sweep()
        return found

    async def purge(self, queues: Sequence[Queue], before: float) -> int:
        """Delete URLs that were created before a time; how many of them were active."""
        n = 0
        for queue in queues:
            await self._open(queue)
            while rows := self.frontier.file.purgeable(queue.id, before):
                if queue.id not in self.frontier.by_id:
                    break
                self.frontier.forget(queue, rows)
                n += sum(row.date > 0 for row in rows)
                await self._forget_pages(rows)
        return n

    def _sweep(self) -> None:
        """Delete the URLs of deleted queues, some at a time."""
        if self.frontier.deleted and (self._sweeping is None or self._sweeping.done()):
            self._sweeping = asyncio.create_task(self._delete_rows())

    async def _delete_rows(self) -> None:
        deleted = self.frontier.deleted
        while deleted and not self._closing:
            seen = -1
            while seen < len(deleted) < SOME and not self._closing:  # more are deleted: their pages leave together
                seen = len(deleted)
                await asyncio.sleep(_LULL)
            some = deleted[:SOME]
            while not self._closing and (rows := self.frontier.file.of_queues(some)):
                await self._forget_pages(rows)
                self.frontier.forget(None, rows)
            if not self._closing:
                del deleted[: len(some)]

    async def _forget_pages(self, rows: Sequence[Row]) -> None:
        pages = [row.page for row in rows if row.page is not None]
        if pages and self._managed is not None:
            await self._managed.forget(pages)
        await asyncio.sleep(0)
