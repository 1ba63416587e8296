"""Recent signals, one by one, so that a record can say which of them its copy has seen."""

import math

from recrawl._jit import inline, jit_lean
from recrawl.schedule.layout import (
    DELAY_AT,
    DELAY_SHARE,
    EXPONENT,
    FREE_LOG,
    LEASE_TIME,
    N_DELAYS,
    N_LOG,
    N_PAGES,
    NOW,
    State,
)


@jit_lean
def keep_signals_after(s: State, i: int, when: float) -> None:
    """Forget the signals that the new copy has seen."""
    p = s.rec[i]
    kept, weight = 0, 0.0
    entry = p.log
    previous = -1
    while entry >= 0:
        following = s.log[entry].next
        if s.log[entry].time > when:
            kept += 1
            weight += s.log[entry].weight
            previous = entry
        else:
            if previous >= 0:
                s.log[previous].next = following
            else:
                p.log = following
            s.log[entry].next = s.ints[FREE_LOG]
            s.ints[FREE_LOG] = entry
        entry = following
    p.signals = kept
    if s.ints[EXPONENT] >= 0:
        s.extra[s.ints[EXPONENT], i] = weight


@jit_lean
def remember(s: State, i: int, now: float, weight: float) -> None:
    """Log a signal, and drop logged ones that no record can ask about any more."""
    p = s.rec[i]
    entry = s.ints[FREE_LOG]
    if entry >= 0:
        s.ints[FREE_LOG] = s.log[entry].next
    else:
        entry = s.ints[N_LOG]
        s.ints[N_LOG] += 1
    s.log[entry].time = now
    s.log[entry].weight = weight
    s.log[entry].next = p.log
    p.log = entry
    forget_before(s, i, now - s.flts[LEASE_TIME])


@jit_lean
def forget_before(s: State, i: int, when: float) -> None:
    """Free the logged signals of a page that are older; they stay counted."""
    entry = s.rec[i].log
    previous = -1
    while entry >= 0:
        following = s.log[entry].next
        if s.log[entry].time < when:
            if previous >= 0:
                s.log[previous].next = following
            else:
                s.rec[i].log = following
            s.log[entry].next = s.ints[FREE_LOG]
            s.ints[FREE_LOG] = entry
        else:
            previous = entry
        entry = following


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


@jit_lean
def sweep_log(s: State) -> None:
    """Free every logged signal that no record can ask about any more."""
    for i in range(s.ints[N_PAGES]):
        if s.rec[i].log >= 0:
            forget_before(s, i, s.flts[NOW] - s.flts[LEASE_TIME])


@jit_lean
def log_free(s: State) -> int:
    """How many freed log entries there are."""
    n, entry = 0, s.ints[FREE_LOG]
    while entry >= 0:
        n += 1
        entry = s.log[entry].next
    return n
