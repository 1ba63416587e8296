"""Relations: groups of a scheduler's pages."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from recrawl.errors import ParameterError
from recrawl.model.kinds import first_row
from recrawl.schedule.exact import layout as at
from recrawl.schedule.exact.arguments import flags_per_id, per_id
from recrawl.schedule.exact.columns import Schedule
from recrawl.schedule.exact.kernels import events
from recrawl.schedule.exact.placing import Placing


class Relations(Placing):
    """The methods of a scheduler for pages that do not change independently."""

    objective: Schedule

    def relate(self, span: float, *, baseline: float = 0.0, shrink: float = 2.0) -> None:
        """Use groups from now on.

        ``span`` is the width of a bin in which a group's changes are counted, ``baseline`` the excess changes of a page
        per time while nothing is known, ``shrink`` the number of crawls that count as much as that.
        """
        if self.objective != "freshness":
            raise ParameterError(f"objective is {self.objective!r}: groups need 'freshness'")
        values = {"baseline": baseline, "shrink": shrink}
        for name, value in values.items():
            if not (0 <= value < math.inf and (value > 0 or name != "shrink")):
                raise ParameterError(f"{name} is {value}: must be finite and {'above' if value == 0 else 'at least'} 0")
        self._memory.relate(span)
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

    def _reinsert(self, group: int, now: float) -> None:
        status = events.reinsert(self._memory.header, group, now) if group >= 0 else at.DONE
        while status != at.DONE:
            self._memory.grow(status)
            status = events.reinsert(self._memory.header, group, now)
