"""RatePolicy: crawl rates of a rule or a plan, run live, as draws or by deadline."""

from __future__ import annotations

import math
from typing import Any, Literal, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.model.pages import Pages
from recrawl.schedule.outcomes import Outcomes, ended_of
from recrawl.schedule.rates.execution import Deadlines, Draws, executor
from recrawl.schedule.rates.kernels import accept
from recrawl.schedule.rates.rules import Rule, check_rule, own_columns, rule_of, rule_rates
from recrawl.schedule.table import (
    Ids,
    Table,
    column_of,
    count_of,
    generator_of,
    ids_of,
    options_of,
    positive,
    time_of,
)
from recrawl.solver.plan import Plan

Array = NDArray[np.float64]
_ALIVE, _GONE, _REMOVED = 0, 1, 2
_COUNTERS = ("picked", "recorded", "outdated", "failed", "released", "leases_ended", "signals", "time_back", "solves")


class RateOptions(TypedDict, total=False):
    """Options of a rate policy that few callers need; `RatePolicy` describes them."""

    ceiling: float | None
    impression: ArrayLike | None
    phases: Literal["zero", "random"]
    start: float
    lease: float
    catch_up: float
    rng: np.random.Generator | None


_OPTIONS: dict[str, Any] = {
    "ceiling": None,
    "impression": None,
    "phases": "zero",
    "start": 0.0,
    "lease": 300.0,
    "catch_up": math.inf,
    "rng": None,
}


