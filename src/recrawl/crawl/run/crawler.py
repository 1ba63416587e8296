"""Crawler: the driver. It asks the engine what to crawl, crawls it politely, and records what it found."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from recrawl.crawl.clock import Clock, SystemClock
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.deliver.subscribers import Deliveries, Take
from recrawl.crawl.detect.detector import Detector
from recrawl.crawl.detect.detectors import MainText
from recrawl.crawl.feeds.cache import FeedsKept
from recrawl.crawl.feeds.polling import PREFIX
from recrawl.crawl.http.fetched import Fetcher
from recrawl.crawl.polite.budget import MARK, Pace, pacer_from
from recrawl.crawl.polite.host_limiter import Turns
from recrawl.crawl.polite.hours import Hours
from recrawl.crawl.polite.not_modified import Trust
from recrawl.crawl.polite.robots import Robots
from recrawl.crawl.polite.robots_cache import RobotsKept
from recrawl.crawl.polite.slots import Places
from recrawl.crawl.run.audits import Audits
from recrawl.crawl.run.commands import Posts
from recrawl.crawl.run.counters import Counts
from recrawl.crawl.run.crawl_page import DELAY, HOST_FAILURES, Visited, Visitor
from recrawl.crawl.run.monotonic import Onward
from recrawl.crawl.run.offload import Apart
from recrawl.crawl.run.recorder import Recorder
from recrawl.crawl.run.sweep import every_page_once
from recrawl.crawl.run.tasks import GATHER, Tending
from recrawl.engine import Engine
from recrawl.engine.addresses import host_of
from recrawl.errors import ParameterError, RecrawlError, StoreError
from recrawl.schedule.pacer import Pacer
from recrawl.store.protocol import Copy, Outcome, Store

OnEvent = Callable[[str, Mapping[str, Any]], None]

_TRUST, _TRUST_EVERY = "trust", 60.0  # the note of which servers' "not modified" is believed; seconds between two
_MOMENT = 1.0  # seconds that a host waits for a place
_GRACE = 20.0  # seconds that fetches have to end after stop()
_IDLE = 60.0  # seconds that a loop with nothing to do sleeps at most


class Crawler:
    """Crawls the pages of an engine within a budget, each outcome committed with the engine's rows.

    ``pacer`` holds the budget (default: the engine's, going on after what an earlier run has spent). Delay and
    concurrency per host are the engine's ``host_spacing`` and ``host_concurrency``; a crawl-delay of robots.txt up to
    ``longest_delay`` seconds takes their place where it is longer. A page is not asked for again while its server
    says that caches may keep it, up to ``longest_hint`` seconds. A feed whose items arrive fast is polled as often as
    it takes to miss none, but not within ``feed_interval`` seconds. Every ``posts_every`` seconds the crawler looks for
    word from other processes. ``audit_share`` of the crawls are audits, each of ``audit_draws`` pages drawn by
    ``audit_rng``. ``on_event(name, fields)`` hears of every outcome ("crawled"), of every batch that is
    safe ("saved"), of posts taken ("posts") and of mistakes in fetchers and detectors ("error").

    ``followers`` take what became of pages (`recrawl.store.Event`), by name: each is called with a list of events and
    how many before them were dropped, again and again until it does not raise, and goes on after a restart from where
    it was. ``texts`` lets events carry the pages' text.
    """

    def __init__(
        self,
        engine: Engine,
        store: Store,
        fetcher: Fetcher,
        *,
        detector: Detector | None = None,
        robots: Robots | None = None,
        robots_kept: RobotsKept | None = None,
        clock: Clock | None = None,
        pacer: Pacer | None = None,
        rules: Rules | None = None,
        hours: Hours | None = None,
        concurrency: int = 64,
        commit_delay: float = 0.1,
        commit_most: int = 500,
        longest_delay: float = 60.0,
        longest_hint: float = 600.0,
        feed_interval: float = 300.0,
        posts_every: float = 2.0,
        audit_share: float = 0.0,
        audit_draws: int = 100,
        audit_rng: np.random.Generator | None = None,
        rate: Callable[[int], float] | None = None,
        on_event: OnEvent | None = None,
        followers: Mapping[str, Take] | None = None,
        texts: bool = False,
    ) -> None:
        if concurrency < 1:
            raise ParameterError(f"concurrency is {concurrency}: must be at least 1")
        self.engine, self.store = engine, store
        self.counts = Counts()
        self._time = Onward(clock or SystemClock())
        self._on_event, self._rate = on_event, rate
        self.concurrency = concurrency
        self._posts_every = posts_every
        now, marked = self._time.now(), store.noted(MARK)
        if pacer is None:
            pacer = pacer_from(_budget_of(engine), now, marked.get(MARK))
        self.pace = Pace(pacer, hours)
        rules = rules or Rules()
        self.feeds = FeedsKept(store.noted(PREFIX), feed_interval)
        self.feeds.forget(self.feeds.strangers(engine))
        self._recorder = Recorder(
            engine,
            store,
            self._time.clock,
            rules,
            delay=commit_delay,
            most=commit_most,
            longest_hint=longest_hint,
            feeds=self.feeds,
            acknowledged=self._saved,
        )
        self._trust, self._trust_kept_at = Trust(), now
        if trusted := store.noted(_TRUST):
            self._trust.restore(trusted[_TRUST])
        self._apart = Apart(self._time.clock)
        self.turns = Turns(engine, self._time.clock, self._time.now)
        self._visitor = self._new_visitor(fetcher, detector or MainText(), robots, rules, longest_delay, texts)
        self._robots, self._robots_kept = robots, robots_kept
        self.audits = Audits(engine, store, share=audit_share, size=audit_draws, wait=self.turns.wait, rng=audit_rng)
        self._picking = True  # whether pages are crawled for their value
        self._posts = Posts(engine, store, rules, self._recorder, self.audits.ask)
        self._tending = Tending(self._time.clock, concurrency)
        self._places = Places(concurrency)
        self._deliveries = Deliveries(followers or {}, store, self._time.clock, self._recorder.call, self._tell)
        self._covering: asyncio.Task[None] | None = None
        self._posting: asyncio.Task[None] | None = None
        self.stopped = self._broken = False
        self._resume_politely(bool(marked), now)

    def _new_visitor(
        self,
        fetcher: Fetcher,
        detector: Detector,
        robots: Robots | None,
        rules: Rules,
        longest_delay: float,
        texts: bool,
    ) -> Visitor:
        return Visitor(
            fetcher,
            self.turns,
            detector=detector,
            feeds=self.feeds,
            robots=robots,
            rules=rules,
            now=self._time.now,
            further=self._further,
            charge=self.pace.charge,
            note=self._note,
            is_page=lambda url: bool(self.engine.addresses.known([url])[0] >= 0),
            longest_delay=longest_delay,
            trust=self._trust,
            apart=self._apart,
            texts=texts,
        )

    def _resume_politely(self, again: bool, now: float) -> None:
        """Whatever an earlier run asked of a host last, wait its delay out."""
        for name, delay in self.store.noted(DELAY).items():
            self.turns.slow_down(name.removeprefix(DELAY), float(delay))
        if again:
            for host in self.engine.hosts():
                if (delay := self.turns.delay(host)) > 0:
                    self.turns.hold(host, now + delay)

    # --- running ----------------------------------------------------------------------------------------------------

    async def run(
        self,
        until: float | None = None,
        *,
        once: bool = False,
        n: int | None = None,
        audit: tuple[int, float] | None = None,
    ) -> Counts:
        """Crawl until a time, until n crawls have begun, until every page was crawled once, or until ``stop()``.

        With ``audit`` (draws, level) nothing but an audit is made.
        """
        self.stopped = self.pace.over = False
        self._deliveries.begin(self._tending.watch)
        self._picking = audit is None
        if audit is not None:
            self.audits.ask(*audit)
        try:
            at = math.inf if until is None else until
            await (every_page_once(self, at) if once else self._loop(at, n))
        finally:
            try:
                await self._end()
            finally:
                await self._deliveries.close()
        return self.counts

    def now(self) -> float:
        """The time by which the crawler goes."""
        return self._time.now()

    def stop(self) -> None:
        """Begin no more crawls; ``run`` returns when those that run have ended and all is written."""
        self.stopped = True
        self._tending.stir()

    async def _loop(self, until: float, n: int | None) -> None:
        left = math.inf if n is None else n
        posts_at = self._time.now()
        while True:
            now = self._time.now()
            self._recorder.settle(now)
            self._check()
            if self.stopped or now >= until or left <= 0 or not (self._picking or self.audits.busy):
                return
            if now >= posts_at and self._posting is None:
                posts_at = now + self._posts_every
                self._posting = asyncio.create_task(self._take_posts(now))
                self._tending.watch(self._posting)
            await self._cover(now)
            started = self._start(now, left)
            left -= started
            self._save_if_due(now)
            await self._rest(now, min(until, posts_at), started > 0)

    def _start(self, now: float, left: float) -> int:
        """Begin as many crawls as budget, places and pages allow; how many."""
        ready = self.pace.ready(now)
        if ready > 0:
            self._places.make_room(now)
        n = int(min(ready, self._tending.free, left))
        if n <= 0:
            return 0
        begun = self._start_audits(now, n)
        begun += self._start_picked(now, n - begun) if self._picking else 0
        self.audits.started(begun)
        return begun

    def _start_audits(self, now: float, n: int) -> int:
        """Begin the crawls that are for an audit; how many."""
        drawn = self.audits.next(self.audits.due(n, now), now)
        allowed = [(page, url) for page, url in drawn if self._may(page, url, now)]
        for url in {url for _, url in drawn} - {url for _, url in allowed}:
            self.audits.forbidden(url, now)
        self.pace.take(now, len(allowed))
        copies = self._recorder.copies([url for _, url in allowed])
        for page, url in allowed:
            self._spawn(page, url, copies.get(url), audit=True)
        return len(allowed)

    def _start_picked(self, now: float, n: int) -> int:
        """Begin the crawls that are worth most; how many."""
        ids = self.engine.pick(now, n).tolist() if n > 0 else []
        if not ids:
            return 0
        self._recorder.picked(self.engine.threshold)
        urls = self.engine.url(ids)
        pairs, waiting = self._places.share(list(zip(ids, urls, strict=True)), now)
        for page, url in waiting:
            self.engine.release([page], now)
            self.turns.hold(host_of(url), now + _MOMENT)
        allowed = [(page, url) for page, url in pairs if self._may(page, url, now)]
        self.pace.take(now, len(allowed))
        copies = self._recorder.copies([url for _, url in allowed])
        for page, url in allowed:
            self._spawn(page, url, copies.get(url))
        return len(allowed)

    def _may(self, page: int, url: str, now: float) -> bool:
        """Whether robots.txt, if it was read, lets a page be fetched; else it is set aside."""
        rule = None if self._robots is None else self._robots.said(url)
        if rule is None or rule.allowed or self._robots is None:
            return True
        self._recorder.ended(
            page, Outcome(url, now, failure="robots", requests=0), None, self._robots.ask_again_at(url)
        )
        self.counts.set_aside += 1
        return False

    async def _crawl(self, page: int, url: str, copy: Copy | None, audit: bool = False) -> bool:
        """Visit a page; whether it was visited, and not only the robots.txt of its host."""
        visited = Visited(back=True)
        try:
            visited = await self._visited(url, copy, full=audit)
        finally:
            if audit and visited.outcome is None:
                self.audits.back(url)
            elif visited.outcome is None and self.engine.addresses.known([url])[0] == page:
                self.engine.release([page], self._time.now())
        if visited.outcome is None:
            self.counts.requests += visited.n_requests
            return False
        if audit:
            self.audits.ended(page, visited.outcome, self._time.now())
        self._recorder.ended(page, visited.outcome, copy, visited.aside_until, visited.good_for)
        self.counts.add(visited.outcome, visited.n_bytes, host_of(url))
        self._tell("crawled", outcome=visited.outcome)
        return True

    async def _visited(self, url: str, copy: Copy | None, *, full: bool) -> Visited:
        """A visit; a mistake in a fetcher or detector is that page's failure, and told, not the end of the crawl."""
        began, host = self._time.now(), host_of(url)
        limit, answered = asyncio.timeout(None), False
        try:
            async with limit:
                with self._places.taken(host, began, limit):
                    visited = await self._visitor.visit(url, copy, full=full)
            answered = visited.outcome is None or visited.outcome.failure not in HOST_FAILURES
        except RecrawlError:
            raise
        except Exception as problem:
            visited = Visited(Outcome(url, began, self._time.now() - began, failure=self._word(url, problem, limit)))
        self._places.ended(host, self._time.now() - began, answered=answered)
        return visited

    def _word(self, url: str, problem: Exception, limit: asyncio.Timeout) -> str:
        """The failure of a visit that made room for others, or in which there is a mistake."""
        if limit.expired():
            self.turns.failed(host_of(url), busy=False)
            return "timeout"
        self.counts.errors += 1
        self._tell("error", url=url, problem=problem)
        return f"error: {type(problem).__name__}"

    def _spawn(self, page: int, url: str, copy: Copy | None, audit: bool = False) -> asyncio.Task[bool]:
        self.counts.started += 1
        return self._tending.begin(self._crawl(page, url, copy, audit))

    async def _rest(self, now: float, until: float, busy: bool) -> None:
        """Sleep until something may be done, or a crawl ends."""
        unsettled, free = self._recorder.unsettled, self._tending.free
        if unsettled and (not busy or free > 0):
            return
        at = min(until, self._recorder.due_at(now), now + (GATHER if unsettled else _IDLE))
        next_at = now + _MOMENT  # with no place free, slow crawls may have to make room
        if free > 0:
            next_at = self.engine.next_at(now) if self._picking else math.inf
            next_at = max(self.pace.next_at(now), min(next_at, self.audits.next_at(now)))
        at = min(at, next_at)
        if self.pace.n_waiting:
            at = min(at, self.pace.next_at(now))
        await (asyncio.sleep(0) if busy and at <= now else self._tending.sleep(at - now))

    # --- budget, store ----------------------------------------------------------------------------------------------

    async def _further(self) -> None:
        """Wait for the budget of one further request."""
        turn = self.pace.turn()
        self._tending.stir()
        await turn

    async def _cover(self, now: float) -> None:
        """Note up to when the budget counts as spent, before it is; early enough that the loop need not wait."""
        cover = self.pace.next_cover(now)
        if cover is not None and self._covering is None:
            self._covering = asyncio.create_task(self._write_cover(cover))
            self._tending.watch(self._covering)
        if self._covering is not None and now > self.pace.covered:
            await asyncio.wait([self._covering])
            self._check()

    async def _write_cover(self, cover: float) -> None:
        try:
            await self._recorder.call(lambda: self.store.save(notes={MARK: self.pace.mark(cover)}))
            self.pace.covered = cover
        finally:
            self._covering = None

    async def _note(self, name: str, value: object) -> None:
        await self._recorder.call(lambda: self.store.save(notes={name: value}))

    def _news(self) -> dict[str, object]:
        """What was learned of feeds and robots.txt since the last time."""
        return self.feeds.news() | ({} if self._robots_kept is None else self._robots_kept.news())

    def _save_if_due(self, now: float) -> None:
        if self._recorder.due_at(now) <= now:
            notes = {**self._news(), **self.audits.news()}
            if now - self._trust_kept_at > _TRUST_EVERY:
                self._trust_kept_at = now
                notes[_TRUST] = self._trust.state()
            self._tending.watch(self._recorder.begin_save(notes))

    def _saved(self, outcomes: list[Outcome]) -> None:
        self.counts.acknowledged += len(outcomes)
        if outcomes:
            self._tell("saved", outcomes=outcomes)
            self._deliveries.stir()

    async def _take_posts(self, now: float) -> None:
        try:
            taken = await self._posts.take(now)
            if taken:
                self._tell("posts", n=taken)
                self._deliveries.stir()
            if self._rate is not None and len(self.engine):
                self.pace.set_rate(self._rate(len(self.engine)), self._time.now())
        finally:
            self._posting = None

    def _check(self) -> None:
        try:
            self._tending.check()
        except StoreError:
            self._broken = True  # what follows on something that was not written must not be written either
            raise

    def _tell(self, name: str, **fields: Any) -> None:
        if self._on_event is not None:
            self._on_event(name, fields)

    async def _end(self) -> None:
        """Let crawls end, write what they found, and up to when the budget is spent."""
        self.pace.end()
        await self._tending.end(_GRACE)
        if self._broken:
            return
        for task in (self._recorder.saving, self._covering, self._posting):
            if task is not None:
                await asyncio.wait([task])
        self._check()
        now = self._time.now()
        if self.audits.busy:
            self.audits.end(now)
        notes = {MARK: self.pace.last_mark(now), _TRUST: self._trust.state()}
        notes |= {**self._news(), **self.audits.news(last=True)}
        await self._recorder.finish(notes, now)
        self.pace.covered = -math.inf
        await self._deliveries.finish()
        self._check()

    def close(self) -> None:
        """Give back what the crawler made itself; store and fetcher stay open."""
        self._recorder.close()
        self._apart.close()


def _budget_of(engine: Engine) -> float:
    if engine.budget is None:
        raise ParameterError("there is no budget: give a pacer, or an engine with a budget")
    return engine.budget
