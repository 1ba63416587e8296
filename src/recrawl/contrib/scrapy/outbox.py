"""Outbox: reports and new pages on their way to the source, many at a time."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress

from recrawl.contrib.scrapy.sources import Source
from recrawl.desk import Report
from recrawl.errors import ParameterError, ServiceError
from recrawl.logs import event_line
from recrawl.urls import canonical

log = logging.getLogger(__name__)
_GATHER = 0.1  # seconds that a report waits for others, to be written with them
_MANY = 1000  # reports or pages of one call
_LARGE = 16 << 20  # bytes of bodies beyond which a call takes no further report
_COUNTED = ("recorded", "late")
_REMEMBERED = 100_000  # pages that are not added again


class Outbox:
    """Hands in reports in the background; pages that were added before a report are written before it.

    Reports wait a moment for others, until there are ``enough``: the desk counts their pages as held until then.
    """

    def __init__(
        self,
        source: Source,
        count: Callable[[str, int], None],
        freed: asyncio.Event,
        before_pages: Callable[[], None],
        enough: int = 1,
    ) -> None:
        self._source, self._count, self._freed, self._enough = source, count, freed, enough
        self._before_pages = before_pages  # called before pages are added
        self._reports: list[Report] = []
        self._pages: list[str] = []
        self._added: OrderedDict[str, None] = OrderedDict()
        self._news, self._full, self._closing = asyncio.Event(), asyncio.Event(), False
        self._writing = 0
        self._task = asyncio.ensure_future(self._run())

    @property
    def n_waiting(self) -> int:
        """Reports that are not written."""
        return len(self._reports) + self._writing

    def check(self) -> None:
        """Raise what ended the writing."""
        if self._task.done():
            self._task.result()

    def put(self, report: Report) -> None:
        """Hand in what came of a lease."""
        self._reports.append(report)
        self._news.set()
        if len(self._reports) >= self._enough:
            self._full.set()

    def add(self, urls: Iterable[str]) -> list[str]:
        """Add pages; those that were added before, and what is no URL of a page, are left out. The others by name."""
        new = []
        for url in urls:
            try:
                name = canonical(url)
            except ParameterError:
                self._count("refused", 1)
                continue
            if name in self._added:
                self._added.move_to_end(name)
                continue
            self._added[name] = None
            new.append(name)
            if len(self._added) > _REMEMBERED:
                self._added.popitem(last=False)
        self._pages += new
        self._news.set()
        return new

    async def flush(self) -> None:
        """Write the pages that wait; for many start requests."""
        while self._pages:
            pages, self._pages = self._pages[:_MANY], self._pages[_MANY:]
            self._before_pages()
            self._count("added", await self._source.add(pages))

    async def _run(self) -> None:
        while not self._closing or self._reports or self._pages:
            if not self._reports and not self._pages:
                self._news.clear()
                await self._news.wait()
            await self._gather()
            reports = self._take()
            self._writing = len(reports)
            await self.flush()
            await self._write(reports)
            self._writing = 0
            self._freed.set()

    async def _gather(self) -> None:
        """Wait for further reports."""
        if len(self._reports) < self._enough and not self._closing:
            self._full.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._full.wait(), _GATHER)

    def _take(self) -> list[Report]:
        """The reports of the next call: as many as are taken at once, and no more than it should hold in memory."""
        n = size = 0
        for report in self._reports[:_MANY]:
            n += 1
            size += len(report.body or b"")
            if size >= _LARGE:
                break
        taken, self._reports = self._reports[:n], self._reports[n:]
        return taken

    async def _write(self, reports: list[Report]) -> None:
        """Record reports; one that the desk refuses is recorded without what it says of the answer."""
        try:
            words = await self._source.record(reports) if reports else []
        except (ParameterError, ServiceError) as problem:
            if isinstance(problem, ServiceError) and problem.status != 422:
                raise
            if len(reports) > 1:
                for report in reports:
                    await self._write([report])
                return
            event_line(log, logging.ERROR, "scrapy.outcome_refused", error=str(problem))
            words = await self._source.record([Report(reports[0].lease, error="bad-response")])
        for word, n in Counter(words).items():
            self._count(word if word in _COUNTED else f"not_recorded/{word}", n)

    async def close(self) -> None:
        """Wait until everything is written; raises what went wrong."""
        self._closing = True
        self._news.set()
        self._full.set()
        await self._task
