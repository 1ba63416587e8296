"""Crawler: the driver. It asks the engine what to crawl, crawls it politely, and records what it found."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from recrawl.crawl.clock import Clock, SystemClock
from recrawl.crawl.counts import Counts
from recrawl.crawl.detect import Detector, VisibleText
from recrawl.crawl.fetched import Fetcher
from recrawl.crawl.hours import Hours
from recrawl.crawl.once import hosts_in_order
from recrawl.crawl.onward import Onward
from recrawl.crawl.pace import MARK, Pace, pacer_from
from recrawl.crawl.posts import Posts
from recrawl.crawl.recorder import Recorder
from recrawl.crawl.robots import Robots
from recrawl.crawl.robots_kept import RobotsKept
from recrawl.crawl.rules import Rules
from recrawl.crawl.trust import Trust
from recrawl.crawl.turns import Turns
from recrawl.crawl.visitor import DELAY, Visitor
from recrawl.engine import Engine
from recrawl.engine.addresses import host_of
from recrawl.errors import ParameterError, StoreError
from recrawl.schedule.pacer import Pacer
from recrawl.store.base import Copy, Outcome, Store

OnEvent = Callable[[str, Mapping[str, Any]], None]

_TRUST, _TRUST_EVERY = "trust", 60.0  # the note of which servers' "not modified" is believed; seconds between two
_GRACE = 20.0  # seconds that fetches have to end after stop()
_IDLE = 60.0  # seconds that a loop with nothing to do sleeps at most
_LEAST_REST = 0.001
_GATHER = 0.01  # seconds that ended crawls wait for others while most places are taken: engines like batches


class Crawler:
    """Crawls the pages of an engine within a budget, each outcome committed with the engine's rows.

    ``pacer`` holds the budget (default: the engine's, going on after what an earlier run has spent). Delay and
    concurrency per host are the engine's ``host_spacing`` and ``host_concurrency``; a crawl-delay of robots.txt up to
    ``longest_delay`` seconds takes their place where it is longer. Every ``posts_every`` seconds it looks for word from
    other processes. ``on_event(name, fields)`` hears of every outcome ("crawled"), of every batch that is safe
    ("saved") and of posts taken ("posts").
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
        posts_every: float = 2.0,
        rate: Callable[[int], float] | None = None,
        on_event: OnEvent | None = None,
    ) -> None:
        if concurrency < 1:
            raise ParameterError(f"concurrency is {concurrency}: must be at least 1")
        self.engine, self.store = engine, store
        self.counts = Counts()
        self._time = Onward(clock or SystemClock())
        self._on_event, self._concurrency, self._rate = on_event, concurrency, rate
        self._posts_every = posts_every
        now, marked = self._time.now(), store.noted(MARK)
        if pacer is None:
            pacer = pacer_from(_budget_of(engine), now, marked.get(MARK))
        self.pace = Pace(pacer, hours)
        rules = rules or Rules()
        self._recorder = Recorder(
            engine, store, self._time.clock, rules, delay=commit_delay, most=commit_most, acknowledged=self._saved
        )
        self._trust, self._trust_kept_at = Trust(), now
        if trusted := store.noted(_TRUST):
            self._trust.restore(trusted[_TRUST])
        self.turns = Turns(engine, self._time.clock, self._time.now)
        self._visitor = Visitor(
            fetcher,
            self.turns,
            detector=detector or VisibleText(),
            robots=robots,
            rules=rules,
            now=self._time.now,
            further=self._further,
            note=self._note,
            is_page=lambda url: bool(engine.addresses.known([url])[0] >= 0),
            longest_delay=longest_delay,
            trust=self._trust,
        )
        self._robots, self._robots_kept = robots, robots_kept
        self._posts = Posts(engine, store, rules, self._recorder)
        self._tasks: set[asyncio.Task[bool]] = set()
        self._places = asyncio.Semaphore(concurrency)
        self._stopped = self._broken = False
        self._problem: BaseException | None = None
        self._awake: asyncio.Future[None] | None = None
        self._gathering: asyncio.Future[None] | None = None
        self._resume_politely(bool(marked), now)

    def _resume_politely(self, again: bool, now: float) -> None:
        """Whatever an earlier run asked of a host last, wait its delay out."""
        for name, delay in self.store.noted(DELAY).items():
            self.turns.slow_down(name.removeprefix(DELAY), float(delay))
        if again:
            for host in self.engine.hosts():
                if (delay := self.turns.delay(host)) > 0:
                    self.turns.hold(host, now + delay)

    # --- running ----------------------------------------------------------------------------------------------------

    async def run(self, until: float | None = None, *, once: bool = False, n: int | None = None) -> Counts:
        """Crawl until a time, until n crawls have begun, until every page was crawled once, or until ``stop()``."""
        self._stopped = False
        try:
            at = math.inf if until is None else until
            await (self._once(at) if once else self._loop(at, n))
        finally:
            await self._end()
        return self.counts

    def now(self) -> float:
        """The time by which the crawler goes."""
        return self._time.now()

    def stop(self) -> None:
        """Begin no more crawls; ``run`` returns when those that run have ended and all is written."""
        self._stopped = True
        self._stir()

    async def _loop(self, until: float, n: int | None) -> None:
        left = math.inf if n is None else n
        posts_at = self._time.now()
        while True:
            now = self._time.now()
            self._recorder.settle(now)
            self._raise()
            if self._stopped or now >= until or left <= 0:
                return
            if now >= posts_at:
                posts_at = now + self._posts_every
                await self._take_posts(now)
            await self._cover(now)
            started = self._start(now, left)
            left -= started
            self._save_if_due(now)
            await self._rest(now, min(until, posts_at), started > 0)

    def _start(self, now: float, left: float) -> int:
        """Begin as many crawls as budget, places and pages allow; how many."""
        n = int(min(self.pace.ready(now), self._concurrency - len(self._tasks), left))
        if n <= 0:
            return 0
        ids = self.engine.pick(now, n).tolist()
        if not ids:
            return 0
        self._recorder.picked(self.engine.threshold)
        urls = self.engine.url(ids)
        allowed = [(page, url) for page, url in zip(ids, urls, strict=True) if self._may(page, url, now)]
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

    async def _crawl(self, page: int, url: str, copy: Copy | None) -> bool:
        """Visit a page; whether it was visited, and not only the robots.txt of its host."""
        visited = await self._visitor.visit(url, copy)
        now = self._time.now()
        if visited.outcome is None:
            if self.engine.addresses.known([url])[0] == page:
                self.engine.release([page], now)
            self.counts.requests += 1
            return False
        self._recorder.ended(page, visited.outcome, copy, visited.aside_until)
        self.counts.add(visited.outcome, visited.n_bytes, host_of(url))
        self._tell("crawled", outcome=visited.outcome)
        return True

    def _spawn(self, page: int, url: str, copy: Copy | None) -> asyncio.Task[bool]:
        task = asyncio.create_task(self._crawl(page, url, copy))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        self.counts.started += 1
        return task

    def _ended(self, task: asyncio.Task[bool]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._problem = self._problem or task.exception()
        free = self._concurrency - len(self._tasks)
        if self._problem is None and free < self._concurrency // 4:
            self._stir_soon()
        else:
            self._stir()

    def _stir_soon(self) -> None:
        if self._gathering is None and self._awake is not None:
            self._gathering = asyncio.ensure_future(self._time.clock.sleep(_GATHER))
            self._gathering.add_done_callback(self._gathered)

    def _gathered(self, timer: asyncio.Future[None]) -> None:
        self._gathering = None
        if not timer.cancelled():
            self._stir()

    async def _rest(self, now: float, until: float, busy: bool) -> None:
        """Sleep until something may be done, or a crawl ends."""
        unsettled = self._recorder.unsettled
        if unsettled and (not busy or len(self._tasks) < self._concurrency):
            return
        at = min(until, self._recorder.due_at(now), now + (_GATHER if unsettled else _IDLE))
        if len(self._tasks) < self._concurrency:
            at = min(at, max(self.pace.next_at(now), self.engine.next_at(now)))
        if self.pace.n_waiting:
            at = min(at, self.pace.next_at(now))
        if busy and at <= now:
            await asyncio.sleep(0)
            return
        self._awake = asyncio.get_running_loop().create_future()
        timer = asyncio.ensure_future(self._time.clock.sleep(max(at - now, _LEAST_REST)))
        timer.add_done_callback(lambda done: None if done.cancelled() else self._stir())
        try:
            await self._awake
        finally:
            timer.cancel()
            self._awake = None

    def _stir(self) -> None:
        if self._awake is not None and not self._awake.done():
            self._awake.set_result(None)

    # --- one pass over all pages ------------------------------------------------------------------------------------

    async def _once(self, until: float) -> None:
        """Every page one time: each host's pages in the order of their value."""
        walks = [
            asyncio.create_task(self._walk(pages))
            for pages in hosts_in_order(self.engine, self._time.now())
            for _ in range(int(min(self.engine.settings.host_concurrency or self._concurrency, len(pages))))
        ]
        for walk in walks:
            walk.add_done_callback(lambda _: self._stir())
        try:
            while not all(walk.done() for walk in walks):
                now = self._time.now()
                self._recorder.settle(now)
                self._raise()
                if self._stopped or now >= until:
                    return
                await self._cover(now)
                self.pace.ready(now)
                self._save_if_due(now)
                await self._rest(now, until, False)
            await asyncio.gather(*walks)
        finally:
            for walk in walks:
                walk.cancel()
            await asyncio.gather(*walks, return_exceptions=True)

    async def _walk(self, pages: deque[tuple[int, str]]) -> None:
        while pages:
            page, url = pages.popleft()
            visited = False
            while not visited:
                async with self._places:
                    await self._further()
                    if not self._may(page, url, self._time.now()):
                        break
                    copy = self._recorder.copies([url]).get(url)
                    visited = await asyncio.shield(self._spawn(page, url, copy))

    # --- budget, store ----------------------------------------------------------------------------------------------

    async def _further(self) -> None:
        """Wait for the budget of one further request."""
        turn = self.pace.turn()
        self._stir()
        await turn

    async def _cover(self, now: float) -> None:
        """Note up to when the budget counts as spent, before it is."""
        cover = self.pace.next_cover(now)
        if cover is not None:
            await self._recorder.call(lambda: self.store.save(notes={MARK: self.pace.mark(cover)}))
            self.pace.covered = cover

    async def _note(self, name: str, value: object) -> None:
        await self._recorder.call(lambda: self.store.save(notes={name: value}))

    def _save_if_due(self, now: float) -> None:
        if self._recorder.due_at(now) <= now:
            notes = {} if self._robots_kept is None else self._robots_kept.news()
            if now - self._trust_kept_at > _TRUST_EVERY:
                self._trust_kept_at = now
                notes[_TRUST] = self._trust.state()
            self._recorder.begin_save(notes).add_done_callback(self._ended_save)

    def _ended_save(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._problem = self._problem or task.exception()
        self._stir()

    def _saved(self, outcomes: list[Outcome]) -> None:
        self.counts.acknowledged += len(outcomes)
        if outcomes:
            self._tell("saved", outcomes=outcomes)

    async def _take_posts(self, now: float) -> None:
        taken = await self._posts.take(now)
        if taken:
            self._tell("posts", n=taken)
        if self._rate is not None and len(self.engine):
            self.pace.set_rate(self._rate(len(self.engine)), now)

    def _raise(self) -> None:
        if self._problem is not None:
            problem, self._problem = self._problem, None
            self._broken = self._broken or isinstance(problem, StoreError)  # what is not written cannot go on
            raise problem

    def _tell(self, name: str, **fields: Any) -> None:
        if self._on_event is not None:
            self._on_event(name, fields)

    async def _end(self) -> None:
        """Let crawls end, write what they found, and up to when the budget is spent."""
        self.pace.dismiss()
        ends_at = self._time.now() + _GRACE
        while self._tasks and (now := self._time.now()) < ends_at:
            self._recorder.settle(now)
            await self._rest(now, ends_at, False)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        now = self._time.now()
        if isinstance(self._problem, StoreError) or self._broken:
            self._raise()
            return
        notes = {MARK: self.pace.last_mark(now), _TRUST: self._trust.state()}
        notes |= {} if self._robots_kept is None else self._robots_kept.news()
        await self._recorder.finish(notes, now)
        self.pace.covered = -math.inf
        self._raise()

    def close(self) -> None:
        """Give back what the crawler made itself; store and fetcher stay open."""
        self._recorder.close()


def _budget_of(engine: Engine) -> float:
    if engine.budget is None:
        raise ParameterError("there is no budget: give a pacer, or an engine with a budget")
    return engine.budget
