"""Newcomers: pages added together of which nothing is known are worth the same at every moment, so few need a look.

Pages of equal importance, age and folder (where folders count) share one value for as long as none of them is crawled.
Of such a class only as many are in the scheduler as are picked at a time; the others stand in line, and each pick lets
the next one come forward.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.effects.cohort_kernels import Line, come_forward, widen
from recrawl.schedule.exact import access
from recrawl.schedule.exact.scheduler import Scheduler

Ids = NDArray[np.int64]
Array = NDArray[np.float64]

_WORTH_IT = 8  # fewer pages of a kind are not made to stand in line


class Newcomers:
    """Who stands in line, by class."""

    def __init__(self) -> None:
        none = np.zeros(0, np.int64)
        self.line = Line(kind=none, behind=none.copy(), first=none.copy(), active=none.copy())
        self._width = 1

    def append(
        self, scheduler: Scheduler, rows: Ids, importance: Array, fetched: Array, folder: Ids, *, alike: bool
    ) -> None:
        """New pages (rows are the next ids), the scheduler's already; those that are alike get in line."""
        n = int(rows[-1]) + 1
        if n > len(self.line.kind):
            room = max(n, 3 * len(self.line.kind) // 2)
            kind, behind = np.full(room, -1, np.int64), np.full(room, -1, np.int64)
            kind[: len(self.line.kind)], behind[: len(self.line.kind)] = self.line.kind, self.line.behind
            self.line = self.line._replace(kind=kind, behind=behind)
        if not alike or len(rows) < _WORTH_IT:
            return
        host = access.host_numbers(scheduler, rows)  # one that is held back must not hold back others
        alike_by = np.stack([importance, fetched, host, folder])
        _, member, count = np.unique(alike_by, axis=1, return_inverse=True, return_counts=True)
        member = member.reshape(-1)
        order = np.argsort(member, kind="stable")
        edges = np.concatenate([[0], np.cumsum(count)])
        for k in np.flatnonzero(count >= _WORTH_IT).tolist():
            self._line_up(scheduler, rows[order[edges[k] : edges[k + 1]]])

    def _line_up(self, scheduler: Scheduler, rows: Ids) -> None:
        number, width = len(self.line.first), min(self._width, len(rows))
        self.line.kind[rows] = number
        self.line = self.line._replace(
            first=np.append(self.line.first, self._chain(rows[width:])), active=np.append(self.line.active, width)
        )
        if width < len(rows):
            scheduler.pause(rows[width:])

    def _chain(self, rows: Ids) -> int:
        """Link pages one behind the other; the first of them."""
        self.line.behind[rows[:-1]] = rows[1:]
        self.line.behind[rows[-1:]] = -1
        return int(rows[0]) if len(rows) else -1

    def widen(self, scheduler: Scheduler, n: int) -> None:
        """See to it that n pages of each class can be picked at once."""
        if n <= self._width or len(self.line.first) == 0:
            return
        self._width = n
        access.repeat(scheduler, lambda header: widen(header, self.line, n))

    def come_forward(self, scheduler: Scheduler, picked: Ids) -> None:
        """For each page that was picked, let the next of its class come forward."""
        if len(self.line.first) == 0:
            return
        access.repeat(scheduler, lambda header: come_forward(header, self.line, picked))

    def leave(self, scheduler: Scheduler, rows: Ids) -> None:
        """Pages that are not like their class from now on; those that stood in line are in the scheduler then."""
        if len(self.line.first) == 0:
            return
        mine = np.unique(rows[self.line.kind[rows] >= 0])
        if len(mine) == 0:
            return
        waiting = access.is_paused(scheduler, mine)
        np.subtract.at(self.line.active, self.line.kind[mine[~waiting]], 1)
        self.line.kind[mine] = -1  # others may be linked behind it: it is passed over
        scheduler.resume(mine[waiting])
        access.repeat(scheduler, lambda header: widen(header, self.line, self._width))

    def part(self, scheduler: Scheduler, rows: Ids) -> None:
        """Pages that are alike among themselves but not like the others of their class from now on."""
        kinds = self.line.kind[rows]
        self.leave(scheduler, rows)
        for kind in np.unique(kinds[kinds >= 0]).tolist():
            rest = np.flatnonzero(self.line.kind == kind)
            self.line.first[kind] = self._chain(rest[access.is_paused(scheduler, rest)])
            mine = rows[kinds == kind]
            if len(mine) >= _WORTH_IT:
                self._line_up(scheduler, mine)

    def standing(self, page: int) -> bool:
        """Whether a page stands in line."""
        return bool(self.line.kind[page] >= 0)

    def saved(self) -> dict[str, Any]:
        """Everything."""
        return {**{name: column.copy() for name, column in self.line._asdict().items()}, "width": self._width}

    def load(self, saved: dict[str, Any]) -> None:
        """Take over what was saved."""
        self.line = Line(**{name: np.array(saved[name]) for name in Line._fields})
        self._width = int(saved["width"])

    def _check(self, scheduler: Scheduler) -> None:
        """Raise AssertionError if the line contradicts itself or the scheduler."""
        count = access.id_count(scheduler)
        kind = self.line.kind[:count]
        for k in range(len(self.line.first)):
            members = np.flatnonzero(kind == k)
            standing = set(members[access.is_paused(scheduler, members)].tolist())
            state = access.status(scheduler, members)
            assert not np.isin(state, (access.REMOVED, access.LEASED)).any(), (
                f"class {k}: a page that was picked or removed is in it"
            )
            assert self.line.active[k] == len(members) - len(standing), f"class {k}: active is not what is there"
            assert self.line.active[k] >= self._width or not standing, f"class {k}: more should have come forward"
            page, met = int(self.line.first[k]), list[int]()
            while page >= 0 and len(met) <= count:
                met.append(page)
                page = int(self.line.behind[page])
            assert standing <= set(met), f"class {k}: the line does not hold everyone"
            alike = access.tie_columns(scheduler, members)
            assert all(len(np.unique(column)) <= 1 for column in alike), f"class {k}: its pages are not alike"
