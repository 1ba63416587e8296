"""The clocks of groups: time that runs faster while the pages of a group change more often than usual.

A clock is published from outside: a ring of bins over time with a pace each, the pace before the oldest bin (`tail`)
and the pace just after the publication (`ahead`). From there the pace returns to 1: after a time u it is
1 + (ahead − 1)e^{−u/memory}. The clock time of an interval is the integral of the pace. A clock that was never
published shows real time.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit_lean
from recrawl.schedule.exact.layout import BINS, State

_STEPS = 4  # of the search for a time; each comes nearer from below
_NEAR = 1e-3  # of the amount: a time found is early by at most that


@inline
def _path(s: State, g: int, age: float, elapsed: float) -> float:
    """Clock time over an interval that begins some time after the last publication."""
    memory, decay = s.head[0].memory, 1.0
    if age > 0.0:
        decay = math.exp(-age / memory)
    return float(elapsed - (s.groups[g].ahead - 1.0) * memory * decay * math.expm1(-elapsed / memory))


@inline
def until_update(s: State, g: int, since: float) -> float:
    """Clock time from a time to the last publication, which is later."""
    span, updated = s.head[0].span, s.groups[g].updated_at
    oldest = int(s.groups[g].newest) - BINS + 1
    time = 0.0
    b = oldest
    if since < oldest * span:
        time = s.groups[g].tail * (oldest * span - since)
        since = oldest * span
    else:
        b = max(int(np.floor(since / span)), oldest)
    k = b % BINS
    return float(time + s.bins[g, k].after + s.bins[g, k].pace * (min((b + 1) * span, updated) - since))


@jit_lean
def clock_between(s: State, g: int, since: float, now: float) -> float:
    """Clock time of a group from one time to another; 0 where that is not later."""
    if now <= since:
        return 0.0
    updated = s.groups[g].updated_at
    if math.isinf(s.groups[g].newest):
        return float(now - since)
    if since >= updated:
        return float(_path(s, g, since - updated, now - since))
    return clock_from(s, g, until_update(s, g, since), now)


@inline
def clock_from(s: State, g: int, until: float, now: float) -> float:
    """Clock time up to now from a time before the last publication, of which `until` is what `until_update` says."""
    updated = s.groups[g].updated_at
    if now < updated:
        return float(until - until_update(s, g, now))
    return float(until + _path(s, g, 0.0, now - updated))


@inline
def pace_at(s: State, g: int, now: float) -> float:
    """The pace of a clock at a time, not before the last publication."""
    if math.isinf(s.groups[g].newest):
        return 1.0
    return float(1.0 + (s.groups[g].ahead - 1.0) * math.exp(-(now - s.groups[g].updated_at) / s.head[0].memory))


@jit_lean
def time_ahead(s: State, g: int, now: float, amount: float) -> float:
    """In what time from now the clock goes on by an amount, or by a little less (`_NEAR`).

    The root of f(u) = u + (a − 1)·memory·(1 − e^{−u/memory}), a the pace now. For a > 1 f is concave: Newton's steps
    from below stay below. For a < 1 it is convex: those from above stay above, and chords to them below.
    """
    pace, memory = pace_at(s, g, now), s.head[0].memory
    lead = (pace - 1.0) * memory
    low, high = max(amount / pace, amount - lead) if pace > 1.0 else amount, amount - lead
    for _ in range(_STEPS):
        decay = math.exp(-low / memory)
        missing = amount - low - lead * (1.0 - decay)
        if missing <= _NEAR * amount:
            break
        if pace > 1.0:
            low += missing / (1.0 + (pace - 1.0) * decay)
            continue
        decay = math.exp(-high / memory)
        beyond = high + lead * (1.0 - decay) - amount
        if beyond <= 0.0:
            break
        low += missing / (missing + beyond) * (high - low)
        high -= beyond / (1.0 + (pace - 1.0) * decay)
    return float(low)


# --- one page --------------------------------------------------------------------------------------------------------


@inline
def has_clock(s: State, i: int) -> bool:
    """Whether a page follows the clock of a group."""
    return bool(s.member.size > 0 and s.member[i].group >= 0)


@inline
def page_clock(s: State, i: int, begin: float, end: float) -> float:
    """The time of an interval by a page's clock; real time where it follows none."""
    if has_clock(s, i):
        return float(clock_between(s, s.member[i].group, begin, end))
    return max(end - begin, 0.0)


