"""The near pages as a heap, best first, for picks of many pages: near pages are looked at once, not for each page."""

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit_lean
from recrawl.schedule.exact.kernels.state.pages import whole
from recrawl.schedule.exact.layout import State

Ids = NDArray[np.int64]


@inline
def _is_before(s: State, i: int, other: int) -> bool:
    """Whether a near page is worth more than another; equal ones by id, or in any order where hosts have rules."""
    value, than = s.near_val[s.rec[i].pos], s.near_val[s.rec[other].pos]
    return bool(value > than or (value == than and s.hosts.shape[0] == 0 and i < other))


@jit_lean
def _sink(s: State, heap: Ids, size: int, place: int) -> None:
    """Move an id down until none below it comes before it."""
    i = whole(heap[place])
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and _is_before(s, whole(heap[below + 1]), whole(heap[below])):
            below += 1
        if not _is_before(s, whole(heap[below]), i):
            break
        heap[place] = heap[below]
        place = below
    heap[place] = i


@jit_lean
def heap_of_near(s: State, heap: Ids) -> int:
    """Write all near pages, which are evaluated, as a heap; how many they are."""
    size = whole(s.head[0].n_near)
    for place in range(size):
        heap[place] = s.near_id[place]
    for place in range(size // 2 - 1, -1, -1):
        _sink(s, heap, size, place)
    return size


@jit_lean
def heap_pop(s: State, heap: Ids, size: int) -> int:
    """Take the first page out of a heap of so many pages; it is still near."""
    first = whole(heap[0])
    heap[0] = heap[size - 1]
    if size > 1:
        _sink(s, heap, size - 1, whole(0))
    return first


@jit_lean
def heap_push(s: State, heap: Ids, size: int, i: int) -> None:
    """Add a near page to a heap of so many pages."""
    place = size
    while place > 0:
        above = (place - 1) // 2
        if not _is_before(s, i, whole(heap[above])):
            break
        heap[place] = heap[above]
        place = above
    heap[place] = i
