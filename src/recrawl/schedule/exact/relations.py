"""Relations: groups, bursts and seasons of a scheduler's pages."""

from __future__ import annotations

import math
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.model.kinds import first_row
from recrawl.schedule.exact import layout as at
from recrawl.schedule.exact.arguments import flags_per_id, per_id
from recrawl.schedule.exact.columns import Schedule
from recrawl.schedule.exact.kernels import events
from recrawl.schedule.exact.placing import Placing
from recrawl.schedule.table import options_of


class Effects(TypedDict, total=False):
    """Bursts and seasons, see `Scheduler.relate`."""

    boost: float
    fade: float
    week: ArrayLike | None
    hour: float


_EFFECTS: dict[str, Any] = {"boost": 0.0, "fade": 1.0, "week": None, "hour": 3600.0}


class Relations(Placing):
    """The methods of a scheduler for pages that do not change independently."""

    objective: Schedule

    def relate(
        self,
        span: float,
        *,
        baseline: float = 0.0,
        shrink: float = 2.0,
        **effects: Unpack[Effects],
    ) -> None:
        """Use groups, bursts and seasons from now on.

        ``span`` is the width of a bin in which a group's changes are counted, ``baseline`` the excess changes of a page
        per time while nothing is known, ``shrink`` the number of crawls that count as much as that. Just after a change
        was seen, a page changes 1 + ``boost`` times as often as otherwise; that fades like e^{−age/fade}. ``week`` says
        how often pages change in each of the 168 hours of a week (which begins at multiples of 168 ``hour``), relative
        to each other.
        """
        if self.objective != "freshness":
            raise ParameterError(f"objective is {self.objective!r}: groups, bursts and seasons need 'freshness'")
        chosen = options_of(_EFFECTS, effects)
        values = {"baseline": baseline, "shrink": shrink, "boost": chosen["boost"], "fade": chosen["fade"]}
        for name, value in values.items():
            if not (0 <= value < math.inf and (value > 0 or name not in ("shrink", "fade"))):
                raise ParameterError(f"{name} is {value}: must be finite and {'above' if value == 0 else 'at least'} 0")
        clock = None if chosen["week"] is None else _clock(chosen["week"], chosen["hour"])
        self._memory.relate(span)
        self._memory.set_season(clock, chosen["hour"])
        head = self._memory.state.head[0]
        for name, value in values.items():
            head[name] = value
        events.recompute_rates(self._memory.header, float(head["now"]))
        self._place_all()

    def join(self, ids: ArrayLike, group: ArrayLike, weight: ArrayLike) -> None:
        """Put pages into groups (numbers; −1: none), with the weight that an excess change of a member has for each."""
        rows = self._columns.check(ids, distinct=True)
        if self._memory.state.head[0]["span"] == 0:
            raise ParameterError("relate must come first")
        groups, weights = per_id("group", group, rows), per_id("weight", weight, rows)
        first_row("weight", ~((weights >= 0) & np.isfinite(weights)), "must be finite and at least 0")
        numbers = np.broadcast_to(groups, rows.shape).astype(np.int32)
        first_row("group", np.broadcast_to(groups, rows.shape) != numbers, "must be whole")
        self._memory.add_groups(int(numbers.max(initial=-1)) + 1)
        events.join(self._memory.header, rows, np.maximum(numbers, -1))
        self._memory.state.member["weight"][rows] = weights
        self._place_waiting(rows, self._now)

    def notice(self, ids: ArrayLike, now: float, *, since: ArrayLike, changed: ArrayLike, own: ArrayLike) -> None:
        """Add crawl outcomes to the groups of pages: each over the time ``since``, at the page's ``own`` rate."""
        rows = self._columns.check(ids)
        begin, rate = per_id("since", since, rows), per_id("own", own, rows)
        found = flags_per_id("changed", changed, rows)
        columns = [np.broadcast_to(column, rows.shape) for column in (begin, rate, found)]
        for i, *outcome in zip(rows.tolist(), *(column.tolist() for column in columns), strict=True):
            events.notice(self._memory.header, i, outcome[0], float(now), outcome[1], outcome[2])
            self._reinsert(int(self._memory.state.member["group"][i]), float(now))
        if self._memory.state.head[0]["boost"] > 0:
            self._place_waiting(rows, float(now))

    def _reinsert(self, group: int, now: float) -> None:
        status = events.reinsert(self._memory.header, group, now) if group >= 0 else at.DONE
        while status != at.DONE:
            self._memory.grow(status)
            status = events.reinsert(self._memory.header, group, now)


def _clock(week: ArrayLike, hour: float) -> NDArray[np.float64]:
    """Time by the season at each full hour of a week."""
    rate = np.asarray(week, np.float64)
    if rate.shape != (at.HOURS,) or not (np.isfinite(rate) & (rate > 0)).all():
        raise ParameterError(f"week must be {at.HOURS} numbers above 0")
    if not 0 < hour < math.inf:
        raise ParameterError(f"hour is {hour}: must be finite and above 0")
    return np.concatenate([[0.0], np.cumsum(rate * (at.HOURS / rate.sum()))])
