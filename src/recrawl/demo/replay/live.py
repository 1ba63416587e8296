"""Replay: the live crawler on a recorded trace, by the manual clock; staleness is counted as by the simulator."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.crawl.config.settings import Settings
from recrawl.crawl.http.memory import ManualClock, MemoryWeb
from recrawl.crawl.polite.budget import Budget
from recrawl.crawl.run.compare import Hop
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.run.opening.assemble import Web, agent_of, engine_of, new_crawler, options_of
from recrawl.crawl.run.opening.pages import add_pages, save_pages
from recrawl.demo.replay.web import TraceWeb
from recrawl.errors import ParameterError
from recrawl.simulate.run.run import membership
from recrawl.simulate.tally import Judge, Run
from recrawl.simulate.trace import Trace
from recrawl.store import MemoryStore
from recrawl.store.protocol import Outcome

Ids = NDArray[np.int64]

DAY = 86400.0
_BATCH = DAY  # seconds of the trace that outcomes wait for a batch: a year has few batches
_SELDOM = 30 * DAY  # between two checks for commands, of which there are none


@dataclass(frozen=True)
class ReplayOptions:
    """How a trace is replayed.

    ``signals``: the trace's signals reach the engine when they come. ``find_deleted``: pages that are deleted are not
    removed; crawls find that they are gone. ``settings`` are settings of the crawl that replace those of a replay: no
    delay between requests of a host, no robots.txt, and every crawl of the budget is made, however unlikely a change
    is, as in the simulator. Staleness is counted from ``count_from`` on (default: the start). ``progress`` gets the
    share of the time that is done.
    """

    signals: bool = True
    find_deleted: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    count_from: float | None = None
    progress: Callable[[float], None] | None = None


@dataclass(frozen=True)
class Replay:
    """What a replay came to; ``run`` is counted as by the simulator, from the times at which copies were renewed.

    ``requests`` counts all requests of the crawler, ``allowed`` is what the budget allowed. ``wrong`` are crawls whose
    outcome (changed or not) differs from what happened to the page. ``events`` are those of the store.
    """

    run: Run
    requests: int
    allowed: float
    not_modified: int
    gone: int
    failed: int
    wrong: int
    events: int
    seconds: float  # of real time

    def as_dict(self) -> dict[str, Any]:
        """The figures."""
        figures = {name: value for name, value in asdict(self).items() if name != "run"}
        return {"staleness": self.run.staleness, "changes_found": self.run.changes_found, **figures}


def replay_trace(trace: Trace, budget: float, options: ReplayOptions | None = None) -> Replay:
    """Crawl a trace's pages live with ``budget`` requests per second, from its start to its end.

    Times of the trace must be seconds (``day`` is 86400). Every page has a fresh copy when it comes, as in the
    simulator; the copy costs no request. Requests start at start + k/budget for k = 1, 2, …
    """
    if trace.day != DAY:
        raise ParameterError(f"{trace.name}: its times are not in seconds, a day lasts {trace.day:g}")
    if not 0 < budget < np.inf:
        raise ParameterError(f"budget is {budget:g}: must be finite and above 0")
    return asyncio.run(_Replaying(trace, budget, options or ReplayOptions()).run())


def even_budget(rate: float) -> float:
    """The budget nearest to a rate whose crawls are a whole number of 1/1024 s apart.

    Such times are exact in binary: live crawler and simulator crawl at the same instants, and take pages of equal value
    in the same order.

    >>> even_budget(0.1), 1.0 / even_budget(0.3) * 1024.0
    (0.1, 3413.0)
    """
    return 1024.0 / max(round(1024.0 / rate), 1)


class _Replaying:
    """One replay."""

    def __init__(self, trace: Trace, budget: float, options: ReplayOptions) -> None:
        self._trace, self._budget, self._options = trace, budget, options
        self._clock = ManualClock(trace.start)
        self._web = TraceWeb(trace)
        self._store = MemoryStore(keep=0)
        self._judge = Judge(trace, count_from=options.count_from)
        self._wrong = 0
        given = {"budget": f"{budget!r}/s", "delay": "0 s", "robots": False, "min_change_probability": "0"}
        self._settings = Settings(**{**given, "contact": "replay.invalid", **options.settings})

    async def run(self) -> Replay:
        """Crawl from the start of the trace to its end."""
        began = time.perf_counter()
        crawler = await self._open()
        try:
            await self._clock.drive(self._crawl(crawler))
        finally:
            crawler.close()
        counters, trace = crawler.counters, self._trace
        return Replay(
            run=self._judge.verdict(),
            requests=counters.requests,
            allowed=self._budget * (trace.end - trace.start),
            not_modified=counters.not_modified,
            gone=counters.gone,
            failed=counters.failed,
            wrong=self._wrong,
            events=(await self._store.event_counts())["last"],
            seconds=round(time.perf_counter() - began, 2),
        )

    async def _open(self) -> Crawler:
        """The crawler, built as `recrawl run` builds it."""
        now, settings = self._clock.now(), self._settings
        engine = await engine_of(self._store, settings, now)
        engine.budget = self._budget
        web = Web(agent_of(settings), MemoryWeb(self._web.answer, self._clock), None, self._clock)
        options = replace(
            options_of(settings, 1, now),
            budget=Budget(self._budget, now + 1.0 / self._budget),
            commit_delay=_BATCH,
            commands_every=_SELDOM,
            notes_every=_SELDOM,
            longest_sleep=_SELDOM,
            on_event=self._reported,
        )
        return new_crawler(engine, self._store, web, options)

    async def _crawl(self, crawler: Crawler) -> None:
        changes = membership(self._trace, self._trace.start, self._trace.end)
        first = next(changes)  # pages that exist at the start
        await self._add(crawler, first[1])
        await self._remove(crawler, first[2])
        following = asyncio.create_task(self._follow(crawler, changes))
        crawler.components.pool.watch(following)
        try:
            await self._clock.sleep(1.0 / self._budget)  # the simulator's first slot
            await crawler.run(self._trace.end)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    # --- what happens in the trace ------------------------------------------------------------------------------------

    async def _follow(self, crawler: Crawler, changes: Any) -> None:
        """Add and remove pages, and pass signals, each at its time."""
        passed = 0
        for at, come, gone in changes:
            passed = await self._pass_signals(crawler, passed, at)
            await self._clock.sleep(at - self._clock.now())
            await self._add(crawler, come)
            await self._remove(crawler, gone)
        await self._pass_signals(crawler, passed, self._trace.end)

    async def _add(self, crawler: Crawler, pages: Ids) -> None:
        """Add pages with fresh copies."""
        if not len(pages):
            return
        now, urls = self._clock.now(), [self._web.urls[page] for page in pages.tolist()]
        weight = self._trace.importance[pages]
        rules = crawler.components.options.rules
        new = add_pages(crawler.engine, rules, urls, now, importance=weight, fetched_at=now)
        copies = [await self._copy(crawler, url) for url in urls]
        await save_pages(crawler.engine, self._store, new)
        await self._store.save(copies)

    async def _copy(self, crawler: Crawler, url: str) -> Outcome:
        """A copy of a page as it is now, that no request was made for."""
        fetched = await MemoryWeb(self._web.answer, self._clock).fetch(url)
        outcome = await crawler.components.comparer.outcome(Hop(url, url, self._clock.now()), fetched, None)
        return replace(outcome, requests=0)

    async def _remove(self, crawler: Crawler, pages: Ids) -> None:
        """Remove pages, unless crawls are to find that they are gone."""
        if not len(pages) or self._options.find_deleted:
            return
        urls = [self._web.urls[page] for page in pages.tolist()]
        crawler.engine.remove(crawler.engine.id(urls))
        await self._store.save(removed=urls, at=self._clock.now())

    async def _pass_signals(self, crawler: Crawler, passed: int, until: float) -> int:
        """Pass the signals before a time to the engine, each when it comes; how many were passed so far."""
        if self._trace.signals is None or not self._options.signals:
            return passed
        at, page, source, about = self._trace.signals
        while passed < len(at) and at[passed] < until:
            await self._clock.sleep(float(at[passed]) - self._clock.now())
            known = crawler.engine.addresses.known([self._web.urls[page[passed]]])
            stated = None if np.isinf(about[passed]) else about[passed : passed + 1]
            crawler.engine.signal(known[known >= 0], float(at[passed]), source=int(source[passed]), changed_at=stated)
            passed += 1
        return passed

    # --- what the crawler reports -------------------------------------------------------------------------------------

    def _reported(self, name: str, fields: Mapping[str, Any]) -> None:
        """Count a crawl that renewed a copy."""
        if name != "crawled":
            return
        outcome: Outcome = fields["outcome"]
        if outcome.fetched:
            page = self._web.page_of(outcome.url)
            changed = self._judge.crawl(np.array([page]), outcome.began_at)[0]
            self._wrong += bool(changed) is not bool(outcome.changed)
        if self._options.progress is not None:
            start, end = self._trace.start, self._trace.end
            self._options.progress((outcome.began_at - start) / (end - start))
