"""Run a policy against a trace: pages come and go, signals arrive, one crawl per slot, freshness counted exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.first_use import compile_first
from recrawl.errors import ParameterError
from recrawl.schedule.policy import Policy
from recrawl.simulate.rivals.policy import DuePolicy
from recrawl.simulate.run.clairvoyant import Clairvoyant
from recrawl.simulate.run.runners import runner_of
from recrawl.simulate.run.trailing import Trailing
from recrawl.simulate.tally import Judge, Run
from recrawl.simulate.trace import Trace

Ids = NDArray[np.int64]
Budget = float | Sequence[tuple[float, float]]

_REPORTS = 100  # times that progress is reported in a stretch of constant budget


def admit_known(policy: Any, trace: Trace, rows: Ids, now: float) -> Ids:
    """Add pages with the parameters they have."""
    ids: Ids = policy.add(trace.true_pages[rows], now, fetched_at=now)
    return ids


@dataclass(frozen=True)
class Contender:
    """A policy by name: how it is made for a trace and a budget, and what it knows of the pages that come."""

    name: str
    make: Callable[[Trace, float, np.random.Generator], Policy | Clairvoyant | Trailing]
    admit: Callable[[Any, Trace, Ids, float], Ids] = admit_known


def simulate(
    contender: Contender,
    trace: Trace,
    budget: Budget | None,
    *,
    rng: np.random.Generator | None = None,
    count_from: float | None = None,
    bins: int = 0,
    batch: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Run:
    """How fresh a policy keeps the copies of a trace's pages with ``budget`` crawls per time.

    Crawls happen at start + j·batch/budget, ``batch`` of them at a time. A budget that changes is a list of (from when,
    crawls per time); None lets a rival crawl whatever is due by its own rule, at once. Counting begins at
    ``count_from``; ``progress`` gets the share of the time that is done.

    >>> from recrawl.simulate.run.policies import contender
    >>> trace = Trace(0.0, 10.0, offset=[0, 2, 3], changed_at=[1.5, 4.2, 2.5])
    >>> simulate(contender("uniform"), trace, budget=1.0).requests
    10
    """
    compile_first()
    pieces = [] if budget is None else _pieces(budget, trace)
    policy = contender.make(trace, pieces[0][2] if pieces else np.inf, np.random.default_rng(0) if rng is None else rng)
    judge = Judge(trace, count_from=count_from, bins=bins)
    simulation = _Simulation(contender, policy, trace, runner_of(policy, trace, judge), progress)
    if budget is None:
        simulation.run_demand()
    for begin, end, rate in pieces:
        if rate > 0 and getattr(policy, "budget", None) not in (None, rate):
            policy.budget = rate  # type: ignore[union-attr]
        if rate > 0:
            simulation.run_slots(begin, end, rate / batch, batch)
        elif begin == trace.start:
            raise ParameterError("budget is 0: nothing can be crawled")
        else:
            simulation.wait(begin, end)
    return judge.verdict()


@dataclass(frozen=True)
class _Simulation:
    """One policy on one trace."""

    contender: Contender
    policy: Any
    trace: Trace
    runner: Any
    progress: Callable[[float], None] | None

    def run_demand(self) -> None:
        """Crawl all that is due, from one arrival or removal of pages to the next."""
        if not isinstance(self.policy, DuePolicy):
            raise ParameterError(f"policy {self.contender.name!r} needs a budget: it has no demand of its own")
        now = self.trace.start
        for at, come, gone in membership(self.trace, self.trace.start, self.trace.end):
            self.runner.run_demand(now, at)
            self._change(at, come, gone)
            now = at
            self._report(at)
        self.runner.run_demand(now, self.trace.end)

    def run_slots(self, begin: float, end: float, rate: float, batch: int) -> None:
        """Run slots at begin + j/rate up to the end, adding and removing pages in between; report progress."""
        n_slots = int(np.floor((end - begin) * rate * (1 + 1e-12)))
        looks = np.unique(np.linspace(1, n_slots + 1, _REPORTS + 1).astype(np.int64))
        looks = looks if self.progress else looks[:0]

        def run_to(slot: int, last: int) -> int:
            for look in looks[(looks > slot) & (looks <= last)].tolist():
                slot = self.runner.run(begin, 1.0 / rate, slot, look, batch)
                self._report(begin + slot / rate)
            return int(self.runner.run(begin, 1.0 / rate, slot, last, batch))

        slot = 1
        for at, come, gone in membership(self.trace, begin, end):
            slot = run_to(slot, min(max(int(np.ceil((at - begin) * rate)), slot), n_slots + 1))
            self._change(at, come, gone)
        run_to(slot, n_slots + 1)

    def wait(self, begin: float, end: float) -> None:
        """Crawl nothing; pages are added and removed."""
        for at, come, gone in membership(self.trace, begin, end):
            self._change(at, come, gone)

    def _change(self, at: float, come: Ids, gone: Ids) -> None:
        """Add and remove pages."""
        if len(come) and not np.array_equal(self.contender.admit(self.policy, self.trace, come, at), come):
            raise AssertionError("ids must be handed out in the order in which pages come")
        if len(gone):
            self.policy.remove(gone)

    def _report(self, at: float) -> None:
        if self.progress is not None:
            self.progress((at - self.trace.start) / (self.trace.end - self.trace.start))


def _pieces(budget: Budget, trace: Trace) -> list[tuple[float, float, float]]:
    """(begin, end, crawls per time) of each stretch of constant budget."""
    given = (
        [(trace.start, float(budget))]
        if isinstance(budget, (int, float))
        else [(float(t), float(r)) for t, r in budget]
    )
    if not given or given[0][0] != trace.start or any(b[0] <= a[0] for a, b in pairwise(given)):
        raise ParameterError("budget: a list of (from when, crawls per time) must begin at the start and be in order")
    for _, rate in given:
        if not (0 <= rate < np.inf):
            raise ParameterError(f"budget is {rate:g}: must be finite and at least 0")
    ends = [t for t, _ in given[1:]] + [trace.end]
    return [(t, end, rate) for (t, rate), end in zip(given, ends, strict=True)]


def membership(trace: Trace, begin: float, end: float) -> Iterator[tuple[float, Ids, Ids]]:
    """(time, pages added, pages removed) from begin to before end; pages that exist at the start come first."""
    came, went = trace.created_at, np.maximum(trace.deleted_at, trace.created_at)
    coming = np.flatnonzero((came >= begin) & (came < end))
    going = np.flatnonzero((went >= begin) & (went < end))
    when = np.concatenate([came[coming], went[going]])
    page = np.concatenate([coming, going])
    leaves = np.arange(len(page)) >= len(coming)
    order = np.lexsort((page, leaves, when))
    when, page, leaves = when[order], page[order], leaves[order]
    edges = [*np.flatnonzero(np.diff(when, prepend=-np.inf) > 0).tolist(), len(when)]
    for a, b in pairwise(edges):
        yield float(when[a]), page[a:b][~leaves[a:b]], page[a:b][leaves[a:b]]
