"""Cohorts and families: pages whose order by value never changes, of which one at a time is scheduled.

The pages of a cohort have one belief, copy time, host and clock; only their importance differs. A page's value grows
with its importance, so that at every time the order by importance is an order by value. Cohorts that have the same
belief, copy time and host form a family, for which the same holds. The page of the largest importance stands for its
family: while it waits to be picked, no other page of the family is worth more. When it is picked or leaves, the next
one is scheduled (`promote_next`): the first page of the cohort at the top of the family's heap.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit_lean
from recrawl.schedule.exact.kernels.places.layers import place, room_for
from recrawl.schedule.exact.kernels.state.pages import forget_bounds, state_of
from recrawl.schedule.exact.layout import DONE, PAUSED, State

Ids = NDArray[np.int64]
ShortIds = NDArray[np.int32]
Array = NDArray[np.float64]


class CohortLists(NamedTuple):
    """Linked lists of the pages that wait in each cohort, by falling importance; heaps of cohorts."""

    cohort: ShortIds  # per page: its cohort; −1: none, or it left
    following: ShortIds  # per page that waits: the one after it
    head: Ids  # per cohort: who is promoted next (−1: nobody is left)
    active: Ids  # per cohort: how many were promoted and not picked
    family: Ids  # per cohort
    key: Array  # per cohort: importance of the head, or of one before it that has left
    bar: Array  # per cohort: from which importance on a page is picked without being examined first
    begin: Ids  # per family: where its heap begins
    size: Ids  # per family: cohorts in its heap
    heap: ShortIds  # the heaps of all families, by falling key and rising head
    waiting: Ids  # (1,): how many pages wait in all cohorts


@inline
def waits(s: State, lists: CohortLists, page: int, cohort: int) -> bool:
    """Whether a page waits in a cohort: it did not leave, and is withdrawn."""
    return bool(lists.cohort[page] == cohort and state_of(s, page) == PAUSED)


@inline
def next_of(s: State, lists: CohortLists, cohort: int) -> int:
    """The page of a cohort that is promoted next, −1: none; pages that have left are dropped from the list."""
    page = lists.head[cohort]
    while page >= 0 and not waits(s, lists, page, cohort):
        page = lists.following[page]
    lists.head[cohort] = page
    return int(page)


@inline
def _is_before(lists: CohortLists, one: int, other: int) -> bool:
    """Whether a cohort comes before another one: by importance, equal ones by the ids of their pages."""
    a, b = lists.key[one], lists.key[other]
    return bool(a > b or (a == b and lists.head[one] < lists.head[other]))


@jit_lean
def sink(lists: CohortLists, family: int, place: int) -> None:
    """Move a cohort of a family's heap down to where it belongs."""
    begin, size = lists.begin[family], lists.size[family]
    cohort = lists.heap[begin + place]
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _is_before(lists, lists.heap[begin + child + 1], lists.heap[begin + child]):
            child += 1
        if not _is_before(lists, lists.heap[begin + child], cohort):
            break
        lists.heap[begin + place] = lists.heap[begin + child]
        place = child
    lists.heap[begin + place] = cohort


@jit_lean
def top_page(s: State, lists: CohortLists, family: int) -> int:
    """The waiting page of a family that is promoted next, −1: none. It is the head of the heap's first cohort."""
    begin = lists.begin[family]
    while lists.size[family] > 0:
        cohort = lists.heap[begin]
        page = next_of(s, lists, cohort)
        if page >= 0 and s.rec[page].importance >= lists.key[cohort]:
            return int(page)
        if page >= 0:
            lists.key[cohort] = s.rec[page].importance
        else:
            lists.size[family] -= 1
            lists.heap[begin] = lists.heap[begin + lists.size[family]]
        if lists.size[family] > 0:
            sink(lists, family, 0)
    return -1


@jit_lean
def promote_next(s: State, lists: CohortLists, family: int) -> int:
    """Schedule the next page of a family; what must grow first, or DONE."""
    page = top_page(s, lists, family)
    if page < 0:
        return DONE
    status = room_for(s, 1)
    if status != DONE:
        return int(status)
    cohort = lists.cohort[page]
    forget_bounds(s, page)
    place(s, page, s.head[0].now)
    lists.active[cohort] += 1
    lists.waiting[0] -= 1
    lists.head[cohort] = lists.following[page]
    after = next_of(s, lists, cohort)
    if after >= 0:
        lists.key[cohort] = s.rec[after].importance
        sink(lists, family, 0)
    return DONE


@jit_lean
def step_out(s: State, lists: CohortLists, page: int) -> int:
    """The scheduled page of a cohort was picked, or is a case by itself: the next of its family is scheduled.

    What must grow first, or DONE.
    """
    cohort = lists.cohort[page]
    if cohort < 0:
        return DONE
    status = promote_next(s, lists, lists.family[cohort])
    if status == DONE:
        lists.active[cohort] -= 1
        lists.cohort[page] = -1
    return int(status)


@jit_lean
def leave(s: State, lists: CohortLists, page: int) -> int:
    """A page is not like its cohort any more: it is scheduled by itself. What must grow first, or DONE."""
    cohort = lists.cohort[page]
    if cohort < 0 or state_of(s, page) != PAUSED:
        return step_out(s, lists, page)
    status = room_for(s, 1)
    if status != DONE:
        return int(status)
    forget_bounds(s, page)
    place(s, page, s.head[0].now)
    lists.waiting[0] -= 1
    lists.cohort[page] = -1
    return DONE
