"""Questions about pages. Every kernel here leaves every byte of the scheduler's state as it was."""

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit_lean
from recrawl.schedule.exact.kernels.state.pages import state_of
from recrawl.schedule.exact.kernels.state.view import Header, opened
from recrawl.schedule.exact.kernels.value.clocks import clock_between, page_clock
from recrawl.schedule.exact.kernels.value.values import worth_of
from recrawl.schedule.exact.kernels.value.wakes import earliest_wake
from recrawl.schedule.exact.layout import GONE

Ids = NDArray[np.int64]
Array = NDArray[np.float64]


@jit_lean
def fill_values(header: Header, ids: Ids, now: float, out: Array) -> None:
    """Crawl values of pages at a time; 0 for removed ones."""
    s = opened(header)
    for k in range(ids.size):
        out[k] = worth_of(s, ids[k], now)[0] if state_of(s, ids[k]) != GONE else 0.0


@jit_lean
def reaches_at(header: Header, i: int, now: float, level: float, value: float) -> float:
    """A time ≥ now before which the value of page i, now the given one, stays below a level; infinity: always."""
    return float(earliest_wake(opened(header), i, now, level, value, -1.0)[0])


@jit_lean
def clock_time(header: Header, i: int, begin: float, end: float) -> float:
    """The time of an interval by the clock of page i."""
    return float(page_clock(opened(header), i, begin, end))


@jit_lean
def group_time(header: Header, g: int, begin: float, end: float) -> float:
    """The time of an interval by the clock of a group."""
    return float(clock_between(opened(header), g, begin, end))


@jit_lean
def fill_reached(header: Header, ids: Ids, now: float, level: float, longest: float, out: Array) -> None:
    """The earliest time from now on at which each page is worth a level; infinity: not within the longest time."""
    s = opened(header)
    for k in range(ids.size):
        i = ids[k]
        low, high = 0.0, 0.0
        step = max(now - s.rec[i].last, 1e-9 * longest)
        while high < longest and worth_of(s, i, now + high)[0] < level:
            low, high = high, min(high + step, longest)
            step *= 2.0
        if high >= longest and worth_of(s, i, now + longest)[0] < level:
            out[k] = np.inf
            continue
        while high - low > 1e-9 * (now + high - min(s.rec[i].last, now)):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            if worth_of(s, i, now + middle)[0] < level:
                low = middle
            else:
                high = middle
        out[k] = now + high
