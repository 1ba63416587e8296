"""Pages that stand in line behind others that are worth the same."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import jit
from recrawl.schedule.exact.access import DONE, rest, room_for
from recrawl.schedule.exact.access_kernels import Header, State, is_paused, opened, time_now

Ids = NDArray[np.int64]


class Line(NamedTuple):
    """Classes of pages that are worth the same."""

    kind: Ids  # per page: its class; −1: none, or it left
    behind: Ids  # per page in line: who is next
    first: Ids  # per class: who comes forward next (−1: nobody is left)
    active: Ids  # per class: how many came forward and were not picked


@jit
def _forward(s: State, line: Line, kind: int) -> int:
    """Let one page of a class come forward; what must grow first, or DONE."""
    page = line.first[kind]
    while page >= 0 and (line.kind[page] != kind or not is_paused(s, page)):
        page = line.behind[page]
    line.first[kind] = page
    if page < 0:
        return DONE
    status = room_for(s, 1)
    if status != DONE:
        return int(status)
    rest(s, page, time_now(s))
    line.active[kind] += 1
    line.first[kind] = line.behind[page]
    return DONE


@jit
def come_forward(header: Header, line: Line, picked: Ids) -> int:
    """For each picked page the next of its class comes forward; what must grow before it can go on, or DONE."""
    s = opened(header)
    for page in picked:
        kind = line.kind[page]
        if kind < 0:
            continue
        status = _forward(s, line, kind)
        if status != DONE:
            return status
        line.active[kind] -= 1
        line.kind[page] = -1
    return DONE


@jit
def depart(s: State, line: Line, page: int) -> int:
    """A page is not like its class any more; the caller places it anew. What must grow first, or DONE."""
    kind = line.kind[page]
    if kind >= 0 and not is_paused(s, page):
        status = _forward(s, line, kind)
        if status != DONE:
            return status
        line.active[kind] -= 1
    line.kind[page] = -1
    return DONE


@jit
def widen(header: Header, line: Line, n: int) -> int:
    """Let pages come forward until n of each class have; what must grow before it can go on, or DONE."""
    s = opened(header)
    for kind in range(line.first.size):
        while line.active[kind] < n and line.first[kind] >= 0:
            before = line.active[kind]
            status = _forward(s, line, kind)
            if status != DONE:
                return status
            if line.active[kind] == before:
                break
    return DONE
