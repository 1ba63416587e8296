"""Scheduler: the exact greedy choice among many pages, at a cost that does not grow with their number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl._system.trees import copied
from recrawl.errors import ParameterError
from recrawl.model.kinds import first_row
from recrawl.model.pages import Pages
from recrawl.schedule.exact import layout as at
from recrawl.schedule.exact.arguments import check_time, flags_per_id, per_id
from recrawl.schedule.exact.columns import POLICIES as POLICIES
from recrawl.schedule.exact.columns import PageColumns
from recrawl.schedule.exact.columns import Schedule as Schedule
from recrawl.schedule.exact.kernels import events
from recrawl.schedule.exact.kernels.picking import next_time, pick
from recrawl.schedule.exact.kernels.queries import fill_values
from recrawl.schedule.exact.memory import Memory
from recrawl.schedule.exact.mixtures import Mixtures
from recrawl.schedule.table import options_of, positive

Ids = NDArray[np.int64]
Array = NDArray[np.float64]

_STATS = {  # names of counters in the header
    "decisions": "decisions",
    "evaluated": "evaluated",
    "rebuilds": "scans",
    "wakes": "wakes",
    "late_records": "late",
    "time_went_back": "backwards",
    "leases_expired": "expired",
    "near": "n_near",
    "asleep": "n_asleep",
    "leased": "n_leased",
    "parked": "n_parked",
    "pages": "n_alive",
}


_YES = np.ones(1, dtype=np.bool_)
_NOW = np.full(1, np.inf)  # as_of: no copy is newer than now


class SchedulerOptions(TypedDict, total=False):
    """Options of a scheduler that few callers need; `Scheduler` describes them."""

    start: float
    lease: float
    delay_window: float | None
    delay: tuple[ArrayLike, ArrayLike] | None
    floor: float


_OPTIONS: dict[str, Any] = {"start": 0.0, "lease": 300.0, "delay_window": None, "delay": None, "floor": 0.0}


class Scheduler(Mixtures):
    """At every moment, the pages most worth crawling: Algorithm 1 of Busa-Fekete et al. 2025, exact and lazy.

    ``policy`` says how signals are used: not at all ("no-signals"), as proof ("trusting"), by their precision and
    recall ("signals"), by the first j terms of the value ("approx-j"), as proof where precision > 0.7 and recall > 0.6
    ("trusting-plus"), or like "signals" but not within ``delay_window`` after a crawl ("signals-delayed"). With
    ``delay`` (sorted delays, their probabilities) a late signal is weighted by the probability that it is about a
    change that the copy has not seen. ``budget`` (crawls per time) is only a hint for the first layout: the levels
    follow the picks. ``start`` is the first time, ``lease`` the time after which a picked page without a record
    is eligible again, ``floor`` the least crawl rate of every page. With the objective "rates" a crawl is worth
    ``set_crawl_rate`` × the time since the last one: 1 when it is due; the most overdue page comes first.

    >>> s = Scheduler(Pages([1.0, 4.0, 2.0]))
    >>> s.pick(1.0, 2).tolist()
    [2, 0]
    """

    def __init__(
        self,
        pages: Pages | None = None,
        *,
        budget: float | None = None,
        objective: Schedule = "freshness",
        policy: str = "signals",
        **options: Unpack[SchedulerOptions],
    ) -> None:
        chosen = options_of(_OPTIONS, options)
        start = chosen["start"]
        check_time("start", start)
        memory = Memory(start, chosen["lease"])
        super().__init__(memory, PageColumns(memory, objective, policy, chosen["floor"]))
        self._budget: float | None = None
        self.policy = policy
        self.objective = objective
        if budget is not None:
            self.budget = budget
        self._set_delay(chosen["delay_window"], chosen["delay"])
        if pages is not None:
            self.add(pages, start)

    # --- the Policy protocol -----------------------------------------------------------------------------------------

    def add(self, pages: Pages, now: float, *, fetched_at: ArrayLike | None = None) -> Ids:
        """New pages, fetched now or at ``fetched_at``; their ids, which are never used again."""
        check_time("now", now)
        fetched = np.asarray(now if fetched_at is None else fetched_at, dtype=np.float64)
        if fetched.shape not in ((), (1,), (len(pages),)):
            raise ParameterError(f"fetched_at has the shape {fetched.shape} for {len(pages)} pages")
        fetched = np.broadcast_to(fetched, (len(pages),))
        first_row("fetched_at", ~np.isfinite(fetched), "must be finite")
        ids = self._columns.append(pages, fetched)
        self._memory.set_tick(self._budget, pages.change_rate)
        self._place(ids, now)
        return ids

    def pick(self, now: float, n: int) -> Ids:
        """The n pages of largest crawl value, best first, leased until recorded or released; fewer if fewer can be."""
        check_time("now", now)
        if n < 0:
            raise ParameterError(f"n is {n}: must be at least 0")
        memory = self._memory
        out = np.empty(n, dtype=np.int64)
        status, taken = pick(memory.header, float(now), n, out)
        while status != at.DONE:
            memory.grow(status)
            again = self._now  # not `now`: a time that went back is counted once
            status, more = pick(memory.header, again, n - taken, out[taken:])
            taken += more
        return out if taken == n else out[:taken]

    def record(
        self,
        ids: ArrayLike,
        now: float,
        *,
        changed: ArrayLike | None = None,
        as_of: ArrayLike | None = None,
        failed: ArrayLike | None = None,
        gone: ArrayLike | None = None,
    ) -> None:
        """Copies were fetched, as of ``as_of`` (default now); a failed crawl leaves the page as it was.

        A page that is gone is set aside until it is resumed or removed.
        """
        check_time("now", now)
        rows = self._columns.whole(ids)
        if as_of is None and changed is None and failed is None and gone is None:
            self._in_parts(events.record, rows, float(now), _NOW, _YES)
            return
        here = max(float(now), self._now)
        rows = self._columns.check(rows)
        when = per_id("as_of", here if as_of is None else as_of, rows)
        first_row("as_of", ~(when <= here), "must not lie after now")
        flags = {"changed": changed, "failed": failed, "gone": gone}
        given = {name: flags_per_id(name, flag, rows) for name, flag in flags.items() if flag is not None}
        fetched = ~given["failed"] if failed is not None else _YES
        outdated = fetched & (when < self._memory.state.rec["last"][rows])
        self._in_parts(events.record, rows, here, when, fetched)
        if gone is not None and given["gone"].any():
            self.pause(rows[np.broadcast_to(given["gone"] & ~outdated, rows.shape)])

    def release(self, ids: ArrayLike, now: float) -> None:
        """The crawls did not happen: the pages come back as they were."""
        self.record(ids, now, failed=True)

    def lengthen_leases(self, seconds: float) -> None:
        """Leases from now on last at least so long; those that run keep their end."""
        head = self._memory.state.head[0]
        head["lease_time"] = max(float(head["lease_time"]), positive("lease", seconds))

    def signal(self, ids: ArrayLike, now: float, *, source: int = 0, changed_at: ArrayLike | None = None) -> None:
        """Change signals; repeated ids count. One about a change at or before the copy's fetch says nothing new."""
        check_time("now", now)
        rows = self._columns.check(ids)
        about = per_id("changed_at", np.inf if changed_at is None else changed_at, rows)
        self._in_parts(events.signal, rows, float(now), about, self._columns.weights(rows, source))

    def update(self, ids: ArrayLike, **columns: Any) -> None:
        """New parameters for pages: change_rate, importance, recall, false_rate, host, cost, evidence."""
        rows = self._columns.check(ids, distinct=True)
        if len(rows) == 0:
            return
        pages = self._columns.revised(rows, columns)
        status = self._memory.state.rec["state"][rows]
        parked = rows[status == at.PARKED]  # their host may be another from now on
        events.withdraw(self._memory.header, parked, at.PAUSED)
        self._columns.write(rows, pages)
        self._place(rows[status != at.PAUSED], self._now)

    def set_floor(self, ids: ArrayLike, floor: ArrayLike) -> None:
        """Least crawl rates of pages: one that has waited longer than 1/floor comes before all others."""
        rows = self._columns.check(ids, distinct=True)
        self._columns.set_floor(rows, floor)
        self._place_waiting(rows, self._now)

    def set_crawl_rate(self, ids: ArrayLike, crawl_rate: ArrayLike) -> None:
        """Crawls per time of pages, with the objective "rates"; at 0 a page is not crawled.

        >>> s = Scheduler(Pages([1.0, 1.0]), objective="rates")
        >>> s.set_crawl_rate([0, 1], [0.5, 2.0])
        >>> s.pick(1.0, 2).tolist(), s.value([0, 1], 1.0).tolist()
        ([1, 0], [0.5, 2.0])
        """
        if self.objective != "rates":
            raise ParameterError(f"objective is {self.objective!r}: crawl rates need 'rates'")
        rows = self._columns.check(ids, distinct=True)
        self._columns.set_crawl_rate(rows, crawl_rate)
        self._place_waiting(rows, self._now)

    def remove(self, ids: ArrayLike) -> None:
        """Pages leave for good; later use of their ids raises ParameterError."""
        self._withdraw(ids, at.GONE)

    def next_at(self, now: float) -> float:
        """When a pick can next return something; infinity while nothing can."""
        check_time("now", now)
        while True:
            status, when = next_time(self._memory.header, float(now))
            if status == at.DONE:
                return float(when)
            self._memory.grow(status)

    def state(self) -> dict[str, Any]:
        """Everything, as plain arrays and values that can be saved."""
        saved: dict[str, Any] = copied(self.live_state())
        return saved

    def live_state(self) -> dict[str, Any]:
        """The same with the arrays themselves, which change with the scheduler."""
        return {
            "version": at.VERSION,
            "policy": self.policy,
            "objective": self.objective,
            "budget": self._budget,
            "memory": self._memory.saved(),
            "columns": self._columns.saved(),
        }

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Scheduler:
        """A scheduler that continues exactly where ``state()`` was taken."""
        found = state.get("version", 1)
        if found != at.VERSION:
            known = f"this version reads form {at.VERSION}; recrawl 0.1 wrote form 1"
            raise ParameterError(f"state has form {found}: {known}. Add the pages again")
        window = 0.0 if state["policy"] == "signals-delayed" else None  # the one in use comes with the memory
        scheduler = cls(policy=state["policy"], objective=state["objective"], delay_window=window)
        scheduler._memory.load(state["memory"])
        scheduler._columns.load(state["columns"])
        scheduler._budget = state["budget"]
        return scheduler

    # --- more than the protocol ---------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self._memory.state.head[0]["n_alive"])

    def value(self, ids: ArrayLike, now: float) -> Array:
        """Crawl values of pages, per unit of cost."""
        check_time("now", now)
        rows = self._columns.check(ids)
        out = np.empty(len(rows))
        fill_values(self._memory.header, rows, float(now), out)
        return out

    @property
    def threshold(self) -> float:
        """The smallest crawl value of the last pick: what a crawl was worth at the margin."""
        return self._memory.threshold

    @property
    def budget(self) -> float | None:
        """Crawls per time the caller means to make; a hint, changed at any time without recomputation."""
        return self._budget

    @budget.setter
    def budget(self, budget: float) -> None:
        if not (budget > 0 and np.isfinite(budget)):
            raise ParameterError(f"budget is {budget}: must be finite and above 0")
        self._budget = float(budget)

    @property
    def stats(self) -> dict[str, int]:
        """Counters: decisions made, values evaluated, scans of all pages, pages near, asleep, leased, parked …"""
        return {name: int(self._memory.state.head[field][0]) for name, field in _STATS.items()}

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        return self._memory.nbytes + self._columns.nbytes

    def pause(self, ids: ArrayLike) -> None:
        """Pages are not picked until they are resumed; signals go on being counted."""
        self._withdraw(ids, at.PAUSED)

    def is_paused(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Which pages are paused: not picked until they are resumed.

        >>> s = Scheduler(Pages([1.0, 4.0]))
        >>> s.pause([1])
        >>> s.is_paused([0, 1]).tolist()
        [False, True]
        """
        return np.asarray(self._memory.state.rec["state"][self._columns.check(ids)] == at.PAUSED)

    def resume(self, ids: ArrayLike) -> None:
        """Paused pages may be picked again."""
        rows = self._columns.check(ids, distinct=True)
        paused = rows[self._memory.state.rec["state"][rows] == at.PAUSED]
        self._place(paused, self._now)

    def hold(self, host: Any, until: float) -> None:
        """No page of a host is picked before a time (infinity: until held to an earlier one)."""
        if math.isnan(until):
            raise ParameterError("until is nan")
        self._memory.hold(self._columns.host_index(host), float(until))

    def host(self, host: Any, *, spacing: float | None = None, concurrency: int | None = None) -> None:
        """Least time between two picks of a host, and how many of its pages may be leased at once."""
        if spacing is not None and not (0 <= spacing < math.inf):
            raise ParameterError(f"spacing is {spacing}: must be finite and at least 0")
        if concurrency is not None and not (concurrency >= 1):
            raise ParameterError(f"concurrency is {concurrency}: must be at least 1")
        self._memory.limit_host(self._columns.host_index(host), spacing, concurrency)

    def _set_delay(self, window: float | None, delay: tuple[ArrayLike, ArrayLike] | None) -> None:
        if self.policy == "signals-delayed":
            if window is None:
                if self._budget is None:
                    raise ParameterError("delay_window is missing: without a budget there is no default (5 / budget)")
                window = 5.0 / self._budget
            if not (0 <= window < math.inf):
                raise ParameterError(f"delay_window is {window}: must be finite and at least 0")
            self._memory.state.head[0]["window"] = window
        elif window is not None:
            raise ParameterError("delay_window belongs to the policy 'signals-delayed'")
        if delay is not None:
            self._memory.set_delay(*delay)
