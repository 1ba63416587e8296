"""Backlog: discovered URLs of managed crawls that are acknowledged and written, and become pages a little later."""

from __future__ import annotations

import asyncio
import itertools
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.contrib.urlfrontier.api.wire import OK, SKIPPED
from recrawl.contrib.urlfrontier.arrivals import arrival_of
from recrawl.contrib.urlfrontier.batches import URL, Discovered
from recrawl.contrib.urlfrontier.changes import Changes
from recrawl.contrib.urlfrontier.frontier import Frontier
from recrawl.contrib.urlfrontier.items import Put
from recrawl.contrib.urlfrontier.marks import Hashes, Marks, hashes
from recrawl.contrib.urlfrontier.queue_file import Row
from recrawl.contrib.urlfrontier.queues import add_urls
from recrawl.crawl.urls import canonical
from recrawl.desk import Desk, NewPage
from recrawl.engine.names.arena import Packed, pack
from recrawl.engine.names.kernels import Ids
from recrawl.engine.names.scan import KINDS, new_parts, scan_all
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
        self._waiting: dict[int, Hashes] = {}  # per arrival, those of the crawls and pages of its URLs
        self._pages = Marks()  # all of them
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    @property
    def n_waiting(self) -> int:
        """How many URLs wait."""
        return len(self._pages)

    def has(self, puts: Sequence[Put]) -> bool:
        """Whether the page of a URL waits."""
        if not len(self._pages):
            return False
        found = Discovered.of(puts)
        marks = hashes(self._frontier.names.crawls(found), pages_of(found.column(URL)))
        return bool(self._pages.has(marks).any())

    # --- what comes in ------------------------------------------------------------------------------------------------

    async def put(self, found: Discovered) -> tuple[list[int], list[int]]:
        """Take in discovered URLs; a state for each, and the rows for which the file decides: the engine has them."""
        while len(self._pages) > _MOST:
            await self.settle_some()
        pages = pages_of(found.column(URL))
        marks = hashes(self._frontier.names.crawls(found), pages)
        async with self._writing:
            there = self._desk.components.engine.addresses.find(pages) >= 0
            usable = pages.starts < pages.ends
            new = self._write(found, marks, np.flatnonzero(usable & ~there))
            doubtful = self._doubtful(found, marks, np.flatnonzero(usable & there))
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._settle_in_lulls())
        return np.where(new, OK, SKIPPED).tolist(), doubtful

    def _write(self, found: Discovered, marks: Hashes, rows: Ids) -> NDArray[np.bool_]:
        """Write those URLs of some rows that are new; which of all are."""
        rows = rows[self._pages.add(marks[rows])]
        some, changes = found if len(rows) == len(found) else found.take(rows), Changes(self._frontier)
        try:
            with self._arrivals.writing(self._frontier.clock.now()) as arriving, self._file.transaction():
                is_new = arriving.add(changes.queues(some), some)
        except BaseException:
            self._pages.remove(marks[rows])
            raise
        changes.apply()
        self._pages.remove(marks[rows[~is_new]])
        new, first = np.zeros(len(found), np.bool_), 0
        new[rows[is_new]] = True
        for place, queues in arriving.written:
            self._waiting[arrival_of(place)] = marks[rows[is_new][first : first + len(queues)]]
            first += len(queues)
            add_urls(queues)
        return new

    def _doubtful(self, found: Discovered, marks: Hashes, rows: Ids) -> list[int]:
        """Which of some rows, whose pages the engine has, are perhaps not in their crawls."""
        rows = rows[~self._pages.has(marks[rows])]
        if not len(rows):
            return []
        some = found.take(rows)
        queues = self._frontier.names.find(some)
        there = [place for place, queue in enumerate(queues) if queue is not None]
        known = self._arrivals.knows([queues[place] for place in there], some.take(there).column(URL))  # type: ignore[misc]
        return np.delete(rows, np.array(there, np.int64)[known]).tolist()

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
                self._pages.remove(self._waiting.pop(id_))
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


def pages_of(urls: Packed) -> Packed:
    """The pages that URLs are; empty where a URL is no web page."""
    parts = new_parts(len(urls.starts))
    scan_all(*urls, KINDS, parts)
    odd = np.flatnonzero(~parts.plain)
    if not len(odd):
        return urls
    pages = pack([page_of(url) or "" for url in urls.take(odd).texts()])
    starts, ends = urls.starts.copy(), urls.ends.copy()
    starts[odd], ends[odd] = pages.starts + len(urls.data), pages.ends + len(urls.data)
    return Packed(np.concatenate([urls.data, pages.data]), starts, ends)


def page_of(url: str) -> str | None:
    """The page of the engine that a URL is; None if it is no web page."""
    try:
        return canonical(url)
    except ParameterError:
        return None
