"""Session: the leases of one crawl of Scrapy, from pick to record, shared by both middlewares."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler

from recrawl.contrib.scrapy.answers import META, failure_report, lease_of
from recrawl.contrib.scrapy.options import Options
from recrawl.contrib.scrapy.outbox import Outbox
from recrawl.contrib.scrapy.request_file import RequestFile
from recrawl.contrib.scrapy.requests import Templates
from recrawl.contrib.scrapy.sources import Source, open_source
from recrawl.desk import Picked, Report
from recrawl.errors import RecrawlError
from recrawl.logs import event_line

log = logging.getLogger(__name__)
_AHEAD = 3  # times as many pages as Scrapy fetches at once are held: a pick takes as long as some tens of pages
_BACKLOG = 256  # outcomes that wait to be written, beyond which no page is picked
_LOOK = 0.05  # seconds after which an engine that has no room is asked again


@dataclass(slots=True)
class Held:
    """A lease that this process holds; ``yielded_at``: when Scrapy got the request, by the monotonic clock."""

    until: float
    yielded_at: float | None = None


class Session:
    """Picks, holds leases, and hands in what came of them."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._held: dict[str, Held] = {}
        self._freed = asyncio.Event()  # set when leases have ended
        self._ready: deque[Picked] = deque()  # pages that Scrapy has not asked for
        self._news = asyncio.Event()  # set when there are some
        self._filling: asyncio.Task[None] | None = None
        self._picking: asyncio.Task[list[Picked]] | None = None
        self._source: Source | None = None
        self._opening: asyncio.Future[None] | None = None
        self._closed = False
        self._longest_wait = 0.0  # seconds
        self._complaints: set[str] = set()
        self.options: Options
        self.outbox: Outbox
        self.templates: Templates
        crawler.signals.connect(self._spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._close, signal=signals.spider_closed)

    def _spider_opened(self, spider: Spider) -> None:
        self.templates = Templates(spider, self.failed)

    def count(self, name: str, n: int = 1) -> None:
        """Add to a number in Scrapy's stats."""
        if n and self._crawler.stats is not None:
            self._crawler.stats.inc_value(f"recrawl/{name}", n)

    async def open(self) -> None:
        """Open the source once; ParameterError or another RecrawlError says why it cannot be used."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
        await asyncio.shield(self._opening)

    async def _open(self) -> None:
        self.options = Options.read(self._crawler.settings)
        began = time.monotonic()
        event_line(log, logging.INFO, "scrapy.opening", source=self.options.database or self.options.url)
        spider = self._crawler.spider
        assert spider is not None
        self.templates.open(RequestFile(self.options.requests, spider.name), depth=self.options.depth)
        source = await open_source(self.options)
        seconds = round(time.monotonic() - began, 1)
        event_line(log, logging.INFO, "scrapy.ready", seconds=seconds, pages=source.n_pages)
        enough = max(self.options.per_host // 2, 1)
        self.outbox = Outbox(source, self.count, self._freed, self.templates.write, enough)
        self._source = source

    async def is_usable(self) -> bool:
        """Whether the source is open, after waiting for it; why it is not is said where picks are made."""
        if self._source is None:
            try:
                await self.open()
            except RecrawlError:
                return False
            except asyncio.CancelledError:
                if self._opening is not None and self._opening.cancelled():
                    return False
                raise
        return True

    # --- picks --------------------------------------------------------------------------------------------------------

    async def requests(self) -> AsyncIterator[Request]:
        """A request for each page that is picked, as long as the spider is open."""
        self._filling = asyncio.ensure_future(self._fill())
        while not self._closed:
            if not self._ready:
                self._news.clear()
                news = asyncio.ensure_future(self._news.wait())
                try:
                    await asyncio.wait([self._filling, news], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    news.cancel()
                if self._filling.done():
                    self._filling.result()
                continue
            picked = self._ready.popleft()
            held = self._held.get(picked.lease)
            if held is not None:  # else its lease has ended meanwhile
                held.yielded_at = time.monotonic()
                yield self.templates.request(picked)

    async def _fill(self) -> None:
        """Pick pages before Scrapy asks for them: it asks for one at a time, when a slot is free already."""
        while True:
            self._ready.extend(await self._pick(await self._room()))
            self._news.set()

    async def _room(self) -> int:
        """Wait until Scrapy can use pages; how many."""
        engine = self._crawler.engine
        while True:
            self._freed.clear()
            self.outbox.check()
            self._expire()
            # an engine that refuses work although few requests are open has other work, or is closing
            refuses = len(self._held) < self.options.concurrency and engine is not None and engine.needs_backout()
            if self._has_room and not refuses and self.outbox.n_waiting < _BACKLOG:
                return self._most - len(self._held)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._freed.wait(), _LOOK if refuses else 1.0)

    @property
    def _most(self) -> int:
        """How many leases are held at most."""
        return _AHEAD * self.options.concurrency

    @property
    def _has_room(self) -> bool:
        """Whether there is room for several pages: each pick is a transaction."""
        return self._most - len(self._held) >= max(self._most // 4, 1)

    def _expire(self) -> None:
        """Leases that have ended are no longer waited for."""
        now = time.time()
        for lease in [lease for lease, held in self._held.items() if held.until <= now]:
            del self._held[lease]
            self.count("expired")

    async def _pick(self, n: int) -> list[Picked]:
        """Pages; if this is cancelled, what was picked is given back when the spider is closed."""
        assert self._source is not None
        self._picking = asyncio.ensure_future(self._source.pick(n, self.options.lease))
        self._picking.add_done_callback(self._picked)
        return await asyncio.shield(self._picking)

    def _picked(self, picking: asyncio.Task[list[Picked]]) -> None:
        if picking.cancelled() or picking.exception() is not None:
            return
        for picked in picking.result():
            self._held[picked.lease] = Held(picked.until)
        self.count("picked", len(picking.result()))

    # --- what came of them --------------------------------------------------------------------------------------------

    async def take_up(self, request: Request, lease: str) -> bool:
        """Whether a request may be sent: its lease is of this run, or of an earlier one and still held."""
        if (held := self._held.get(lease)) is not None:
            self._note_wait(held)
            return True
        if not await self.is_usable():
            return False
        assert self._source is not None
        until = float(request.meta[META]["until"])
        if until <= time.time() or not await self._source.holds(lease):
            self.count("dropped")
            return False
        self._held[lease] = Held(until, time.monotonic())
        self.count("resumed")
        return True

    def _note_wait(self, held: Held) -> None:
        """Scrapy sends a request: how long it had it."""
        waited = 0.0 if held.yielded_at is None else time.monotonic() - held.yielded_at
        if waited > self._longest_wait and self._crawler.stats is not None:
            self._longest_wait = waited
            self._crawler.stats.set_value("recrawl/longest_wait", waited)

    def end(self, report: Report) -> None:
        """Hand in what came of a lease, if nothing has been handed in before."""
        if self._held.pop(report.lease, None) is not None:
            self.outbox.put(report)
            if self._has_room:
                self._freed.set()

    def failed(self, request: Request, exception: BaseException) -> None:
        """A request has failed for good, in Scrapy's downloader or in another middleware."""
        lease = lease_of(request)
        if lease is not None and self.is_open(lease):
            self.count("failed")
            self.end(failure_report(exception, request, lease))

    def is_open(self, lease: str) -> bool:
        """Whether nothing has been handed in for a lease."""
        return lease in self._held

    async def _close(self) -> None:
        """The spider is closed: give back the leases of requests that were not sent, and write the rest.

        With JOBDIR Scrapy keeps requests that it has not sent: they keep their leases.
        """
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()  # if it goes on, the spider does not wait for it
            await asyncio.wait([self._opening])
        if self._source is None:
            return
        if self._filling is not None:
            self._filling.cancel()
        if self._picking is not None:
            await asyncio.wait([self._picking])
        try:
            await self.outbox.close()
            back = [lease for lease, held in self._held.items() if held.yielded_at is None or not self.options.jobdir]
            if back:
                words = await self._source.release(back)
                self.count("released", sum(word == "released" for word in words))
        except RecrawlError as problem:
            self.complain(problem)
        self._held.clear()
        self.templates.close()
        try:
            await self._source.close()
        except RecrawlError as problem:
            self.complain(problem)

    def complain(self, problem: RecrawlError) -> None:
        """One line in the log, once, however many calls have failed by it."""
        if str(problem) not in self._complaints:
            self._complaints.add(str(problem))
            event_line(log, logging.ERROR, "scrapy.failed", error=str(problem))


_SESSIONS: WeakKeyDictionary[Crawler, Session] = WeakKeyDictionary()


def session_of(crawler: Crawler) -> Session:
    """The session of a crawler: one, whoever asks first."""
    if crawler not in _SESSIONS:
        _SESSIONS[crawler] = Session(crawler)
    return _SESSIONS[crawler]
