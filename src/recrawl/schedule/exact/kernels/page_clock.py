"""A page's own clock: time since the fetch, by the hours of the week and by bursts after a change."""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import inline
from recrawl.schedule.exact.layout import HOURS, State


@inline
def burst_ahead(boost: float, fade: float, age: float, elapsed: float) -> float:
    """Gain of a page's own clock over an interval that begins at an age: B·T·e^{−age/T}(1 − e^{−elapsed/T})."""
    return -boost * fade * math.exp(-max(age, 0.0) / fade) * math.expm1(-elapsed / fade)


@inline
def season_between(table: NDArray[np.float64], hour: float, begin: float, end: float) -> float:
    """The time between two instants by a clock of the week; `table` is its time at each full hour."""
    total = 0.0
    for k in range(2):
        x = (end if k == 0 else begin) / hour
        week = np.floor(x / HOURS)
        x -= week * HOURS
        j = min(int(x), HOURS - 1)
        at = week * HOURS + table[j] + (x - j) * (table[j + 1] - table[j])
        total += at if k == 0 else -at
    return total * hour


@inline
def season_elapsed(s: State, begin: float, elapsed: float) -> float:
    """Time since the fetch by the season's clock."""
    if s.head[0].hour <= 0.0:
        return elapsed
    return season_between(s.season, s.head[0].hour, begin, begin + elapsed)


@inline
def burst_time(s: State, i: int, begin: float, elapsed: float) -> float:
    """By how much a page's own clock gains where a change was seen not long before the fetch."""
    if s.head[0].boost <= 0.0:
        return 0.0
    return burst_ahead(s.head[0].boost, s.head[0].fade, begin - s.member[i].changed_at, elapsed)


@inline
def own_elapsed(s: State, i: int, begin: float, elapsed: float) -> float:
    """The time since the fetch by the page's own clock: the season's, and more after a change seen not long before.

    σ + B·T·(e^{−a/T} − e^{−(a+σ)/T}): σ is the time by the season, a the time from the last change seen to the fetch.
    """
    season = season_elapsed(s, begin, elapsed)
    return season + burst_time(s, i, begin, season)
