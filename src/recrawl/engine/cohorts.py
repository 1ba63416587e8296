"""Tie cohorts: pages added together of which nothing is known have the same value, so that few need to be scheduled.

Pages of equal importance, age and folder (where folders count) share one value for as long as none of them is crawled.
Of such a cohort only as many pages are in the scheduler as are picked at a time; the others wait, and each pick
promotes the next one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.cohort_kernels import CohortLists, promote, widen
from recrawl.schedule.exact import access
from recrawl.schedule.exact.scheduler import Scheduler

Ids = NDArray[np.int64]
Array = NDArray[np.float64]

_WORTH_IT = 8  # fewer equal pages with copies do not form a cohort


class Cohorts:
    """Which pages wait, by cohort."""

    def __init__(self) -> None:
        none = np.zeros(0, np.int64)
        self.lists = CohortLists(cohort=none, following=none.copy(), head=none.copy(), active=none.copy())
        self._width = 1
        self.closed: dict[int, int] = {}  # cohorts whose pages all wait for a time: the first page

    def append(
        self, scheduler: Scheduler, rows: Ids, equal_by: tuple[Array, Array, Ids] | None, no_copy_at: float
    ) -> None:
        """New pages (rows are the next ids), already in the scheduler; those that are equal form cohorts.

        ``equal_by`` is importance, time of the copy and folder; None: no two pages are known to have the same value.
        Any two equal pages without a copy form a cohort, so that they are picked in the order in which they were added;
        not where hosts have rules, which decide about the order then.
        """
        n = int(rows[-1]) + 1
        if n > len(self.lists.cohort):
            room = max(n, 3 * len(self.lists.cohort) // 2)
            cohort, following = np.full(room, -1, np.int64), np.full(room, -1, np.int64)
            cohort[: len(self.lists.cohort)] = self.lists.cohort
            following[: len(self.lists.cohort)] = self.lists.following
            self.lists = self.lists._replace(cohort=cohort, following=following)
        if equal_by is None or len(rows) < 2:
            return
        host = access.host_numbers(scheduler, rows)  # one that is held back must not hold back others
        keys = (*equal_by[:2], host, equal_by[2])
        order = np.lexsort(keys[::-1])
        differs = np.any([column[order][1:] != column[order][:-1] for column in keys], axis=0)
        starts = np.concatenate([[0], np.flatnonzero(differs) + 1])
        first = order[starts]
        least = np.where((equal_by[1][first] <= no_copy_at) & (host[first] < 0), 2, _WORTH_IT)
        self._form(scheduler, rows[order], np.diff(np.append(starts, len(rows))), least)

    def _form(self, scheduler: Scheduler, rows: Ids, sizes: Ids, least: Ids) -> None:
        """Make cohorts of pages, of which so many in a row belong together; none of fewer than the least."""
        large = sizes >= least
        rows, sizes = rows[np.repeat(large, sizes)], sizes[large]
        number, place = len(self.lists.head) + np.arange(len(sizes)), np.cumsum(sizes) - sizes
        width = np.minimum(self._width, sizes)
        waits = np.arange(len(rows)) - np.repeat(place, sizes) >= np.repeat(width, sizes)
        head = np.full(len(sizes), -1, np.int64)
        head[width < sizes] = rows[(place + width)[width < sizes]]
        self.lists.cohort[rows] = np.repeat(number, sizes)
        self.lists.following[rows[:-1]] = rows[1:]
        self.lists.following[np.append(rows[~waits], rows[place + sizes - 1])] = -1
        self.lists = self.lists._replace(
            head=np.append(self.lists.head, head), active=np.append(self.lists.active, width)
        )
        if waits.any():
            scheduler.pause(rows[waits])

    def _chain(self, rows: Ids) -> int:
        """Link pages one after the other; the first of them."""
        self.lists.following[rows[:-1]] = rows[1:]
        self.lists.following[rows[-1:]] = -1
        return int(rows[0]) if len(rows) else -1

    def widen(self, scheduler: Scheduler, n: int) -> None:
        """Promote pages until n of each cohort can be picked at once."""
        if n <= self._width or len(self.lists.head) == 0:
            return
        self._width = n
        access.repeat(scheduler, lambda header: widen(header, self.lists, n))

    def promote(self, scheduler: Scheduler, picked: Ids) -> None:
        """For each page that was picked, promote the next of its cohort."""
        if len(self.lists.head) == 0:
            return
        access.repeat(scheduler, lambda header: promote(header, self.lists, picked))

    def leave(self, scheduler: Scheduler, rows: Ids) -> None:
        """Pages that are not equal to their cohort from now on; those that waited are in the scheduler then."""
        if len(self.lists.head) == 0:
            return
        mine = np.unique(rows[self.members(rows)])
        if len(mine) == 0:
            return
        waiting = access.is_paused(scheduler, mine)
        np.subtract.at(self.lists.active, self.lists.cohort[mine[~waiting]], 1)
        self.lists.cohort[mine] = -1  # others may be linked behind it: it is passed over
        scheduler.resume(mine[waiting])
        access.repeat(scheduler, lambda header: widen(header, self.lists, self._width))

    def split(self, scheduler: Scheduler, rows: Ids) -> None:
        """Pages that are equal among themselves but not to the others of their cohort from now on."""
        cohorts = self.lists.cohort[rows]
        self.leave(scheduler, rows)
        touched, sizes = np.unique(cohorts[cohorts >= 0], return_counts=True)
        if len(touched) == 0:
            return
        rest = np.flatnonzero(np.isin(self.lists.cohort, touched))
        rest = rest[access.is_paused(scheduler, rest)]
        rest = rest[np.argsort(self.lists.cohort[rest], kind="stable")]
        edges = np.searchsorted(self.lists.cohort[rest], np.append(touched, touched[-1] + 1))
        for cohort, first, last in zip(touched.tolist(), edges[:-1], edges[1:], strict=True):
            head = self._chain(rest[first:last])
            if cohort in self.closed:
                self.closed[cohort] = head
            else:
                self.lists.head[cohort] = head
        mine = rows[cohorts >= 0]
        self._form(
            scheduler, mine[np.argsort(cohorts[cohorts >= 0], kind="stable")], sizes, np.full(len(sizes), _WORTH_IT)
        )

    def close(self, page: int) -> int:
        """A page that was picked is withdrawn again, and its cohort with it: no other page is promoted."""
        cohort = int(self.lists.cohort[page])
        self.lists.following[page] = self.closed.get(cohort, int(self.lists.head[cohort]))
        self.closed[cohort], self.lists.head[cohort] = page, -1
        self.lists.active[cohort] -= 1
        return cohort

    def open(self, scheduler: Scheduler, cohorts: Iterable[int]) -> None:
        """Promote pages of closed cohorts again."""
        for cohort in cohorts:
            self.lists.head[cohort] = self.closed.pop(cohort)
        access.repeat(scheduler, lambda header: widen(header, self.lists, self._width))

    def members(self, rows: Ids) -> NDArray[np.bool_]:
        """Which pages belong to a cohort."""
        return np.asarray(self.lists.cohort[rows] >= 0)

    def contains(self, page: int) -> bool:
        """Whether a page belongs to a cohort."""
        return bool(self.lists.cohort[page] >= 0)

    def saved(self) -> dict[str, Any]:
        """Everything."""
        columns = {name: column.copy() for name, column in self.lists._asdict().items()}
        return {**columns, "width": self._width, "closed": sorted(self.closed.items())}

    def load(self, saved: dict[str, Any]) -> None:
        """Take over what was saved."""
        self.lists = CohortLists(**{name: np.array(saved[name]) for name in CohortLists._fields})
        self._width = int(saved["width"])
        self.closed = dict(saved.get("closed", ()))

    def _check(self, scheduler: Scheduler) -> None:
        """Raise AssertionError if the lists contradict themselves or the scheduler."""
        count = access.id_count(scheduler)
        cohort = self.lists.cohort[:count]
        for k in range(len(self.lists.head)):
            members = np.flatnonzero(cohort == k)
            waiting = set(members[access.is_paused(scheduler, members)].tolist())
            state = access.status(scheduler, members)
            picked = np.isin(state, (access.REMOVED, access.LEASED))
            assert not picked.any(), f"cohort {k}: a page that was picked or removed is in it"
            assert self.lists.active[k] == len(members) - len(waiting), f"cohort {k}: active is not what is there"
            ready = self.lists.active[k] >= self._width or k in self.closed
            assert ready or not waiting, f"cohort {k}: more should have been promoted"
            page, met = self.closed.get(k, int(self.lists.head[k])), list[int]()
            while page >= 0 and len(met) <= count:
                met.append(page)
                page = int(self.lists.following[page])
            assert waiting <= set(met), f"cohort {k}: the list does not hold everyone"
            equal = access.tie_columns(scheduler, members)
            assert all(len(np.unique(column)) <= 1 for column in equal), f"cohort {k}: its pages are not equal"
