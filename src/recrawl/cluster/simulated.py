"""A crawl in shards, simulated: real engines or schedulers, the real controller, no network and no database.

Rounds are equal stretches of time. At each, shards publish plans and lessons, the controller divides the budget, and
every shard runs alone at its share until the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.cluster.shares.controller import LEAST, Round, Seen, ShardPlan, control, plan_of
from recrawl.cluster.shares.shares import Owner, Share, reserved
from recrawl.engine import Engine, Lessons
from recrawl.errors import ParameterError
from recrawl.schedule.exact.scheduler import Scheduler
from recrawl.simulate.run.policies import contender
from recrawl.simulate.run.runners import runner_of
from recrawl.simulate.tally import Judge
from recrawl.simulate.trace import Trace
from recrawl.solver.solving import budget_curve

Array = NDArray[np.float64]
Ids = NDArray[np.int64]
Split = Literal["plan", "pages", "equal"]

_COUNTED = ("next_change", "stale", "crawls", "found")  # what changes in a tally without readers' requests


@dataclass(frozen=True)
class ShardOptions:
    """How a crawl in shards is run; times in those of the trace."""

    split: Split = "plan"
    every: float = 1.0  # between rounds
    known: bool = False  # whether shards know the true rates, and so need not learn
    share_lessons: bool = True
    count_from: float | None = None


@dataclass(frozen=True)
class ShardsRun:
    """What came of it: freshness, weighted by importance; per round the shares and how far thresholds were apart."""

    freshness: float
    requests: int
    shares: Array  # (rounds, shards)
    spread: Array  # (rounds,): largest over smallest threshold of the new plans at the shares of the round before
    met: Array  # (rounds,): the same at the shares of the round itself, for which the plans were made
    most: float  # the largest sum of shares that could be spent at any time, over the budget


class SimulatedShard:
    """One shard: its part of the trace, its policy, and how stale its copies were."""

    def __init__(self, trace: Trace, budget: float, options: ShardOptions) -> None:
        self.trace, self._options = trace, options
        name = "no-signals" if options.known else "learned"
        self.policy: Any = contender(name).make(trace, budget, np.random.default_rng(0))
        contender(name).admit(self.policy, trace, np.arange(len(trace)), trace.start)
        self.judge = Judge(trace, count_from=options.count_from)
        self._runner = runner_of(self.policy, trace, self.judge)
        self._phase = 0.0  # of the next slot

    def run(self, begin: float, end: float, rate: float) -> None:
        """Crawl at a rate for a stretch of time."""
        if rate <= 0.0:
            return
        self.policy.budget = rate
        due = self._phase + (end - begin) * rate
        slots = int(np.floor(due + 1e-9))
        self._runner.run(begin - self._phase / rate, 1.0 / rate, 1, slots + 1, 1)
        self._phase = max(due - slots, 0.0)

    def plan(self, now: float, share: float, by_pages: float) -> ShardPlan:
        """The plan that the shard publishes."""
        if isinstance(self.policy, Scheduler):
            least, most = min(share or by_pages, by_pages) / 16.0, max(share, by_pages) * 16.0
            budgets, thresholds = budget_curve(self.trace.true_pages, least, most, 17)
            return ShardPlan(len(self.trace), tuple(budgets.tolist()), tuple(thresholds.tolist()))
        return plan_of(self.policy, now, share=share, by_pages=by_pages)

    def state(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere, but the trace."""
        tally = {name: getattr(self.judge.tally, name) for name in _COUNTED}
        return {"policy": self.policy.state(), "tally": tally, "phase": self._phase}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state of a shard with the same trace."""
        self.policy = type(self.policy).restore(state["policy"])
        for name, column in state["tally"].items():
            getattr(self.judge.tally, name)[:] = column
        self._runner, self._phase = runner_of(self.policy, self.trace, self.judge), float(state["phase"])

    @property
    def stale(self) -> float:
        """Importance × share of the counted time in which copies were stale."""
        return float(self.judge.verdict().page_staleness @ self.trace.importance)


def parts_of(trace: Trace, shard: Ids, n: int) -> list[Trace]:
    """The trace of each shard; there is none without pages."""
    return [rows_of(trace, np.flatnonzero(shard == k)) for k in range(n) if (shard == k).any()]


def rows_of(trace: Trace, rows: Ids) -> Trace:
    """Some pages of a trace whose pages all exist from its start to its end."""
    if trace.signals is not None or (trace.created_at > trace.start).any():
        raise ParameterError("a trace with signals, or pages that come later, cannot be divided among shards")
    count = trace.n_changes[rows]
    inside = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    changed = trace.changed_at[np.repeat(trace.offset[rows], count) + inside]
    pages = None if trace.pages is None else trace.pages[rows]
    url = None if trace.url is None else trace.url[rows]
    offset = np.concatenate([[0], np.cumsum(count)])
    return Trace(trace.start, trace.end, offset, changed, trace.importance[rows], pages=pages, url=url, day=trace.day)


def simulate_shards(parts: Sequence[Trace], budget: float, options: ShardOptions) -> ShardsRun:
    """Run a crawl whose pages are divided among shards."""
    pages = np.array([len(part) for part in parts])
    by_pages = budget * pages / pages.sum()
    shards = [SimulatedShard(part, float(b), options) for part, b in zip(parts, by_pages, strict=True)]
    edges = np.append(np.arange(parts[0].start, parts[0].end - 1e-9 * options.every, options.every), parts[0].end)
    state = ControlState({}, Round(), dict.fromkeys(range(len(parts)), 0))
    shares, spread, met, most = [], [], [], 0.0
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if options.split == "plan":
            had = [state.shares[k].rate if k in state.shares else 0.0 for k in range(len(parts))]
            plans = {k: one.plan(begin, had[k], float(by_pages[k])) for k, one in enumerate(shards)}
            spread.append(spread_of(plans, had, by_pages))
            most = max(most, state.step(plans, budget, begin, options.every))
            given = [state.shares[k].rate for k in range(len(parts))]
            met.append(spread_of(plans, given, by_pages))
        else:
            given = (by_pages if options.split == "pages" else np.full(len(parts), budget / len(parts))).tolist()
        if options.share_lessons and not options.known:
            exchange([one.policy for one in shards], begin)
        for one, rate in zip(shards, given, strict=True):
            one.run(begin, end, rate)
        shares.append(given)
    importance = sum(float(part.importance.sum()) for part in parts)
    stale = sum(one.stale for one in shards) / importance
    requests = sum(int(one.judge.tally.crawls.sum()) for one in shards)
    return ShardsRun(1.0 - stale, requests, np.array(shares), np.array(spread), np.array(met), most / budget)


@dataclass
class ControlState:
    """What a controller keeps, and the shares that owners have acknowledged."""

    shares: dict[int, Share]
    last: Round
    acknowledged: dict[int, int]

    def step(self, plans: Mapping[int, ShardPlan], budget: float, now: float, every: float) -> float:
        """One round: shares fall, owners acknowledge, shares rise, owners acknowledge. The most that was reserved."""
        most = 0.0
        for _ in range(3):
            owners = {k: Owner(1, acknowledged=number) for k, number in self.acknowledged.items()}
            seen = Seen(owners, plans, budget, self.shares, self.last)
            self.shares, self.last = control(seen, now, every=every)
            most = max(most, reserved(self.shares))
            self.acknowledged = {k: share.number for k, share in self.shares.items()}
        return most


def spread_of(plans: Mapping[int, ShardPlan], shares: Sequence[float], by_pages: Array) -> float:
    """Largest over smallest planned threshold at shares, of shards that have more than the least one."""
    found = [
        plan.threshold(shares[k]) for k, plan in plans.items() if plan.budgets and shares[k] > 2 * LEAST * by_pages[k]
    ]
    return max(found) / max(min(found), 1e-300) if found else np.inf


def exchange(engines: Sequence[Engine], now: float) -> None:
    """Let each engine learn from the lessons of the others."""
    said: list[Lessons] = [engine.lessons() for engine in engines]
    for k, engine in enumerate(engines):
        engine.learn_from(said[:k] + said[k + 1 :], now)
