"""Invariants of cohorts and families."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from recrawl.schedule.exact import access
from recrawl.schedule.exact.access import CohortLists
from recrawl.schedule.exact.scheduler import Scheduler

NO_FAMILY = 0  # the family of cohorts in which nobody waits


def check_cohorts(scheduler: Scheduler, lists: CohortLists, n: int, closed: Mapping[int, int]) -> None:
    """Raise AssertionError if the lists of n cohorts contradict themselves or the scheduler."""
    cohort = lists.cohort[: access.id_count(scheduler)]
    waiting = 0
    for k in range(n):
        waiting += _check_cohort(scheduler, lists, np.flatnonzero(cohort == k), (k, closed.get(k)))
    assert waiting == lists.waiting[0], "waiting is not what is there"
    for family in range(len(lists.size)):
        mine = np.flatnonzero(lists.family[:n] == family)
        _check_family(scheduler, lists, np.flatnonzero(np.isin(cohort, mine)), (family, closed))


def _check_cohort(
    scheduler: Scheduler, lists: CohortLists, members: NDArray[np.int64], which: tuple[int, int | None]
) -> int:
    """One cohort, and its first page if it is closed; how many of its pages wait."""
    k, first = which
    waiting = members[access.is_paused(scheduler, members)].tolist()
    picked = np.isin(access.status(scheduler, members), (access.REMOVED, access.LEASED))
    assert not picked.any(), f"cohort {k}: a page that was picked or removed is in it"
    assert lists.active[k] == len(members) - len(waiting), f"cohort {k}: active is not what is there"
    page, met = int(lists.head[k]) if first is None else first, list[int]()
    while page >= 0 and len(met) <= len(lists.cohort):
        met.append(page)
        page = int(lists.following[page])
    met = [page for page in met if page in set(waiting)]
    assert sorted(met) == waiting, f"cohort {k}: the list does not hold everyone once"
    ahead = [page for page in members.tolist() if page not in set(waiting)]
    least = access.importance(scheduler, np.array(ahead, np.int64)).min(initial=np.inf)
    weight = np.append(least, access.importance(scheduler, np.array(met, np.int64)))
    assert (weight[1:] <= weight[:-1]).all(), f"cohort {k}: its pages are not ordered by importance"
    return len(waiting)


def _check_family(
    scheduler: Scheduler, lists: CohortLists, members: NDArray[np.int64], which: tuple[int, Mapping[int, int]]
) -> None:
    """One family: no page that waits is worth more than all that are scheduled."""
    family, closed = which
    begin = int(lists.begin[family])
    heap = set(lists.heap[begin : begin + int(lists.size[family])].tolist())
    waiting = access.is_paused(scheduler, members)
    behind = set(lists.cohort[members[waiting]].tolist())
    assert behind <= heap | set(closed), f"family {family}: its heap does not hold every cohort"
    assert family != NO_FAMILY or not behind, "a page waits that belongs to no family"
    equal = access.tie_columns(scheduler, members)
    assert family == NO_FAMILY or all(len(np.unique(column)) <= 1 for column in equal), f"family {family}: not equal"
    if behind - set(closed):
        weight = access.importance(scheduler, members)
        most = weight[~waiting].max(initial=-1.0)
        assert most >= weight[waiting].max(), f"family {family}: a page waits that is worth more than those scheduled"
