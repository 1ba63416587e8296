"""Session: the leases of one crawl of Scrapy, from pick to record, shared by both middlewares."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler

from recrawl.contrib.scrapy.answers import META, failure_report, lease_of
from recrawl.contrib.scrapy.options import Options
from recrawl.contrib.scrapy.outbox import Outbox
from recrawl.contrib.scrapy.requests import Templates
from recrawl.contrib.scrapy.sources import Source, open_source
from recrawl.desk import Picked, Report
from recrawl.errors import ParameterError, RecrawlError

log = logging.getLogger(__name__)
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
        self._freed = asyncio.Event()  # set when a lease has ended
        self._picking: asyncio.Task[list[Picked]] | None = None
        self._source: Source | None = None
        self._opening: asyncio.Future[None] | None = None
        self._closed = False
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
        self._source = await open_source(self.options)
        self.outbox = Outbox(self._source, self.count, self._freed)

    async def is_usable(self) -> bool:
        """Whether the source is open, after waiting for it; why it is not is said where picks are made."""
        try:
            await self.open()
        except RecrawlError:
            return False
        return True

    # --- picks --------------------------------------------------------------------------------------------------------

    async def requests(self) -> AsyncIterator[Request]:
        """A request for each page that is picked, as long as the spider is open."""
        while not self._closed:
            for picked in await self._pick(await self._room()):
                if self._closed:
                    return
                self._held[picked.lease].yielded_at = time.monotonic()
                yield self.templates.request(picked)

    async def _room(self) -> int:
        """Wait until Scrapy can use pages; how many."""
        most, engine = 2 * self.options.concurrency, self._crawler.engine
        while True:
            self._freed.clear()
            self.outbox.check()
            self._expire()
            n = most - len(self._held)
            # an engine that refuses work although few requests are open has other work, or is closing
            refuses = len(self._held) < self.options.concurrency and engine is not None and engine.needs_backout()
            # several at a time: each pick is a transaction
            if n >= max(most // 4, 1) and not refuses and self.outbox.n_waiting < _BACKLOG:
                return n
            with suppress(TimeoutError):
                await asyncio.wait_for(self._freed.wait(), _LOOK if refuses else 1.0)

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
        if until <= time.time() or not self._source.holds(lease):
            self.count("dropped")
            return False
        self._held[lease] = Held(until, time.monotonic())
        self.count("resumed")
        return True

    def _note_wait(self, held: Held) -> None:
        """Scrapy sends a request: how long it had it."""
        if held.yielded_at is not None and self._crawler.stats is not None:
            self._crawler.stats.max_value("recrawl/longest_wait", time.monotonic() - held.yielded_at)

    def end(self, report: Report) -> None:
        """Hand in what came of a lease, if nothing has been handed in before."""
        if self._held.pop(report.lease, None) is not None:
            self.outbox.put(report)
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
            await asyncio.wait([self._opening])
        if self._source is None:
            return
        if self._picking is not None:
            await asyncio.wait([self._picking])
        try:
            await self.outbox.close()
            back = [lease for lease, held in self._held.items() if held.yielded_at is None or not self.options.jobdir]
            if back:
                words = await self._source.release(back)
                self.count("released", sum(word == "released" for word in words))
        except ParameterError as problem:
            log.error("recrawl: %s", problem)
        finally:
            self._held.clear()
            await self._source.close()


_SESSIONS: WeakKeyDictionary[Crawler, Session] = WeakKeyDictionary()


def session_of(crawler: Crawler) -> Session:
    """The session of a crawler: one, whoever asks first."""
    if crawler not in _SESSIONS:
        _SESSIONS[crawler] = Session(crawler)
    return _SESSIONS[crawler]
