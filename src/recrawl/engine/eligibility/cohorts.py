"""Cohorts: pages added together of which nothing is known, ordered by importance; one at a time is scheduled.

Pages of one folder, copy time and belief differ by their importance alone for as long as none of them is crawled: the
order by importance is their order by value at every time. Folders of pages without a copy, of which the same is
believed and whose hosts have no rules, form a family, for which that holds too; so do the folders of one host with
rules. Of a family only the first page is in the scheduler. The others wait; when the first one is picked, the next is
scheduled, within the same pick. After a fit of the tables folders differ, and the families are formed again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.eligibility.cohort_check import NO_FAMILY, check_cohorts
from recrawl.engine.eligibility.cohort_kernels import build_heaps, fill_up, leave, promote, relink, trim
from recrawl.schedule.exact import access
from recrawl.schedule.exact.scheduler import Scheduler

Ids = NDArray[np.int64]
Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

_WORTH_IT = 8  # fewer pages with copies do not form a cohort
_PER_PAGE = ("cohort", "following")
_PER_COHORT = ("head", "active", "family", "key", "bar")


class Cohorts:
    """Which pages wait, by cohort."""

    def __init__(self) -> None:
        self.lists = _empty_lists()
        self._n = 0  # cohorts, for which the lists have room
        self._n_heaps = 0  # places in the heaps that are given to families
        self._base = np.zeros(0)  # per cohort: its bar where pages are examined before they are picked
        self._examined = False  # whether they are
        self.closed: dict[int, int] = {}  # cohorts whose pages all wait for a time: the first page

    def __len__(self) -> int:
        return self._n

    # --- pages that come and go --------------------------------------------------------------------------------------

    def reserve(self, n: int) -> None:
        """Room for n pages."""
        before = len(self.lists.cohort)
        if n > before:
            room = max(n, 3 * before // 2)
            columns: dict[str, Any] = {name: np.full(room, -1, np.int32) for name in _PER_PAGE}
            for name, column in columns.items():
                column[:before] = getattr(self.lists, name)
            self.lists = self.lists._replace(**columns)

    def form(self, scheduler: Scheduler, rows: Ids, by: Ids, no_copy_at: float) -> Flags:
        """Make cohorts of pages that are equal by ``by`` and by what the scheduler knows; which of them wait.

        The rows ascend. The caller withdraws the pages that wait, and places the others. Pages without a copy form a
        cohort however few they are, so that those of one family wait for each other and are picked in the order in
        which they were added; not where hosts have rules, which decide about the order then.
        """
        waits = np.zeros(len(rows), np.bool_)
        if len(rows) < 2:
            return waits
        ties = [column for column in access.tie_columns(scheduler, rows) if (column != column[0]).any()]
        order = np.lexsort((-access.importance(scheduler, rows), by, *ties))
        apart = _differs(ties, order)
        starts = np.concatenate([[0], np.flatnonzero(apart | _differs([by], order)) + 1])
        sizes = np.diff(np.append(starts, len(rows)))
        first = rows[order[starts]]
        bare = access.last_fetched(scheduler, first) <= no_copy_at
        large = sizes >= np.where(bare & (access.host_numbers(scheduler, first) < 0), 1, _WORTH_IT)
        alone = ~bare | (scheduler.objective == "rates")
        family = np.cumsum(alone | np.concatenate([[True], apart])[starts])[large]
        order, sizes = order[np.repeat(large, sizes)], sizes[large]
        if len(sizes):
            self._link(rows[order], sizes, np.where(bare[large], 0.0, math.inf))
            cohorts = np.arange(self._n - len(sizes), self._n)
            waits[order] = True
            active = self._unite(scheduler, cohorts, family)
            waits[np.searchsorted(rows, active)] = False
        return waits

    def _link(self, rows: Ids, sizes: Ids, bars: Array) -> None:
        """New cohorts of pages, of which so many in a row belong together; all of them wait."""
        first, n = self._n, self._n + len(sizes)
        self._grow(n)
        begin = np.cumsum(sizes) - sizes
        lists = self.lists
        lists.cohort[rows] = np.repeat(np.arange(first, n), sizes)
        lists.following[rows[:-1]] = rows[1:]
        lists.following[rows[begin + sizes - 1]] = -1
        lists.head[first:n] = rows[begin]
        lists.active[first:n] = 0
        self._base[first:n] = bars
        lists.bar[first:n] = bars if self._examined else 0.0
        lists.waiting[0] += len(rows)

    def _unite(self, scheduler: Scheduler, cohorts: Ids, family: Ids) -> Ids:
        """New families of cohorts by numbers that ascend; the first page of each, which no longer waits."""
        lists = self.lists
        _, begin, number, size = np.unique(family, return_index=True, return_inverse=True, return_counts=True)
        first = len(lists.size)
        lists.family[cohorts] = first + number
        self.lists = lists = lists._replace(
            begin=np.append(lists.begin, self._n_heaps + begin),
            size=np.append(lists.size, size),
            heap=_with_rows(lists.heap, self._n_heaps, cohorts),
        )
        self._n_heaps += len(cohorts)
        build_heaps(access.header(scheduler), lists, first, len(lists.size))
        top = lists.heap[lists.begin[first:]].astype(np.int64)
        pages = lists.head[top].copy()
        lists.head[top] = lists.following[pages]
        lists.active[top] += 1
        lists.waiting[0] -= len(top)
        build_heaps(access.header(scheduler), lists, first, len(lists.size))
        return pages

    def regroup(self, scheduler: Scheduler, no_copy_at: float) -> None:
        """What is believed of folders has changed: form the families of all cohorts again."""
        lists = self.lists
        if self._n == 0:
            return
        trim(access.header(scheduler), lists, np.arange(self._n))
        shut = np.array(sorted(self.closed), np.int64)
        live = np.flatnonzero(lists.head[: self._n] >= 0)
        lists.family[: self._n] = NO_FAMILY
        ties = access.tie_columns(scheduler, lists.head[live])
        bare = access.last_fetched(scheduler, lists.head[live]) <= no_copy_at
        alone = np.where(bare & (scheduler.objective != "rates"), -1, live)
        order = np.lexsort((*ties, alone))
        apart = np.append(np.ones(min(len(live), 1), np.bool_), _differs([*ties, alone], order))
        begin = np.append(np.flatnonzero(apart), len(live) + np.arange(len(shut)))  # closed ones are not in their heaps
        size = np.append(np.diff(np.append(begin[: int(apart.sum())], len(live))), np.zeros(len(shut), np.int64))
        lists.family[live[order]] = np.cumsum(apart)
        lists.family[shut] = int(apart.sum()) + 1 + np.arange(len(shut))
        self._n_heaps = len(live) + len(shut)
        self.lists = lists = lists._replace(
            begin=np.append(0, begin), size=np.append(0, size), heap=np.append(live[order], shut).astype(np.int32)
        )
        build_heaps(access.header(scheduler), lists, 1, len(lists.size))
        self._fill_up(scheduler, np.arange(1, len(lists.size)))

    def _fill_up(self, scheduler: Scheduler, families: Ids) -> None:
        """Schedule a page of each of some families, where none is."""
        family, active = self.lists.family[: self._n], self.lists.active[: self._n]
        here = np.bincount(family, weights=active, minlength=len(self.lists.size))[families].astype(np.int64)
        access.repeat(scheduler, lambda header: fill_up(header, self.lists, families, here))

    def _grow(self, n: int) -> None:
        """Room for n cohorts."""
        if n > len(self._base):
            more = max(n, 3 * len(self._base) // 2) - len(self._base)
            columns: dict[str, Any] = {
                name: np.append(column := getattr(self.lists, name), np.zeros(more, column.dtype))
                for name in _PER_COHORT
            }
            self.lists = self.lists._replace(**columns)
            self._base = np.append(self._base, np.zeros(more))
        self._n = n

    def promote(self, scheduler: Scheduler, picked: Ids) -> None:
        """For each page that was picked, promote the next of its cohort."""
        if self._n and self.members(picked).any():
            access.repeat(scheduler, lambda header: promote(header, self.lists, picked))

    def leave(self, scheduler: Scheduler, rows: Ids) -> None:
        """Pages that are not like their cohort from now on; those that waited are in the scheduler then."""
        if self._n and self.members(rows).any():
            access.repeat(scheduler, lambda header: leave(header, self.lists, rows))

    def waiting(self, scheduler: Scheduler, rows: Ids) -> Flags:
        """Which pages wait for others of their cohort, and for nothing else."""
        closed = np.fromiter(self.closed, np.int64, len(self.closed))
        open_ = self.members(rows) & ~np.isin(self.lists.cohort[rows], closed)
        return np.asarray(open_ & access.is_paused(scheduler, rows))

    def taken(self, scheduler: Scheduler, rows: Ids, waited: Flags) -> None:
        """Pages were leased out of turn: those that waited leave, and the next is promoted for each other one."""
        self.lists.cohort[rows[waited]] = -1
        self.lists.waiting[0] -= int(waited.sum())
        self.promote(scheduler, rows[~waited])

    def split(self, scheduler: Scheduler, rows: Ids, no_copy_at: float) -> None:
        """Pages that are alike among themselves but not to the others of their cohort from now on. The rows ascend."""
        mine = rows[self.members(rows)] if self._n else rows[:0]
        if len(mine) == 0:
            return
        lists = self.lists
        before, waited = lists.cohort[mine].astype(np.int64), access.is_paused(scheduler, mine)
        np.subtract.at(lists.active, before[~waited], 1)
        lists.waiting[0] -= int(waited.sum())
        lists.cohort[mine] = -1
        touched = np.unique(before)
        shut = [cohort for cohort in touched.tolist() if cohort in self.closed]
        for cohort in shut:
            lists.head[cohort] = self.closed[cohort]
        relink(access.header(scheduler), lists, touched)
        for cohort in shut:
            self.closed[cohort], lists.head[cohort] = int(lists.head[cohort]), -1
        self._fill_up(scheduler, np.unique(lists.family[touched]))
        waits = self.form(scheduler, mine, before, no_copy_at)
        scheduler.pause(mine[waits & ~waited])
        access.place(scheduler, mine[~waits & waited], access.now(scheduler))

    # --- picks -------------------------------------------------------------------------------------------------------

    def pick(
        self, scheduler: Scheduler, now: float, n: int, examine: Callable[[int], float | None] | None = None
    ) -> Ids:
        """The n pages of largest value, best first, leased; the next of each cohort is scheduled meanwhile.

        ``examine`` is asked about the first page of a cohort with copies: None says that none of the cohort may be
        picked now, a number from which importance on all of them may.
        """
        if self._examined != (examine is not None):
            self._examined = examine is not None
            self.lists.bar[:] = self._base if self._examined else 0.0
        out, found = np.empty(n, np.int64), list[int]()
        status, taken = self._pick(scheduler, now, n, out)
        while True:
            if status == access.EXAMINE and examine is not None:
                last = out[taken - 1 : taken]
                bar = examine(int(last[0]))
                if bar is not None:
                    found.append(int(self.lists.cohort[last[0]]))
                    self.lists.bar[found[-1]] = bar
                    self.promote(scheduler, last)
            elif status != access.DONE:
                access.grow(scheduler, status)
            if status == access.DONE or taken == n:
                if found:
                    self.lists.bar[found] = self._base[found]
                return out if taken == n else out[:taken]
            status, more = self._pick(scheduler, access.now(scheduler), n - taken, out[taken:])
            taken += more

    def _pick(self, scheduler: Scheduler, now: float, n: int, out: Ids) -> tuple[int, int]:
        """What the kernel of picks answers, with promotions where pages wait; a time that went back is counted."""
        header = access.header(scheduler)
        if self.lists.waiting[0] == 0:
            return access.pick(header, now, n, out)
        return access.pick_promoting(header, self.lists, now, n, out)

    def close(self, page: int) -> int:
        """A page that was picked is withdrawn again, and its cohort with it: no other page is promoted."""
        cohort = int(self.lists.cohort[page])
        self.lists.following[page] = self.closed.get(cohort, int(self.lists.head[cohort]))
        self.closed[cohort], self.lists.head[cohort] = page, -1
        self.lists.active[cohort] -= 1
        self.lists.waiting[0] += 1
        return cohort

    def open(self, scheduler: Scheduler, cohorts: Iterable[int]) -> None:
        """Promote pages of closed cohorts again."""
        again, lists = np.array(list(cohorts), np.int64), self.lists
        for cohort in again.tolist():
            lists.head[cohort] = self.closed.pop(cohort)
        families = lists.family[again]
        lists.heap[lists.begin[families]], lists.size[families], lists.key[again] = again, 1, math.inf
        self._fill_up(scheduler, families)

    def pages(self, first: int, last: int) -> Ids:
        """The pages of the cohorts from the first to before the last."""
        return np.flatnonzero((self.lists.cohort >= first) & (self.lists.cohort < last))

    def members(self, rows: Ids) -> Flags:
        """Which pages belong to a cohort."""
        return np.asarray(self.lists.cohort[rows] >= 0)

    def any_of(self, rows: Ids) -> bool:
        """Whether any page that is there belongs to a cohort."""
        return bool(self._n) and bool((self.lists.cohort.take(rows, mode="clip") >= 0).any())

    def contains(self, page: int) -> bool:
        """Whether a page belongs to a cohort."""
        return bool(self.lists.cohort[page] >= 0)

    # --- saved state -------------------------------------------------------------------------------------------------

    def saved(self) -> dict[str, Any]:
        """Everything: the arrays themselves."""
        columns = self.lists._asdict()
        columns |= {name: columns[name][: self._n] for name in _PER_COHORT}
        columns["heap"] = columns["heap"][: self._n_heaps]
        bars = {"base": self._base[: self._n], "examined": self._examined}
        return {**columns, **bars, "closed": sorted(self.closed.items())}

    def load(self, saved: dict[str, Any]) -> None:
        """Take over what was saved."""
        empty = _empty_lists()._asdict()
        self.lists = access.CohortLists(**{name: np.array(saved[name], empty[name].dtype) for name in empty})
        self._n, self._n_heaps, self._base = len(self.lists.head), len(self.lists.heap), np.array(saved["base"])
        self._examined = bool(saved["examined"])
        self.closed = dict(saved["closed"])

    def _check(self, scheduler: Scheduler) -> None:
        """Raise AssertionError if the lists contradict themselves or the scheduler."""
        check_cohorts(scheduler, self.lists, self._n, self.closed)


def _differs(columns: list[NDArray[Any]], order: Ids) -> Flags:
    """Where rows in an order differ from the row before, by any of some columns; without the first one."""
    out = np.zeros(max(len(order) - 1, 0), np.bool_)
    for column in columns:
        ordered = column[order]
        out |= ordered[1:] != ordered[:-1]
    return out


def _with_rows(column: NDArray[np.int32], n: int, values: Ids) -> NDArray[np.int32]:
    """The first n rows of a column and some more; where it is too short, a longer one."""
    if n + len(values) > len(column):
        short, column = column, np.zeros(max(n + len(values), 3 * len(column) // 2), np.int32)
        column[:n] = short[:n]
    column[n : n + len(values)] = values
    return column


def _empty_lists() -> access.CohortLists:
    """No page, no cohort, and the family of cohorts in which nobody waits."""
    kinds: dict[str, Any] = dict.fromkeys(access.CohortLists._fields, np.int64)
    kinds |= dict.fromkeys(("cohort", "following", "heap"), np.int32) | dict.fromkeys(("key", "bar"), np.float64)
    sizes = {"begin": 1, "size": 1, "waiting": 1}
    return access.CohortLists(**{name: np.zeros(sizes.get(name, 0), kind) for name, kind in kinds.items()})
