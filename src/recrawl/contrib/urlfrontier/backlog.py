"""Backlog: discovered URLs of managed crawls that are acknowledged and written, and become pages a little later."""

from __future__ import annotations

import asyncio
import itertools
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from recrawl.contrib.urlfrontier.arrivals import arrival_of
from recrawl.contrib.urlfrontier.changes import Changes
from recrawl.contrib.urlfrontier.frontier import Frontier
from recrawl.contrib.urlfrontier.items import Put
from recrawl.contrib.urlfrontier.queue_file import Row
from recrawl.contrib.urlfrontier.wire import OK, SKIPPED
from recrawl.crawl.urls import canonical
from recrawl.desk import Desk, NewPage
from recrawl.errors import ParameterError, StoreError
from recrawl.logs import event

Forget = Callable[[Iterable[str]], Awaitable[None]]
_MOST = 200_000  # URLs that wait; then no more are acknowledged before some have become pages
_TOGETHER = 4  # arrivals that become pages at once
_LULL = 0.02  # seconds without an arrival, after which they do
log = logging.getLogger(__name__)


class _Item(NamedTuple):
    """A URL that becomes a page."""

    queue: int
    at: int
    url: str
    metadata: bytes
    page: str


class Backlog:
    """The discovered URLs that are no pages yet.

    ``writing`` is held by whoever writes pages and their URLs; ``forget`` removes pages that no crawl has.
    """

    def __init__(self, frontier: Frontier, desk: Desk, writing: asyncio.Lock, forget: Forget) -> None:
        self._frontier, self._arrivals, self._file = frontier, frontier.arrivals, frontier.file
        self._desk, self._writing, self._forget = desk, writing, forget
        self._waiting: dict[int, list[int]] = {}  # per arrival, hashes of the crawls and pages of its URLs
        self._pages: set[int] = set()  # all of them
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    @property
    def n_waiting(self) -> int:
        """How many URLs wait."""
        return len(self._pages)

    def has(self, crawl: str, page: str) -> bool:
        """Whether a page waits."""
        return bool(self._pages) and hash(crawl) ^ hash(page) in self._pages

    # --- what comes in ------------------------------------------------------------------------------------------------

    async def put(self, puts: Sequence[Put]) -> list[int | None]:
        """Take in discovered URLs; a state for each, None where the file must be asked: the engine has the page."""
        while len(self._pages) > _MOST:
            await self.settle_some()
        pages = [page_of(put.url) for put in puts]
        async with self._writing:
            there = self._desk.components.engine.addresses.known([page or "" for page in pages]).tolist()
            states = self._write(list(zip(puts, pages, there, strict=True)))
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._settle_in_lulls())
        return states

    def _write(self, given: Sequence[tuple[Put, str | None, int]]) -> list[int | None]:
        """Write URLs that are new, each with its page and the page's number in the engine."""
        changes, states, marks = Changes(self._frontier), list[int | None](), dict[int, None]()
        with self._arrivals.writing(self._frontier.clock.now()) as arriving, self._file.transaction():
            for put, page, number in given:
                state: int | None = SKIPPED
                mark = hash(put.crawl) ^ hash(page)
                if page is not None and mark not in self._pages and mark not in marks:
                    if number >= 0:
                        queue = self._frontier.queue(put.crawl, put.key)
                        state = SKIPPED if queue is not None and self._arrivals.knows(queue, put.url) else None
                    elif arriving.add(changes.queue(put.crawl, put.key), put):
                        state = OK
                        marks[mark] = None
                states.append(state)
            arriving.write()
        changes.apply()
        self._pages.update(marks)
        given_marks = iter(marks)
        for place, queues in arriving.written:
            self._waiting[arrival_of(place)] = list(itertools.islice(given_marks, len(queues)))
            for queue in queues:
                queue.crawl.add_url(queue)
        return states

    # --- what becomes of it -------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Make pages of all URLs that wait."""
        while self._waiting:
            await self.settle_some()

    async def _settle_in_lulls(self) -> None:
        """Make pages whenever no more URLs come, some at a time."""
        try:
            while self._waiting and not self._closing:
                seen = next(reversed(self._waiting))
                await asyncio.sleep(_LULL)
                while self._waiting and next(reversed(self._waiting)) == seen and not self._closing:
                    await self.settle_some()
                    await asyncio.sleep(0)
        except (sqlite3.Error, StoreError) as problem:
            event(log, logging.ERROR, "urlfrontier.failed", error=str(problem))  # the next call tries again

    async def settle_some(self) -> None:
        """Make pages of the first URLs that wait."""
        if not self._waiting:
            return
        async with self._writing:
            ids = list(itertools.islice(self._waiting, _TOGETHER))
            items = self._read(ids)
            if items:
                await self._desk.add([NewPage(page) for page in dict.fromkeys(item.page for item in items)])
            there = self._frontier.by_id
            new = self._file.next_row
            rows = [
                Row(new(), item.queue, item.url, item.at, item.at, item.metadata, 0.0, item.page, None)
                for item in items
                if item.queue in there
            ]
            with self._file.transaction():
                self._file.insert_rows(rows)
                self._arrivals.delete(ids)
            for id_ in ids:
                self._pages.difference_update(self._waiting.pop(id_))
            if len(rows) < len(items):
                await self._forget([item.page for item in items if item.queue not in there])

    def _read(self, ids: Sequence[int]) -> list[_Item]:
        """The URLs of arrivals whose queues are still there."""
        items = []
        for arrival in self._arrivals.read(ids):
            for k, queue in enumerate(arrival.queues):
                url, metadata = arrival.record(k)
                page = page_of(url)
                if page is not None and queue in self._frontier.by_id:
                    items.append(_Item(queue, arrival.at, url, metadata, page))
        return items

    async def close(self) -> None:
        """End what goes on; the next run makes pages of what waits."""
        self._closing = True
        if self._task is not None:
            await self._task


def page_of(url: str) -> str | None:
    """The page of the engine that a URL is; None if it is no web page."""
    try:
        return canonical(url)
    except ParameterError:
        return None
