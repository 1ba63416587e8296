"""Relations: the clocks of groups of pages."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from recrawl.errors import ParameterError
from recrawl.model.kinds import first_row
from recrawl.schedule.exact import layout as at
from recrawl.schedule.exact.arguments import check_time, per_id
from recrawl.schedule.exact.kernels import events
from recrawl.schedule.exact.kernels.queries import group_time
from recrawl.schedule.exact.placing import Placing


class Relations(Placing):
    """The methods of a scheduler for pages that do not change independently: groups with a clock each."""

    def relate(self, span: float, memory: float) -> None:
        """Let pages follow clocks from now on.

        ``span`` is the width of the bins of a clock, ``memory`` the time constant with which its pace returns to 1
        after it was published. Clocks of another span start again.
        """
        self._memory.relate(span, memory)
        self._place_all()

    def join(self, ids: ArrayLike, group: ArrayLike) -> None:
        """Let pages follow the clocks of groups (numbers; −1: real time)."""
        rows = self._columns.check(ids, distinct=True)
        self._need_clocks()
        groups = np.broadcast_to(per_id("group", group, rows), rows.shape)
        numbers = groups.astype(np.int32)
        first_row("group", groups != numbers, "must be whole")
        self._memory.add_groups(int(numbers.max(initial=-1)) + 1)
        events.join(self._memory.header, rows, np.maximum(numbers, -1))
        self._place_waiting(rows, self._now)

    def publish(self, group: int, paces: ArrayLike, ahead: float, now: float) -> None:
        """Set the clock of a group: the paces of its newest bins, the last of which contains ``now``.

        A pace of 2 means that pages change twice as often as usual. Bins that are not given keep their clock time.
        After now the pace goes from ``ahead`` back to 1.

        >>> from recrawl import Pages
        >>> from recrawl.schedule import Scheduler
        >>> s = Scheduler(Pages([0.1, 0.1]))
        >>> s.relate(1.0, memory=5.0)
        >>> s.join([1], 0)
        >>> s.publish(0, [3.0, 3.0], 1.0, 2.0)
        >>> s.clock(0, 0.0, 2.0), s.pick(2.0, 1).tolist()
        (4.0, [1])
        """
        self._need_clocks()
        check_time("now", now)
        given = np.ascontiguousarray(paces, np.float64)
        if given.ndim != 1 or len(given) > at.BINS:
            raise ParameterError(f"paces must be at most {at.BINS} numbers")
        if group != int(group) or group < 0:
            raise ParameterError(f"group is {group}: must be whole and at least 0")
        for name, pace in (("paces", given), ("ahead", np.array([float(ahead)]))):
            first_row(name, ~((pace > 0) & (pace < 1e30)), "must be finite and above 0")
        now = max(float(now), self._now)
        first = math.floor(now / float(self._memory.state.head[0]["span"])) - len(given) + 1
        self._memory.add_groups(int(group) + 1)
        events.publish(self._memory.header, int(group), first, given, float(ahead), now)
        self._reinsert(int(group), now)

    def clock(self, group: int, begin: float, end: float) -> float:
        """The time of an interval by the clock of a group; real time where none was published."""
        self._need_clocks()
        if not 0 <= group < len(self._memory.state.groups):
            raise ParameterError(f"group {group} has no pages and no clock")
        return float(group_time(self._memory.header, int(group), float(begin), float(end)))

    def _need_clocks(self) -> None:
        if self._memory.state.head[0]["span"] == 0:
            raise ParameterError("relate must come first")

    def _reinsert(self, group: int, now: float) -> None:
        status = events.reinsert(self._memory.header, group, now) if group >= 0 else at.DONE
        while status != at.DONE:
            self._memory.grow(status)
            status = events.reinsert(self._memory.header, group, now)
