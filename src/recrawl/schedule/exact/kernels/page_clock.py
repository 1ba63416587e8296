"""A page's own clock: time since the fetch, by the hours of the week and by bursts after a change."""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import inline
from recrawl.schedule.exact.layout import BOOST, FADE, HOUR, HOURS, SEASON, State


@inline
def burst_ahead(boost: float, fade: float, age: float, elapsed: float) -> float:
    """By how much a page's own time runs ahead over an interval that begins at an age."""
    return -boost * fade * math.exp(-max(age, 0.0) / fade) * math.expm1(-elapsed / fade)


@inline
def season_between(table: NDArray[np.float64], hour: float, begin: float, end: float) -> float:
    """The time between two instants by a clock that runs as the hours of the week in `table` say."""
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
    """Time since the fetch by the hours of the week in which pages change."""
    if s.flts[HOUR] <= 0.0:
        return elapsed
    return season_between(s.flts[SEASON : SEASON + HOURS + 1], s.flts[HOUR], begin, begin + elapsed)


@inline
def burst_time(s: State, i: int, begin: float, elapsed: float) -> float:
    """By how much a page's own time runs ahead where a change was seen not long before the fetch."""
    if s.flts[BOOST] <= 0.0:
        return 0.0
    return burst_ahead(s.flts[BOOST], s.flts[FADE], begin - s.kin[i].changed_at, elapsed)


@inline
def own_elapsed(s: State, i: int, begin: float, elapsed: float) -> float:
    """The time since the fetch at the page's own pace: by the season, and more where a change was seen not long before.

    σ + B·T·(e^{−a/T} − e^{−(a+σ)/T}), σ being the time by the season, a the copy's age when it was fetched: since the
    last change seen.
    """
    season = season_elapsed(s, begin, elapsed)
    return season + burst_time(s, i, begin, season)
