"""Tie cohorts: pages of equal value, of which only a few are scheduled at a time."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import jit_lean
from recrawl.schedule.exact.access import DONE, rest, room_for
from recrawl.schedule.exact.access_kernels import Header, State, is_paused, opened, time_now

Ids = NDArray[np.int64]


class CohortLists(NamedTuple):
    """Linked lists of the pages that wait in each cohort."""

    cohort: Ids  # per page: its cohort; −1: none, or it left
    following: Ids  # per page that waits: the one after it
    head: Ids  # per cohort: who is promoted next (−1: nobody is left)
    active: Ids  # per cohort: how many were promoted and not picked


@jit_lean
def _promote(s: State, lists: CohortLists, cohort: int) -> int:
    """Schedule the next page of a cohort; what must grow first, or DONE."""
    page = lists.head[cohort]
    while page >= 0 and (lists.cohort[page] != cohort or not is_paused(s, page)):
        page = lists.following[page]
    lists.head[cohort] = page
    if page < 0:
        return DONE
    status = room_for(s, 1)
    if status != DONE:
        return int(status)
    rest(s, page, time_now(s))
    lists.active[cohort] += 1
    lists.head[cohort] = lists.following[page]
    return DONE


@jit_lean
def promote(header: Header, lists: CohortLists, picked: Ids) -> int:
    """For each picked page, schedule the next of its cohort; what must grow before it can go on, or DONE."""
    s = opened(header)
    for page in picked:
        cohort = lists.cohort[page]
        if cohort < 0:
            continue
        status = _promote(s, lists, cohort)
        if status != DONE:
            return status
        lists.active[cohort] -= 1
        lists.cohort[page] = -1
    return DONE


@jit_lean
def leave(s: State, lists: CohortLists, page: int) -> int:
    """A page is not equal to its cohort any more: it is scheduled by itself. What must grow first, or DONE."""
    cohort = lists.cohort[page]
    if cohort < 0:
        return DONE
    if is_paused(s, page):
        status = room_for(s, 1)
        if status != DONE:
            return int(status)
        rest(s, page, time_now(s))
    else:
        status = _promote(s, lists, cohort)
        if status != DONE:
            return int(status)
        lists.active[cohort] -= 1
    lists.cohort[page] = -1
    return DONE


@jit_lean
def widen(header: Header, lists: CohortLists, n: int) -> int:
    """Promote pages until n of each cohort are scheduled; what must grow before it can go on, or DONE."""
    s = opened(header)
    for cohort in range(lists.head.size):
        while lists.active[cohort] < n and lists.head[cohort] >= 0:
            before = lists.active[cohort]
            status = _promote(s, lists, cohort)
            if status != DONE:
                return status
            if lists.active[cohort] == before:
                break
    return DONE
