"""Replay: the live crawler on a recorded trace, by the manual clock; staleness is counted as by the simulator."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from recrawl.crawl.config.settings import Settings
from recrawl.crawl.http.memory import ManualClock, MemoryWeb
from recrawl.crawl.polite.budget import Budget
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.run.opening.assemble import Web, agent_of, engine_of, new_crawler, options_of
from recrawl.demo.replay.happenings import DAY, Happenings, ReplayOptions
from recrawl.demo.replay.web import TraceWeb
from recrawl.errors import ParameterError
from recrawl.simulate.tally import Judge, Run
from recrawl.simulate.trace import Trace
from recrawl.store import MemoryStore
from recrawl.store.protocol import Outcome

_BATCH = DAY  # seconds of the trace that outcomes wait for a batch: a year has few batches
_SELDOM = 30 * DAY  # between two checks for commands, of which there are none


@dataclass(frozen=True)
class Replay:
    """What a replay came to; ``run`` is counted as by the simulator, from the times at which copies were renewed.

    ``requests`` counts all requests of the crawler, ``allowed`` is what the budget allowed, ``polls`` are those of
    listings by host, ``poll_times`` when they were made. ``wrong`` are crawls whose outcome (changed or not) differs
    from what happened to the page. ``events`` are those of the store.
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
    polls: Mapping[str, int] = field(default_factory=dict)
    poll_times: Mapping[str, list[float]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The figures."""
        figures = {name: value for name, value in asdict(self).items() if name not in ("run", "poll_times")}
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
        self._judge = Judge(trace, count_from=options.count_from, bins=options.bins)
        self._wrong, self._polls = 0, defaultdict[str, list[float]](list)
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
            polls={host: len(times) for host, times in self._polls.items()},
            poll_times=dict(self._polls),
        )

    async def _open(self) -> Crawler:
        """The crawler, built as `recrawl run` builds it."""
        now, settings = self._clock.now(), self._settings
        make = self._options.engine
        engine = await engine_of(self._store, settings, now) if make is None else make(self._budget, now)
        engine.budget = self._budget
        fetcher = MemoryWeb(self._web.answer, self._clock)
        web = Web(agent_of(settings), fetcher, fetcher if settings.robots else None, self._clock)
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
        happenings = Happenings(self._trace, self._web, self._store, crawler, self._options)
        await happenings.begin()
        following = asyncio.create_task(happenings.follow())
        crawler.components.pool.watch(following)
        try:
            await self._clock.sleep(1.0 / self._budget)  # the simulator's first slot
            await crawler.run(self._trace.end)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    # --- what the crawler reports -------------------------------------------------------------------------------------

    def _reported(self, name: str, fields: Mapping[str, Any]) -> None:
        """Count a crawl that renewed a copy, and a poll."""
        if name == "polled":
            self._polls[fields["listing"].host].append(self._clock.now())
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
