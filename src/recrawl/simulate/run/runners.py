"""Runners: drive a policy through slots, by a compiled loop where there is one, else by the protocol."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from recrawl.engine import Engine
from recrawl.schedule.exact import access
from recrawl.schedule.exact.scheduler import Scheduler
from recrawl.schedule.policy import Policy
from recrawl.schedule.rates.execution import Draws
from recrawl.schedule.rates.policy import RatePolicy
from recrawl.schedule.table import horizon
from recrawl.simulate.rivals import kernels as rivals
from recrawl.simulate.rivals.policy import DuePolicy
from recrawl.simulate.run import loop_kernels as loop
from recrawl.simulate.run.clairvoyant import Clairvoyant
from recrawl.simulate.run.clairvoyant_kernels import run_clairvoyant
from recrawl.simulate.run.trailing import Trailing
from recrawl.simulate.tally import Judge
from recrawl.simulate.trace import Signals, Trace

Ids = NDArray[np.int64]
Array = NDArray[np.float64]

_SILENCE = Signals.of(np.zeros(0), np.zeros(0))


class Runner(Protocol):
    """Steps a policy through time."""

    def run(self, anchor: float, period: float, slot: int, last: int, batch: int) -> int:
        """Do the slots from ``slot`` to before ``last``, slot k at anchor + k·period; the next slot."""
        ...


def runner_of(policy: Policy | Clairvoyant | Trailing, trace: Trace, judge: Judge) -> Runner:
    """The fastest runner for a policy."""
    if isinstance(policy, Trailing):
        return TrailingRunner(policy, trace, judge)
    if isinstance(policy, Scheduler):
        return SchedulerRunner(policy, trace, judge)
    if isinstance(policy, Engine):
        return EngineRunner(policy, trace, judge)
    if isinstance(policy, RatePolicy):
        return RateRunner(policy, trace, judge)
    if isinstance(policy, DuePolicy):
        return RivalRunner(policy, trace, judge)
    if isinstance(policy, Clairvoyant):
        return ClairvoyantRunner(policy, trace, judge)
    return PlainRunner(policy, trace, judge)


class PlainRunner:
    """Drives any policy by its protocol."""

    def __init__(self, policy: Any, trace: Trace, judge: Judge) -> None:
        self._policy, self._judge = policy, judge
        self._end = np.where(trace.deleted_at < trace.end, trace.deleted_at, np.inf)
        self._signals = trace.signals or _SILENCE
        self._passed = 0

    def run(self, anchor: float, period: float, slot: int, last: int, batch: int) -> int:
        """Do the slots from ``slot`` to before ``last``."""
        for k in range(slot, last):
            now = anchor + k * period
            self._pass_signals(now)
            ids = self._policy.pick(now, batch)
            if len(ids):
                self._policy.record(ids, now, changed=self._judge.crawl(ids, now))
        return max(last, slot)

    def run_demand(self, begin: float, until: float) -> None:
        """Crawl all that is due whenever it is due, from ``begin`` to before ``until``."""
        now, at = begin, self._signals.at
        while True:
            signal_at = float(at[self._passed]) if self._passed < len(at) else np.inf
            now = max(now, min(self._policy.next_at(now), signal_at))
            if not now < until:
                return
            self._pass_signals(now)
            ids = self._policy.pick(now, len(self._end))
            if len(ids):
                self._policy.record(ids, now, changed=self._judge.crawl(ids, now))

    def _pass_signals(self, now: float) -> None:
        at, page, source, changed_at = self._signals
        while self._passed < len(at) and at[self._passed] <= now:
            k = self._passed
            if self._end[page[k]] > now:
                about = None if np.isinf(changed_at[k]) else changed_at[k : k + 1]
                self._policy.signal(page[k : k + 1], float(at[k]), source=int(source[k]), changed_at=about)
            self._passed += 1


class SchedulerRunner(PlainRunner):
    """Drives a scheduler by the compiled loop, one crawl per slot."""

    def __init__(self, policy: Scheduler, trace: Trace, judge: Judge) -> None:
        super().__init__(policy, trace, judge)
        self._scheduler = policy
        self._cursor = np.array(loop.START)
        when, page, _, changed_at = self._signals
        self._order = np.argsort(page, kind="stable")
        self._weighed_pages = 0
        self._queue = loop.SignalQueue(when, page, changed_at, np.ones(len(when)))

    def run(self, anchor: float, period: float, slot: int, last: int, batch: int) -> int:
        """Do the slots from ``slot`` to before ``last``."""
        if batch > 1:
            return super().run(anchor, period, slot, last, batch)
        if last <= slot:
            return slot
        tally, cursor, queue = self._judge.tally, self._cursor, self._weighed()
        cursor[loop.SLOT] = slot
        grid = np.array([anchor, period])
        access.repeat(self._scheduler, lambda header: loop.run_scheduler(header, tally, queue, grid, last, cursor))
        return last

    def _weighed(self) -> loop.SignalQueue:
        """The signals with their weights; those of pages that were added since the last call are computed now."""
        _, page, source, _ = self._signals
        known = access.id_count(self._scheduler)
        first, last = np.searchsorted(page, [self._weighed_pages, known], sorter=self._order)
        self._weighed_pages = known
        new = self._order[first:last]
        for k in np.unique(source[new]).tolist():
            rows = new[source[new] == k]
            self._queue.weight[rows] = access.signal_weights(self._scheduler, page[rows], k)
        return self._queue


class TrailingRunner(SchedulerRunner):
    """Drives the policy that knows past rates like a scheduler, with stops where its rates are renewed."""

    def __init__(self, policy: Trailing, trace: Trace, judge: Judge) -> None:
        super().__init__(policy.scheduler, trace, judge)
        self._trailing = policy

    def run(self, anchor: float, period: float, slot: int, last: int, batch: int) -> int:
        """Do the slots from ``slot`` to before ``last``."""
        while slot < last:
            due = int(np.ceil((self._trailing.renew_at - anchor) / period))
            slot = super().run(anchor, period, slot, min(max(due, slot), last), batch)
            if slot >= due:
                self._trailing.renew(self._trailing.renew_at)
        return slot


class RateRunner(PlainRunner):
    """Drives a rate policy by the compiled loop, one crawl per slot; signals are ignored."""

    def run(self, anchor: float, period: float, slot: int, last: int, batch: int) -> int:
        """Do the slots from ``slot`` to before ``last``."""
        if batch > 1:
            return super().run(anchor, period, slot, last, batch)
        if last <= slot:
            return slot
        policy: RatePolicy = self._policy
        execution = policy.begin_slots(anchor + slot * period)  # new rates hold from the slot on
        grid, until = np.array([anchor, period]), anchor + (last - 1) * period
        tally, crawled_at = self._judge.tally, policy.crawled_at
        if isinstance(execution, Draws):
            chance, used = execution.chances(last - slot)
            loop.run_draws(execution.book, execution.tree, tally, crawled_at, chance, used, grid, slot)
        else:
            slack = horizon(until) - until
            loop.run_deadlines(execution.book, tally, crawled_at, grid, slot, last, slack)
        policy.end_slots(until)
        return last


class EngineRunner(PlainRunner):
    """Drives an engine by the compiled loop, one crawl per slot.

    It stops where the tables are to be fitted and where all clocks are to be published.
    The compiled loop knows no page without a copy and no least probability of a change: where there is one, the engine
    is driven by its protocol.
    """

    def __init__(self, policy: Engine, trace: Trace, judge: Judge) -> None:
        super().__init__(policy, trace, judge)
        self._engine: Engine = policy
        self._cursor = np.array(loop.START)
        when, page, source, changed_at = self._signals if policy.settings.uses_signals else _SILENCE
        self._queue = loop.SignalQueue(when, page, changed_at, source.astype(np.float64))

    def run(self, anchor: float, period: float, slot: int, last: int, batch: int) -> int:
        """Do the slots from ``slot`` to before ``last``."""
        if batch > 1 or not self._engine.all_copied() or self._engine.settings.by_protocol:
            self._passed = max(self._passed, int(self._cursor[loop.SIGNAL]))
            slot = super().run(anchor, period, slot, last, batch)
            self._cursor[loop.SIGNAL] = self._passed if len(self._queue.at) else 0
            return slot
        engine, cursor, grid = self._engine, self._cursor, np.array([anchor, period])
        tally, queue = self._judge.tally, self._queue
        self._reserve_signals()
        cursor[loop.SLOT] = slot
        while cursor[loop.SLOT] < last:
            stop = min(last, int(cursor[loop.SLOT]) + max(engine.beliefs.refit_at - engine.beliefs.crawls, 1))
            cursor[loop.LEARNED], cursor[loop.PUBLISHED], cursor[loop.ENDED] = 0, engine.clocks.last_published, 0
            lists = engine.eligibility.cohorts.lists
            step = partial(
                loop.run_engine,
                learned=engine.learned,
                lists=lists,
                t=tally,
                queue=queue,
                grid=grid,
                last=stop,
                cursor=cursor,
            )
            access.repeat(engine.scheduler, step)
            engine.beliefs.crawls += int(cursor[loop.LEARNED])
            engine.move_gates()
            engine.refit_if_due()
            if cursor[loop.ENDED] and engine.clocks.due(engine.now):
                engine.clocks.publish(engine.scheduler, engine.now)
        return max(slot, last)

    def _reserve_signals(self) -> None:
        """Room for the pages that will have signals."""
        known = self._queue.page[self._queue.page < len(self._engine.addresses)]
        alive = np.unique(known)
        self._engine.reserve_signals(alive[access.status(self._engine.scheduler, alive) != access.REMOVED])


class RivalRunner(PlainRunner):
    """Drives a rival by the compiled loop, and shows it the true dates of changes where its rule reads them."""

    def __init__(self, policy: DuePolicy, trace: Trace, judge: Judge) -> None:
        super().__init__(policy, trace, judge)
        self._cursor = np.zeros(1, np.int64)

    def run(self, anchor: float, period: float, slot: int, last: int, batch: int) -> int:
        """Do the slots from ``slot`` to before ``last``."""
        if last <= slot:
            return slot
        agenda, clock, grid = self._policy.agenda, self._policy.now, np.array([anchor, period])
        rivals.run_capped(agenda, self._judge.tally, self._signals, self._cursor, clock, grid, slot, last, batch)
        self._policy.now = anchor + (last - 1) * period
        return last

    def run_demand(self, begin: float, until: float) -> None:
        """Crawl all that is due whenever it is due, from ``begin`` to before ``until``."""
        agenda, tally = self._policy.agenda, self._judge.tally
        self._policy.now = rivals.run_demand(agenda, tally, self._signals, self._cursor, begin, until)


class ClairvoyantRunner(PlainRunner):
    """Drives the policy that knows the future by its compiled loop."""

    def run(self, anchor: float, period: float, slot: int, last: int, batch: int) -> int:
        """Do the slots from ``slot`` to before ``last``."""
        run_clairvoyant(self._policy.future, self._judge.tally, np.array([anchor, period]), slot, last, batch)
        return max(slot, last)
