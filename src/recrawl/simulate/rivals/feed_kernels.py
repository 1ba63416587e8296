"""How feed readers choose when to poll a feed, from the dates of its items (sorted, the latest last)."""

import numpy as np

from recrawl._compile.jit import jit
from recrawl.simulate.rivals.rule_kernels import FAILED, Array, Rows, clip, grid_from

# Places in the settings of each rule.
WINDOW, FACTOR, LOW, HIGH, TICK, MAX_ERRORS = range(6)  # miniflux
SHORTEST, FULL, HOUR, DAY = range(4)  # commafeed
MINUTE, AUDIENCE, ONE_DAY = range(3)  # newsblur


@jit
def miniflux(p: Array, rows: Rows, i: int, now: float, outcome: int, date: Array) -> float:
    """By the items of the last week: as many polls a week as their mean gap would make items."""
    if outcome == FAILED and rows.errors[i] >= p[MAX_ERRORS]:
        return np.inf
    recent = date[np.searchsorted(date, now - p[WINDOW]) :]
    interval = p[HIGH]
    if recent.size > 1 and recent[-1] > recent[0]:
        per_window = np.ceil(p[WINDOW] * (recent.size - 1) / (recent[-1] - recent[0]))
        interval = clip(p[WINDOW] / (per_window * p[FACTOR]), p[LOW], p[HIGH])
    return grid_from(now + interval, p[TICK])


@jit
def commafeed(p: Array, rows: Rows, i: int, now: float, outcome: int, date: Array) -> float:
    """By the age of the last item; half the mean gap while that is under a week."""
    if outcome == FAILED:
        late = p[SHORTEST] if rows.errors[i] < 3 else p[HOUR] * (rows.errors[i] - 2)
        return now + clip(late, p[SHORTEST], p[FULL])
    if date.size == 0:
        return float(now + p[FULL])
    age = now - date[-1]
    if age >= 7.0 * p[DAY]:
        part = 1.0 if age >= 30.0 * p[DAY] else (0.5 if age >= 14.0 * p[DAY] else 0.25)
        return float(now + part * p[FULL])
    if date.size == 1:
        return float(now + p[FULL])
    gap = (date[-1] - date[0]) / (date.size - 1)
    return now + clip(0.5 * gap, p[SHORTEST], 0.25 * p[FULL])


@jit
def newsblur(p: Array, rows: Rows, i: int, now: float, outcome: int, date: Array) -> float:
    """A table over items per day and subscribers, with the mean of its random part."""
    audience = p[AUDIENCE] * rows.importance[i]
    recent = date.size - np.searchsorted(date, now - 30.0 * p[ONE_DAY])
    per_day = recent / 30.0
    if per_day >= 1.0:
        wait = 6.0 if audience >= 10.0 else (15.0 if audience > 1.0 else 45.0)
    elif per_day > 0.0:
        wait = (60.0 if audience > 1.0 else 360.0) * (1.0 - per_day)
    else:
        wait = 360.0 if audience > 1.0 else (720.0 if audience == 1.0 else 1440.0)
        if date.size > 0:
            wait *= max(1.0, (now - date[-1]) / (30.0 * p[ONE_DAY]))
    wait = min(wait, 240.0 if audience >= 1.0 else 2880.0)
    if outcome == FAILED:
        wait = min(wait * rows.errors[i], 7.0 * 1440.0)
    return float(now + 1.125 * wait * p[MINUTE])
