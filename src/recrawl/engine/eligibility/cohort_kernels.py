"""Cohorts and families: what the live engine and the simulator's compiled loop do with many of them at once."""

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit_lean
from recrawl.schedule.exact.access import (
    DONE,
    CohortLists,
    leave_cohort,
    next_of,
    promote_next,
    sink,
    step_out,
    waits,
)
from recrawl.schedule.exact.access_kernels import Header, importance_of, opened

Ids = NDArray[np.int64]


@jit_lean
def promote(header: Header, lists: CohortLists, picked: Ids) -> int:
    """For each picked page, schedule the next of its family; what must grow before it can go on, or DONE."""
    s = opened(header)
    for page in picked:
        status = step_out(s, lists, page)
        if status != DONE:
            return int(status)
    return DONE


@jit_lean
def leave(header: Header, lists: CohortLists, pages: Ids) -> int:
    """Pages are not like their cohorts any more: each is scheduled by itself. What must grow first, or DONE."""
    s = opened(header)
    for page in pages:
        status = leave_cohort(s, lists, page)
        if status != DONE:
            return int(status)
    return DONE


@jit_lean
def fill_up(header: Header, lists: CohortLists, families: Ids, active: Ids) -> int:
    """Schedule a page of each of some families where none is active; what must grow before it can go on, or DONE."""
    s = opened(header)
    for k in range(families.size):
        if active[k] == 0:
            status = promote_next(s, lists, families[k])
            if status != DONE:
                return int(status)
            active[k] = 1
    return DONE


@jit_lean
def trim(header: Header, lists: CohortLists, cohorts: Ids) -> None:
    """Let the lists of some cohorts begin with a page that waits."""
    s = opened(header)
    for cohort in cohorts:
        next_of(s, lists, cohort)


@jit_lean
def build_heaps(header: Header, lists: CohortLists, first: int, last: int) -> None:
    """Order the heaps of families, whose cohorts are in it in any order."""
    s = opened(header)
    for family in range(first, last):
        for k in range(lists.size[family]):
            cohort = lists.heap[lists.begin[family] + k]
            page = lists.head[cohort]
            lists.key[cohort] = importance_of(s, page) if page >= 0 else -1.0
        for k in range(lists.size[family] // 2 - 1, -1, -1):
            sink(lists, family, k)


@jit_lean
def relink(header: Header, lists: CohortLists, cohorts: Ids) -> None:
    """Take pages that have left out of the lists of some cohorts, so that they can be linked elsewhere."""
    s = opened(header)
    for cohort in cohorts:
        page, last = lists.head[cohort], -1
        lists.head[cohort] = -1
        while page >= 0:
            after = lists.following[page]
            if waits(s, lists, page, cohort):
                if last < 0:
                    lists.head[cohort] = page
                else:
                    lists.following[last] = page
                lists.following[page] = -1
                last = page
            page = after
