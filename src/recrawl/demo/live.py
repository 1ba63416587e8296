"""The live crawl of the demo: first copies of all pages, then a budget far below what changes, then the truth."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from recrawl import __version__
from recrawl._compile.first_use import compile_first
from recrawl.crawl.clock import Clock, SystemClock
from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.http.fetched import Fetcher
from recrawl.crawl.http.fetcher import HttpFetcher
from recrawl.crawl.http.memory import ManualClock, MemoryWeb
from recrawl.crawl.listings.listing import new_listing
from recrawl.crawl.listings.reading import FEED
from recrawl.crawl.polite.budget import Budget
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.run.opening.assemble import Web, new_crawler
from recrawl.crawl.run.opening.pages import add_pages
from recrawl.demo.judge import Rival, rivals, true_freshness, window
from recrawl.demo.progress import OnProgress, Progress, nothing
from recrawl.demo.resolver import LoopbackResolver
from recrawl.demo.server import DemoServer
from recrawl.demo.signals import SOURCES, Receiver, ping, source_counts, to_inbox
from recrawl.demo.verdict import (
    Renewal,
    Sample,
    SecondHalf,
    Verdict,
    WithoutSignals,
    copied_at,
    detection,
    forbidden,
    renewals,
)
from recrawl.demo.web import FEED as FEED_PATH
from recrawl.demo.web import SITEMAP, DemoWeb
from recrawl.demo.world import DAY, DemoWorld, draw_world
from recrawl.engine import Engine, EngineOptions
from recrawl.errors import ParameterError
from recrawl.simulate.tally import Run
from recrawl.simulate.trace import Trace
from recrawl.store import MemoryStore
from recrawl.store.protocol import Outcome, Store

BUDGET = 15.0  # requests a second
_FIRST_BUDGET, _FIRST_SECONDS = 200.0, 30.0  # for the first copies: requests a second, and how long at most
_SPACING, _CONCURRENCY = 0.02, 2  # per host
_SAMPLE_EVERY = 0.25
_USER_AGENT = f"recrawl-demo/{__version__} (+http://127.0.0.1/)"


def check(seconds: float, budget: float) -> None:
    """Raise ParameterError for a duration or budget that the demo does not support."""
    if not 1.0 <= seconds <= 3600.0:
        raise ParameterError(f"the demo lasts {seconds:g} s: must be from 1 s to an hour")
    if not 0.5 <= budget <= _FIRST_BUDGET:
        raise ParameterError(f"budget is {budget:g}/s: must lie from 0.5/s to {_FIRST_BUDGET:g}/s")


class LiveDemo:
    """One demo: a world, its server, a crawler, and the verdict.

    With ``signals``, listings are polled and pings taken, and a second crawl without them runs at the same time on a
    server of its own, with the same changes and the same budget. ``receiver`` takes the pings; by default they go to
    the inbox of the crawl.
    """

    receiver: Receiver = staticmethod(to_inbox)

    def __init__(
        self,
        store: Store,
        *,
        seconds: float = 60.0,
        budget: float = BUDGET,
        seed: int = 1,
        choices: EngineOptions | None = None,
        signals: bool = True,
    ) -> None:
        check(seconds, budget)
        self._signals = signals
        self._without: LiveDemo | None = None
        if signals:
            self._without = _Without(
                MemoryStore(), seconds=seconds, budget=budget, seed=seed, choices=choices, signals=False
            )
        self._choices: EngineOptions = choices or {}  # how pages are chosen
        self.world: DemoWorld = draw_world(seed, seconds + 3 * _FIRST_SECONDS)
        self._seconds, self._budget, self._store = seconds, budget, store
        self._samples: list[tuple[Sample, float]] = []
        self._phase, self._begin = "first copies", 0.0
        self._half: tuple[float, Engine] | None = None  # when half of the time was over, and the engine as it was then
        self._stopped = False
        self._web: DemoWeb
        self._crawler: Crawler | None = None

    @property
    def example(self) -> str:
        """The URL of the most important page."""
        return self._web.urls[int(np.argmax(self.world.trace.importance))]

    def stop(self) -> None:
        """End early; the verdict covers the time until then."""
        self._stopped = True
        if self._without is not None:
            self._without.stop()
        if self._crawler is not None:
            self._crawler.stop()

    async def run(self, on_progress: OnProgress = nothing) -> Verdict:
        """Serve on loopback, crawl, and judge; ``on_progress`` is called a few times a second."""
        clock = SystemClock()
        return await self._beside(lambda demo, progress: demo._serve(clock, progress), on_progress)

    async def _serve(self, clock: Clock, on_progress: OnProgress) -> Verdict:
        self._web = DemoWeb(self.world, clock)
        async with DemoServer(self._web):
            fetcher = HttpFetcher(_USER_AGENT, allow_private=True, resolver=LoopbackResolver(), clock=clock)
            try:
                return await self._run(fetcher, clock, on_progress)
            finally:
                await fetcher.close()

    async def run_in_memory(self, on_progress: OnProgress = nothing) -> Verdict:
        """The same in memory, by a manual clock: without a network and without waiting."""
        clock = ManualClock(1e9)

        def crawl(demo: LiveDemo, progress: OnProgress) -> Coroutine[Any, Any, Verdict]:
            demo._web = DemoWeb(demo.world, clock)
            return demo._run(MemoryWeb(demo._web.ask, clock), clock, progress)

        return await clock.drive(self._beside(crawl, on_progress))

    async def _beside(
        self, crawl: Callable[[LiveDemo, OnProgress], Coroutine[Any, Any, Verdict]], on_progress: OnProgress
    ) -> Verdict:
        """Crawl, and at the same time without signals."""
        if self._without is None:
            return await crawl(self, on_progress)
        found, other = await asyncio.gather(crawl(self, on_progress), crawl(self._without, nothing))
        return replace(found, without_signals=WithoutSignals(other.truth, other.requests))

    async def _run(self, fetcher: Fetcher, clock: Clock, on_progress: OnProgress) -> Verdict:
        crawler = await self._new_crawler(fetcher, clock)
        try:
            await self._crawl(crawler, clock, on_progress)
            end = min(self._web.now(), self._begin + self._seconds)
            outcomes = [outcome async for outcome in self._store.observations()]
            verdict = self._judge(outcomes, end)
            return replace(verdict, sources=source_counts(self._web, crawler)) if self._signals else verdict
        finally:
            crawler.close()

    async def _new_crawler(self, fetcher: Fetcher, clock: Clock) -> Crawler:
        now = clock.now()
        settings: EngineOptions = {"day": DAY, "sources": SOURCES if self._signals else 0, "host_spacing": _SPACING}
        settings |= {"host_concurrency": _CONCURRENCY, **self._choices}
        engine = Engine(self._budget, start=now, **settings)
        add_pages(engine, Rules(), self._web.urls, now, importance=self.world.trace.importance)
        add_pages(engine, Rules(), self._web.private_urls, now)
        listings = [new_listing(url, FEED) for url in self._web.feed_urls] if self._signals else []
        await self._store.save(rows=engine.rows(), listings=listings)
        self._ids = engine.id(self._web.urls)
        options = CrawlOptions(budget=Budget(_FIRST_BUDGET, now, catch_up=0.5), listings=self._signals)
        self._crawler = new_crawler(engine, self._store, Web(_USER_AGENT, fetcher, fetcher, clock), options)
        return self._crawler

    async def _crawl(self, crawler: Crawler, clock: Clock, on_progress: OnProgress) -> None:
        watch = asyncio.create_task(self._watch(crawler, clock, on_progress))
        try:
            await crawler.run(clock.now() + _FIRST_SECONDS, once=True)
            self._phase, self._begin = "crawling", self._web.now()
            if not self._stopped:
                crawler.budget.set_rate(self._budget, clock.now())
                await self._follow(crawler, clock)
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)

    async def _follow(self, crawler: Crawler, clock: Clock) -> None:
        """Crawl within the budget, for as long as it counts."""
        if not self._signals:
            await crawler.run(clock.now() + self._seconds)
            return
        names = [site.name for site in self.world.sites if site.says == "pings"]
        async with self.receiver(crawler, names) as send:
            pinging = asyncio.create_task(ping(self._web, send, clock))
            crawler.components.pool.watch(pinging)
            try:
                await crawler.run(clock.now() + self._seconds)
            finally:
                pinging.cancel()
                with suppress(asyncio.CancelledError):
                    await pinging

    async def _watch(self, crawler: Crawler, clock: Clock, on_progress: OnProgress) -> None:
        """Sample the expected and the true freshness a few times a second."""
        while True:
            await clock.sleep(_SAMPLE_EVERY)
            at = self._web.now()
            weight = self.world.trace.importance
            fresh = crawler.engine.fresh(self._ids, clock.now())
            shown = self._shown()
            expected = float(np.average(np.where(shown >= 0, fresh, 0.0), weights=weight))
            true = float(np.average(shown == self._versions(at), weights=weight))
            if self._phase == "crawling":
                self._samples.append((Sample(at, expected), true))
                if self._half is None and at >= self._begin + self._seconds / 2:
                    self._half = at, Engine.restore(crawler.engine.state())
            counts, elapsed = crawler.counters, at - self._begin
            done = (counts.requests, counts.changed, counts.failed)
            series = tuple((sample.freshness, now) for sample, now in self._samples)
            on_progress(Progress(self._phase, elapsed, self._seconds, *done, expected, true, series))

    def _shown(self) -> Any:
        """The version of each page that was last served; −1: none."""
        shown = np.full(len(self.world.pages), -1)
        for request in self._web.log:
            if request.version >= 0:
                shown[request.page] = request.version
        return shown

    def _versions(self, at: float) -> Any:
        trace = self.world.trace
        page = np.repeat(np.arange(len(trace)), trace.n_changes)
        return np.bincount(page[trace.changed_at <= at], minlength=len(trace))

    def _judge_half(self, found: list[Renewal], end: float) -> SecondHalf | None:
        """The forecast of the time from the half to the end, by what the engine knew at the half; and what came true.

        None if the demo ended before.
        """
        if self._half is None or end <= self._half[0]:
            return None
        at, engine = self._half
        start = max(self._web.started_at + at, engine.now)
        forecast = engine.forecast(self._crawl_budget(at), start=start, duration=end - at, ids=self._ids)
        return SecondHalf(at, forecast, self._truth(found, at, end, 0)[1].freshness)

    def _crawl_budget(self, at: float) -> float:
        """The part of the budget that went to pages until a time; polls of listings are the rest."""
        counted = [request for request in self._web.log if self._begin < request.at <= at]
        polls = sum(request.path in (SITEMAP, FEED_PATH) for request in counted)
        return self._budget * (1.0 - polls / max(len(counted), 1))

    def _judge(self, outcomes: list[Outcome], end: float) -> Verdict:
        begin, log = self._begin, self._web.log
        if end - begin < 1.0:
            raise ParameterError("the demo was ended before there was anything to judge")
        page_of = {url: number for number, url in enumerate(self._web.urls)}
        found = renewals(log, outcomes, page_of, self._web.started_at)
        bins = max(1, round(end - begin))
        trace, truth = self._truth(found, begin, end, bins)
        half = self._judge_half(found, end)
        counted = [request for request in log if begin < request.at <= end]
        return Verdict(
            seconds=end - begin,
            budget=self._budget,
            seed=self.world.seed,
            trace=trace,
            truth=truth,
            samples=[sample for sample, _ in self._samples if begin < sample.at <= end],
            half=half,
            rivals=self._rivals(trace, len(counted), bins),
            detection=detection(found),
            requests=len(counted),
            failures=sum(request.status >= 400 for request in counted),
            not_modified=sum(outcome.status == 304 for outcome in outcomes),
            forbidden=forbidden(log),
            without_copy=int((copied_at(found, len(page_of)) == -math.inf).sum()),
            polls=sum(request.path in (SITEMAP, FEED_PATH) for request in counted),
        )

    def _rivals(self, trace: Trace, requests: int, bins: int) -> Sequence[Rival]:
        return rivals(trace, requests, bins)

    def _truth(self, found: list[Renewal], begin: float, end: float, bins: int) -> tuple[Trace, Run]:
        """The trace from begin to end, and the exact freshness of the copies in it."""
        first = [renewal for renewal in found if renewal.at <= begin]
        later = [renewal for renewal in found if begin < renewal.at <= end]
        trace = window(self.world.trace, copied_at(first, len(self._web.urls)), begin, end)
        page, at = np.array([r.page for r in later], np.int64), np.array([r.at for r in later])
        return trace, true_freshness(trace, page, at, bins)


class _Without(LiveDemo):
    """The crawl without signals, which is only compared with."""

    def _rivals(self, trace: Trace, requests: int, bins: int) -> Sequence[Rival]:
        return []


async def warm_up() -> None:
    """Run a demo in memory, which compiles all kernels: a minute the first time, a second later."""
    compile_first()
    await LiveDemo(MemoryStore(), seconds=15.0, budget=30.0, seed=0).run_in_memory()
