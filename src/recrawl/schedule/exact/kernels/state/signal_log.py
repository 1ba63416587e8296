"""Recent signals, one by one, so that a record can tell which of them its copy has seen.

The log is a ring in the order of arrival; entries older than a lease leave it at its end, without access to their
pages. Entries of pages that share a bucket are chained from the newest on. A link to an entry that has left is
recognised by its place in the ring, which then holds something newer or nothing.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit_lean
from recrawl.schedule.exact.kernels.state.view import Header, opened
from recrawl.schedule.exact.layout import State

_LEAST_LOG = 1024  # a log of this size is not made smaller


@inline
def _weighed(s: State) -> bool:
    """Whether the weights of signals are logged; of pages with mixtures, a weight is the number of the source."""
    return bool(s.head[0].exponent_row >= 0 or s.head[0].mixture_row >= 0)


@inline
def _rank(s: State, entry: int) -> int:
    """How many entries are older."""
    rank = entry - s.head[0].log_first
    return int(rank if rank >= 0 else rank + s.log.size)


@inline
def _newest(s: State, bucket: int) -> int:
    """The newest entry in a bucket, −1 for none. Entries that a copy has seen stay, with the complement of their id."""
    entry = s.log_heads[bucket]
    if entry < 0 or _rank(s, entry) >= s.head[0].n_log:
        return -1
    i = s.log[entry].id
    return int(entry) if (i if i >= 0 else ~i) % s.log_heads.size == bucket else -1


@inline
def _before(s: State, entry: int) -> int:
    """The entry before in the same bucket, −1 for none."""
    before = s.log[entry].next
    return int(before) if before >= 0 and _rank(s, before) < _rank(s, entry) else -1


@jit_lean
def keep_signals_after(s: State, i: int, when: float) -> None:
    """Forget the signals that the new copy has seen."""
    if s.rec[i].signals == 0:
        return
    kept, weight = 0, 0.0
    entry = _newest(s, i % s.log_heads.size)
    while entry >= 0:
        if s.log[entry].id == i:
            if s.log[entry].time > when:
                kept += 1
                weight += s.log_weight[entry] if s.head[0].exponent_row >= 0 else 0.0
            else:
                s.log[entry].id = ~i
        entry = _before(s, entry)
    s.rec[i].signals = kept
    if s.head[0].exponent_row >= 0:
        s.extra[s.head[0].exponent_row, i] = weight


@jit_lean
def signals_after(s: State, i: int, weight: float) -> int:
    """How many signals of a weight are logged that the copy of a page has not seen."""
    if s.rec[i].signals == 0 or s.log_weight.size < s.log.size:
        return 0
    n, entry = 0, _newest(s, i % s.log_heads.size)
    while entry >= 0:
        n += s.log[entry].id == i and s.log_weight[entry] == weight
        entry = _before(s, entry)
    return n


@inline
def remember(s: State, i: int, now: float, weight: float) -> None:
    """Log a signal; there must be room."""
    entry = s.head[0].log_first + s.head[0].n_log
    if entry >= s.log.size:
        entry -= s.log.size
    bucket = i % s.log_heads.size
    s.log[entry].next = _newest(s, bucket)
    s.log[entry].time = now
    s.log[entry].id = i
    s.log_heads[bucket] = entry
    s.head[0].n_log += 1
    if s.log_weight.size == s.log.size:
        s.log_weight[entry] = weight


@jit_lean
def log_fits(s: State, now: float, more: int) -> bool:
    """Drop what no record can ask about any more; whether the log then has room for more, and not far too much."""
    first, n = s.head[0].log_first, s.head[0].n_log
    while n > 0 and (s.log[first].id < 0 or s.log[first].time < now - s.head[0].lease_time):
        first = first + 1 if first + 1 < s.log.size else 0
        n -= 1
    s.head[0].log_first, s.head[0].n_log = first, n
    s.head[0].log_room = room = n + more
    fits = not _weighed(s) or s.log_weight.size == s.log.size
    return bool(fits and room <= s.log.size and (s.log.size <= _LEAST_LOG or 2 * room >= s.log.size))


@jit_lean
def refill_log(header: Header, log: NDArray[np.void], weight: NDArray[np.float64]) -> None:
    """Fill a new log from the old one, without what copies have seen."""
    s = opened(header)
    first, n = s.head[0].log_first, s.head[0].n_log
    s.head[0].log_first, s.head[0].n_log = 0, 0
    for k in range(first, first + n):
        entry = k if k < log.size else k - log.size
        if log[entry].id >= 0:
            remember(s, log[entry].id, log[entry].time, weight[entry] if weight.size > 0 else 0.0)


@inline
def seen_weight(s: State, weight: float, elapsed: float) -> float:
    """What a signal weighs that comes some time after the fetch: its change may lie before, by as much as its delay.

    −log(1 − precision·P(delay ≤ elapsed)), precision = 1 − e^{−weight}.
    """
    k = s.head[0].n_delays
    if k == 0:
        return weight
    within = 0.0
    for j in range(k):
        if s.delays[j].at <= elapsed:
            within += s.delays[j].share
    if within >= 1.0 - 1e-12:
        return weight
    return -math.log1p(within * math.expm1(-weight))