@inline
def page_reading(s: State, i: int, begin: float) -> float:
    """Clock time from a time to the last publication of a page's clock; −1: it follows none, or that is not later."""
    if not has_clock(s, i):
        return -1.0
    g = s.member[i].group
    return until_update(s, g, begin) if not math.isinf(s.groups[g].newest) and begin < s.groups[g].updated_at else -1.0


@inline
def page_clock_from(s: State, i: int, begin: float, reading: float, end: float) -> float:
    """The same as `page_clock`, where `page_reading` is known."""
    if reading < 0.0:
        return page_clock(s, i, begin, end)
    return clock_from(s, s.member[i].group, reading, end)


# --- publication -----------------------------------------------------------------------------------------------------


@jit_lean
def _start(s: State, g: int, now: float) -> None:
    """A clock that has shown real time so far."""
    span = s.head[0].span
    s.groups[g].newest, s.groups[g].updated_at = np.floor(now / span), now
    s.groups[g].ahead = 1.0
    newest = int(s.groups[g].newest)
    for b in range(newest, newest - BINS, -1):
        s.bins[g, b % BINS].pace = 1.0
        s.bins[g, b % BINS].after = max(now - (b + 1) * span, 0.0)


@inline
def _slowest_ahead(s: State, g: int) -> float:
    return float(min(s.groups[g].ahead, 1.0))


@inline
def _as_it_was(s: State, g: int, b: int, now: float) -> tuple[float, float, float]:
    """(clock time of a bin up to now, its slowest pace, its length up to now) before a publication."""
    span, updated = s.head[0].span, s.groups[g].updated_at
    begin, end = b * span, min((b + 1) * span, now)
    pace, slowest = float(s.bins[g, b % BINS].pace), _slowest_ahead(s, g)
    if end <= updated and begin < updated:
        return pace * (end - begin), pace, end - begin
    since = max(begin, updated)
    time = _path(s, g, since - updated, end - since)
    if begin < updated:
        time += pace * (updated - begin)
        slowest = min(slowest, pace)
    return time, slowest, end - begin


@inline
def _rise_of_tail(s: State, g: int, newest: int) -> float:
    """By how much clock times of old copies rise at most where bins leave the ring up to a newest one."""
    span, tail, before = s.head[0].span, s.groups[g].tail, int(s.groups[g].newest)
    rise = max(newest - BINS - before, 0) * max(tail - _slowest_ahead(s, g), 0.0) * span
    for b in range(before - BINS + 1, min(newest - BINS, before) + 1):
        pace = s.bins[g, b % BINS].pace
        rise += max(tail - (min(pace, _slowest_ahead(s, g)) if b == before else pace), 0.0) * span
    return float(rise)


@jit_lean
def write_clock(s: State, g: int, first: int, paces: NDArray[np.float64], ahead: float, now: float) -> float:
    """Write the paces of bins from the first given one on, and the pace ahead of now.

    Later and earlier bins keep their clock time. By how much the clock time of a copy up to now has risen at most.
    """
    if math.isinf(s.groups[g].newest):
        _start(s, g, now)
    span = s.head[0].span
    newest = max(int(np.floor(now / span)), int(s.groups[g].newest))
    rise, moved, after = 0.0, 0.0, 0.0
    left = _rise_of_tail(s, g, newest)
    since = min(first, int(np.floor(s.groups[g].updated_at / span)))  # earlier bins keep their paces
    for b in range(newest, max(since, newest - BINS + 1) - 1, -1):
        here = s.bins[g, b % BINS]
        before, slowest, length = _as_it_was(s, g, b, now)
        if first <= b < first + paces.size:
            here.pace = paces[b - first]
        else:
            here.pace = before / length if length > 0.0 else 1.0
        rise = max(rise, moved + (here.pace - slowest) * length)
        moved += here.pace * length - before
        rise = max(rise, moved)
        here.after = after
        after += here.pace * length
    for b in range(since - 1, newest - BINS, -1):
        here = s.bins[g, b % BINS]
        here.after = after
        after += here.pace * span
    s.groups[g].newest, s.groups[g].updated_at, s.groups[g].ahead = newest, now, ahead
    return float(rise + left)
