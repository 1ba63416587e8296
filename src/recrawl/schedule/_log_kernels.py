"""Recent signals, one by one, so that a record can say which of them its copy has seen.

The log is a ring in the order of arrival, so that signals too old to be asked about leave it from its end without a
look at their pages. Each entry names its page and the entry before; whether that is still there, its place tells.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import inline, jit_lean
from recrawl.schedule._view_kernels import Header, opened
from recrawl.schedule.layout import (
    DELAY_AT,
    DELAY_SHARE,
    EXPONENT,
    LEASE_TIME,
    LOG_FIRST,
    LOG_ROOM,
    N_DELAYS,
    N_LOG,
    State,
)

_LEAST_LOG = 1024  # a log of this size is not made smaller


@inline
def _rank(s: State, entry: int) -> int:
    """How many entries are older."""
    rank = entry - s.ints[LOG_FIRST]
    return int(rank if rank >= 0 else rank + s.log.size)


@inline
def newest_signal(s: State, i: int) -> int:
    """The newest entry of a page, −1 for none."""
    entry = s.rec[i].log
    found = entry >= 0 and entry < s.log.size and _rank(s, entry) < s.ints[N_LOG] and s.log[entry].id == i
    return int(entry) if found else -1


@inline
def signal_before(s: State, i: int, entry: int) -> int:
    """The entry of the same page before this one, −1 for none."""
    before = s.log[entry].next
    found = before >= 0 and _rank(s, before) < _rank(s, entry) and s.log[before].id == i
    return int(before) if found else -1


@jit_lean
def keep_signals_after(s: State, i: int, when: float) -> None:
    """Forget the signals that the new copy has seen."""
    p = s.rec[i]
    kept, weight = 0, 0.0
    entry = newest_signal(s, i)
    p.log = -1
    previous = -1
    while entry >= 0:
        before = signal_before(s, i, entry)
        if s.log[entry].time > when:
            kept += 1
            if s.ints[EXPONENT] >= 0:
                weight += s.log_weight[entry]
            if previous >= 0:
                s.log[previous].next = entry
            else:
                p.log = entry
            previous = entry
            s.log[entry].next = -1
        else:
            s.log[entry].id = -1
        entry = before
    p.signals = kept
    if s.ints[EXPONENT] >= 0:
        s.extra[s.ints[EXPONENT], i] = weight


@inline
def remember(s: State, i: int, now: float, weight: float) -> None:
    """Log a signal; there must be room."""
    entry = s.ints[LOG_FIRST] + s.ints[N_LOG]
    if entry >= s.log.size:
        entry -= s.log.size
    s.ints[N_LOG] += 1
    s.log[entry].time = now
    s.log[entry].id = i
    s.log[entry].next = newest_signal(s, i)
    s.rec[i].log = entry
    if s.ints[EXPONENT] >= 0:
        s.log_weight[entry] = weight


@jit_lean
def log_fits(s: State, now: float, more: int) -> bool:
    """Drop what no record can ask about any more; whether the log then has room for more, and not far too much."""
    first, n = s.ints[LOG_FIRST], s.ints[N_LOG]
    while n > 0 and (s.log[first].id < 0 or s.log[first].time < now - s.flts[LEASE_TIME]):
        first = first + 1 if first + 1 < s.log.size else 0
        n -= 1
    s.ints[LOG_FIRST], s.ints[N_LOG] = first, n
    s.ints[LOG_ROOM] = room = n + more
    fits = s.ints[EXPONENT] < 0 or s.log_weight.size == s.log.size
    return bool(fits and room <= s.log.size and (s.log.size <= _LEAST_LOG or 8 * room >= s.log.size))


@jit_lean
def move_log(header: Header, log: NDArray[np.void], weight: NDArray[np.float64]) -> None:
    """Copy the log to another, from its beginning on."""
    s = opened(header)
    first, n = s.ints[LOG_FIRST], s.ints[N_LOG]
    moved = 0
    for k in range(2 * n):  # first the pages forget where their signals were, then they are told
        entry = (first + (k if k < n else k - n)) % s.log.size
        i = s.log[entry].id
        if i >= 0 and k < n:
            s.rec[i].log = -1
        elif i >= 0:
            log[moved].time = s.log[entry].time
            log[moved].id = i
            log[moved].next = s.rec[i].log
            if weight.size > 0:
                weight[moved] = s.log_weight[entry]
            s.rec[i].log = moved
            moved += 1
    s.ints[LOG_FIRST], s.ints[N_LOG] = 0, moved


@jit_lean
def forget_signals(s: State, i: int) -> None:
    """Drop the logged signals of a page."""
    entry = newest_signal(s, i)
    while entry >= 0:
        before = signal_before(s, i, entry)
        s.log[entry].id = -1
        entry = before
    s.rec[i].log = -1


@inline
def seen_weight(s: State, weight: float, elapsed: float) -> float:
    """What a signal weighs that comes some time after the fetch: its change may lie before, by as much as its delay.

    −log(1 − precision·P(delay ≤ elapsed)), precision = 1 − e^{−weight}.
    """
    k = s.ints[N_DELAYS]
    if k == 0:
        return weight
    within = 0.0
    for j in range(k):
        if s.flts[DELAY_AT + j] <= elapsed:
            within += s.flts[DELAY_SHARE + j]
    if within >= 1.0 - 1e-12:
        return weight
    return -math.log1p(within * math.expm1(-weight))
