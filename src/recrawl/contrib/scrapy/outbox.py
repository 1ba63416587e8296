"""Outbox: reports and new pages on their way to the source, many at a time."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable

from recrawl.contrib.scrapy.sources import Source
from recrawl.desk import Report
from recrawl.errors import ParameterError, ServiceError
from recrawl.urls import canonical

log = logging.getLogger(__name__)
_GATHER = 0.02  # seconds that a report waits for others, to be written with them
_MANY = 1000  # reports or pages of one call
_COUNTED = ("recorded", "late")
_REMEMBERED = 100_000  # pages that are not added again


class Outbox:
    """Hands in reports in the background; pages that were added before a report are written before it."""

    def __init__(self, source: Source, count: Callable[[str, int], None], freed: asyncio.Event) -> None:
        self._source, self._count, self._freed = source, count, freed
        self._reports: list[Report] = []
        self._pages: list[str] = []
        self._added: OrderedDict[str, None] = OrderedDict()
        self._news, self._closing = asyncio.Event(), False
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

    def add(self, urls: Iterable[str]) -> None:
        """Add pages; those that were added before, and what is no URL of a page, are left out."""
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
            self._pages.append(name)
            if len(self._added) > _REMEMBERED:
                self._added.popitem(last=False)
        self._news.set()

    async def flush(self) -> None:
        """Write the pages that wait; for many start requests."""
        while self._pages:
            pages, self._pages = self._pages[:_MANY], self._pages[_MANY:]
            self._count("added", await self._source.add(pages))

    async def _run(self) -> None:
        while not self._closing or self._reports or self._pages:
            if not self._reports and not self._pages:
                self._news.clear()
                await self._news.wait()
                if not self._closing:
                    await asyncio.sleep(_GATHER)
                continue
            reports, self._reports = self._reports[:_MANY], self._reports[_MANY:]
            self._writing = len(reports)
            await self.flush()
            await self._write(reports)
            self._writing = 0
            self._freed.set()

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
            log.error("recrawl: %s", problem)
            words = await self._source.record([Report(reports[0].lease, error="bad-response")])
        for word in words:
            self._count(word if word in _COUNTED else f"not_recorded/{word}", 1)

    async def close(self) -> None:
        """Wait until everything is written; raises what went wrong."""
        self._closing = True
        self._news.set()
        await self._task