class RatePolicy:
    """A ``Policy`` that crawls every page at its rate, whatever is found and signalled.

    ``rates`` is a rule — ``uniform``, ``change-weighted``, ``click-weighted`` (by importance), ``impression-weighted``
    (by ``impression``), ``lambda`` (the optimum with a crawl probability per step; Han et al. 2020, Azar et al. 2018
    problem 1) —, or a ``Plan`` or an array of rates that stay as they are. ``ceiling`` is the most crawls per time that
    one page gets; for ``lambda`` it is one a step (default 1). ``execution`` is ``deadline`` (Azar et al. 2018,
    Algorithm 3; ``phases`` 0 or random) or ``poisson`` (each crawl drawn in proportion to the rates). Rates are found
    again, over all pages, at the first pick after pages or the budget changed. A page added to fixed rates without a
    ``crawl_rate`` of its own gets their mean. Leases last ``lease``; a crawl whose lease ends is due again. Of a time
    without picks, the deadline schedule makes up for ``catch_up`` and puts off by the rest.

    The second page is crawled twice as often as the first:

    >>> policy = RatePolicy(Pages([1.0, 2.0]), budget=3.0, rates="change-weighted")
    >>> order = []
    >>> for j in range(6):
    ...     for page in policy.pick(j / 3, 1):
    ...         policy.record([page], j / 3)
    ...         order.append(int(page))
    >>> order
    [1, 0, 1, 1, 0, 1]
    """

    def __init__(
        self,
        pages: Pages | None = None,
        *,
        budget: float | None = None,
        rates: Rule | Plan | ArrayLike = "uniform",
        execution: Literal["deadline", "poisson"] = "deadline",
        **options: Unpack[RateOptions],
    ) -> None:
        rule, crawl_rate = rule_of(rates)
        chosen = options_of(_OPTIONS, options)
        phases, rng = chosen["phases"], chosen["rng"]
        self._rule, self._execution, self._phases, self._rng = rule, execution, phases, rng
        self._ceiling = None if chosen["ceiling"] is None else positive("ceiling", chosen["ceiling"])
        self._lease = positive("lease", chosen["lease"], endless=True)
        self._catch_up = positive("catch_up", chosen["catch_up"], endless=True)
        self._now = self._picked_at = time_of(chosen["start"])
        self._budget = None if budget is None else positive("budget", budget)
        if budget is None and rule != "fixed":
            raise ParameterError(f"budget: rates by rule {rule!r} need one")
        self._run = executor(execution, phases, rng)
        self._run.budget = self._budget
        self._table = Table(
            change_rate=float, importance=float, impression=float, crawl_rate=float, status=np.uint8, crawled_at=float
        )
        self._stale = False
        self._stats = dict.fromkeys(_COUNTERS, 0)
        if pages is not None:
            self.add(pages, self._now, impression=chosen["impression"], crawl_rate=crawl_rate)

    def add(
        self,
        pages: Pages,
        now: float,
        *,
        fetched_at: ArrayLike | None = None,
        impression: ArrayLike | None = None,
        crawl_rate: ArrayLike | None = None,
    ) -> Ids:
        """New pages, whose first crawl is released at once; ``fetched_at`` is when the present copies were fetched."""
        n, first = len(pages), len(self._table)
        at = time_of(now)
        fetched = column_of("fetched_at", fetched_at, n, -math.inf)
        own = own_columns(n, impression, crawl_rate)
        if self._rule == "impression-weighted" and impression is None:
            raise ParameterError("impression: the rule impression-weighted needs it for every page")
        check_rule(self._rule, pages.change_rate, self._ceiling)
        self._advance(at)
        phase = np.zeros(n) if self._phases == "zero" or self._rng is None else self._rng.random(n)
        columns = {"change_rate": pages.change_rate, "importance": pages.importance, **own}
        self._table.append(n, **columns, crawled_at=np.minimum(fetched, self._now))
        self._run.grow(n, self._now, phase)
        self._stale = True
        return np.arange(first, first + n)

    def pick(self, now: float, n: int) -> Ids:
        """At most ``n`` pages to crawl now, each leased; by deadline, only those whose next crawl is released."""
        n, at = count_of(n), time_of(now)
        self._advance(at)
        self._settle()
        if self._now - self._picked_at > self._catch_up:
            self._run.postpone(self._now - self._picked_at - self._catch_up, self._now)
        self._picked_at = self._now
        ids = self._run.pick(n, self._now + self._lease)
        self._stats["picked"] += len(ids)
        return ids

    def record(self, ids: ArrayLike, now: float, **outcomes: Unpack[Outcomes]) -> None:
        """Crawls that ended. A failed one counts as the crawl of its turn; a page that is gone is not picked again."""
        rows, at = self._ids(ids, repeated=True), time_of(now)
        _, missed, lost, began = ended_of(outcomes, len(rows))
        self._advance(at)
        valid = accept(self._table["crawled_at"], rows, np.minimum(began, self._now), missed)
        for name, which in (("recorded", valid), ("outdated", ~valid), ("failed", valid & missed)):
            self._stats[name] += int(np.count_nonzero(which))
        self._run.crawled(rows[valid], self._now)
        self._drop(rows[valid & lost], _GONE)

    def release(self, ids: ArrayLike, now: float) -> None:
        """Leased crawls that did not happen; pages that are not leased stay as they are."""
        rows, at = self._ids(ids), time_of(now)
        self._advance(at)
        self._stats["released"] += self._run.released(rows, self._now)

    def signal(self, ids: ArrayLike, now: float, *, source: int = 0, changed_at: ArrayLike | None = None) -> None:
        """Counted, and otherwise ignored."""
        rows, at = self._ids(ids, repeated=True), time_of(now)
        count_of(source)
        column_of("changed_at", changed_at, len(rows), 0.0)
        self._advance(at)
        self._stats["signals"] += len(rows)

    def update(self, ids: ArrayLike, **columns: ArrayLike) -> None:
        """New parameters: columns of ``Pages`` (only change_rate and importance matter), impression, crawl_rate."""
        rows = self._ids(ids)
        if len(rows) == 0:
            return
        given = {name: columns.pop(name) for name in ("impression", "crawl_rate") if name in columns}
        own = own_columns(len(rows), given.get("impression"), given.get("crawl_rate"))
        kept = {name: self._table[name][rows] for name in ("change_rate", "importance")}
        pages = Pages(**kept).replace(**columns)
        check_rule(self._rule, pages.change_rate, self._ceiling)
        fresh = {name: getattr(pages, name) for name in kept} | {name: own[name] for name in given}
        for name, column in fresh.items():
            self._table[name][rows] = column
        self._stale = True

    def remove(self, ids: ArrayLike) -> None:
        """Pages that are no longer crawled; their ids are not used again."""
        self._drop(self._ids(ids), _REMOVED)

    def next_at(self, now: float) -> float:
        """When a crawl is next released or a lease ends, at the earliest; with draws, now."""
        at = max(time_of(now), self._now)
        self._settle()
        return self._run.next_at(at)

    @property
    def crawl_rate(self) -> Array:
        """Crawls per time of every id ever given out; 0 for pages that are removed or gone."""
        self._settle()
        return self._run.rate.copy()

    @property
    def budget(self) -> float | None:
        """Crawls per time that the rates add up to; setting it finds new rates at the next pick."""
        return self._budget

    @budget.setter
    def budget(self, budget: float) -> None:
        self._budget = self._run.budget = positive("budget", budget)
        self._stale = True

    @property
    def rule(self) -> str:
        """The name of the rule by which rates are found, or "fixed"."""
        return self._rule

    @property
    def stats(self) -> dict[str, int]:
        """Counts of calls, by kind."""
        return dict(self._stats)

    def state(self) -> dict[str, Any]:
        """Settings, clock, columns and the random generator's state."""
        names = ("rule", "execution", "ceiling", "phases", "budget", "lease", "catch_up", "now", "picked_at", "stale")
        return {
            **{name: getattr(self, f"_{name}") for name in names},
            "stats": self.stats,
            "rng": None if self._rng is None else dict(self._rng.bit_generator.state),
            "pages": self._table.copy(),
            "crawls": self._run.columns(),
        }

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """The policy whose state was saved."""
        settings = {name: state[name] for name in ("budget", "execution", "ceiling", "phases", "lease", "catch_up")}
        rates = np.zeros(0) if state["rule"] == "fixed" else state["rule"]
        policy = cls(None, rates=rates, start=state["now"], rng=generator_of(state["rng"]), **settings)
        policy._table.load(state["pages"])
        policy._run.load(state["crawls"], state["now"])
        policy._picked_at, policy._stale, policy._stats = state["picked_at"], bool(state["stale"]), dict(state["stats"])
        return policy

    def begin_slots(self, now: float) -> Deadlines | Draws:
        """Get ready for a compiled loop that picks from now on; what it works on."""
        self._advance(now)
        self._settle()
        return self._run

    def end_slots(self, now: float) -> None:
        """A compiled loop has picked up to now."""
        self._now = self._picked_at = now

    @property
    def crawled_at(self) -> NDArray[np.float64]:
        """When each page was last crawled; a compiled loop writes it."""
        return self._table["crawled_at"]

    def _ids(self, ids: ArrayLike, *, repeated: bool = False) -> Ids:
        return ids_of(ids, self._table["status"], _REMOVED, repeated=repeated)

    def _advance(self, now: float) -> None:
        self._stats["time_back"] += now < self._now
        self._now = max(now, self._now)
        self._stats["leases_ended"] += self._run.wake(self._now)

    def _drop(self, rows: Ids, status: int) -> None:
        if len(rows):
            self._table["status"][rows] = status
            self._run.drop(rows)
            self._stale = True

    def _settle(self) -> None:
        """Find the rates again, if pages or the budget changed."""
        if not self._stale:
            return
        alive = np.flatnonzero(self._table["status"] == _ALIVE)
        columns = {name: self._table[name][alive] for name in ("change_rate", "importance", "impression", "crawl_rate")}
        rate = np.zeros(len(self._table))
        if len(alive):
            rate[alive] = rule_rates(self._rule, columns, self._budget or 0.0, self._ceiling)
        self._run.set_rates(rate, self._now)
        self._stats["solves"] += 1
        self._stale = False
