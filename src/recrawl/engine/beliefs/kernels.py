"""What a crawl's outcome says about a page, and how that belief becomes the scheduler's parameters.

The live engine and the simulator's compiled loop call the same kernels: `learn_outcome` (by `learn_crawls`) after a
crawl, `count_signal` and `apply_belief` after a signal.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import inline, jit, jit_lean
from recrawl.engine.beliefs.arrays import (
    CHANGES,
    LOG_INTERVALS,
    UNCHANGED,
    Belief,
    precision,
    signal_rate,
)
from recrawl.engine.beliefs.posterior_kernels import believe
from recrawl.engine.beliefs.staleness_kernels import stale_when_found
from recrawl.engine.calibration import Calibration, update_calibration
from recrawl.estimate.streams.kernels import take_in
from recrawl.schedule.exact.access_kernels import (
    Header,
    State,
    clock_between,
    fetched_at,
    importance_of,
    opened,
    write_belief,
)

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_FEW = 4.0  # with so few signals of a source so far, each one changes what is believed of its rate at once


@jit
def qualities(b: Belief, ids: Ids, elapsed: Array, recall: Array, false_rate: Array, change_rate: Array) -> None:
    """The columns of `Pages` that follow from what is believed."""
    for j in range(ids.size):
        i = ids[j]
        change_rate[j] = b.gamma[i, 0, 0] / b.gamma[i, 0, 1]
        for k in range(b.heard.shape[1]):
            rate, share = signal_rate(b, i, k, elapsed[j]), precision(b, i, k)
            recall[j, k] = share * rate
            false_rate[j, k] = (1.0 - share) * rate
            change_rate[j] += recall[j, k]
        for k in range(b.heard.shape[1]):
            recall[j, k] /= change_rate[j]


@jit_lean
def apply_belief(s: State, b: Belief, i: int, elapsed: float) -> None:
    """Write the belief about a page into the scheduler's record, for at most one signal source.

    The caller places the page again.
    """
    missed = b.gamma[i, 0, 0] / b.gamma[i, 0, 1]
    true = false = 0.0
    if b.heard.shape[1] > 0:
        rate, share = signal_rate(b, i, 0, elapsed), precision(b, i, 0)
        true, false = share * rate, (1.0 - share) * rate
    evidence = b.gamma[i, 0, 0] if true == 0.0 else math.inf
    write_belief(s, i, missed + true, true / (missed + true), false, evidence)


@inline
def _observe(b: Belief, i: int, time: float, changed: float, fade: float) -> None:
    """Add an interval to the observations of a page: `changed` is how much of a change is its own."""
    for k in range(3):
        b.seen[i, k] *= fade
    for k in range(2):
        b.evidence[i, k] *= fade
    if changed > 0.0:
        b.seen[i, CHANGES] += changed
        b.seen[i, LOG_INTERVALS] += changed * math.log(max(time, 1e-300))
    else:
        b.seen[i, UNCHANGED] += time


@inline
def _weigh_signals(b: Belief, i: int, time: float, changed: bool, fade: float) -> None:
    """Update the weights of signal sources by an outcome; the gamma of the missed rate is replaced afterwards."""
    for j in range(1, b.gamma.shape[1]):
        for c in range(2):
            b.gamma[i, j, c] = b.prior[j, c] + (b.gamma[i, j, c] - b.prior[j, c]) * fade
    take_in(b.gamma[i], time, b.heard[i], changed)


@jit_lean
def learn(
    s: State, b: Belief, c: Calibration, i: int, copies: tuple[float, float], changed: bool, room: Array
) -> tuple[float, float, float]:
    """Update all beliefs by a crawl's outcome: whether the page changed between two copies, given the signals since.

    (clock time of the interval, changes that the page's own rate explains in it, those that signals explain).
    """
    begin, end = copies
    interval = end - begin
    if interval <= 0.0:
        return 0.0, 0.0, 0.0
    time, heard = clock_between(s, i, begin, end), 0.0
    for k in range(b.heard.shape[1]):
        heard += b.heard[i, k] * b.gamma[i, 1 + k, 0] / b.gamma[i, 1 + k, 1]
    own = b.gamma[i, 0, 0] * math.log1p(time / b.gamma[i, 0, 1])
    update_calibration(c, own + heard, changed)
    if b.counted[i]:
        b.ledger[0] += importance_of(s, i) * interval
        if changed:
            b.ledger[1] += importance_of(s, i) * stale_when_found(s, b, c, i, begin, end)
    share = 1.0 if heard == 0.0 else own / (own + heard)
    fade = math.exp2(-interval / b.half_life[0])
    if b.heard.shape[1] > 0:
        _weigh_signals(b, i, time, changed, fade)
    _observe(b, i, time, share if changed else 0.0, fade)
    b.own[i] += share if changed else 0.0
    for k in range(b.heard.shape[1]):
        b.signals[i, k] += b.heard[i, k]
        b.heard[i, k] = 0.0
        b.heard_at[i, 0] = math.inf
    b.watched[i] += interval
    b.n_crawls[i] += 1
    b.counted[i] = True
    b.n_changes[i] += changed
    believe(b, i, room[0], room[1], True)
    return time, own, heard


@jit_lean
def learn_outcome(
    s: State,
    b: Belief,
    c: Calibration,
    i: int,
    copies: tuple[float, float],
    now: float,
    changed: bool,
    room: Array,
) -> tuple[float, float, float]:
    """One crawl has ended: learn from it and write the belief for the scheduler; the caller places the page again.

    `copies` are the times of the copy before and of the new one. `room` has three rows: for a prior, a posterior, and
    the signals per source that came after the new copy. What `learn` returns.
    """
    later = room[2]
    for k in range(b.heard.shape[1]):
        b.heard[i, k] -= later[k]
    crawl = learn(s, b, c, i, copies, changed, room)
    for k in range(b.heard.shape[1]):
        b.heard[i, k] = later[k]
        if later[k] > 0.0:
            b.heard_at[i, 0] = copies[1]
    if b.heard.shape[1] < 2:
        apply_belief(s, b, i, max(now - copies[1], 0.0))
    return crawl


@jit
def apply_beliefs(header: Header, b: Belief, ids: Ids, now: float) -> None:
    """Write the beliefs about pages into the scheduler's records; the caller places them again."""
    s = opened(header)
    for i in ids:
        apply_belief(s, b, i, max(now - fetched_at(s, i), 0.0))


@inline
def count_signal(b: Belief, i: int, k: int, now: float) -> bool:
    """Count a signal; whether the belief about the page changes at once."""
    b.heard[i, k] += 1.0
    b.heard_at[i, 0] = min(b.heard_at[i, 0], now)
    return bool(b.signals[i, k] + b.heard[i, k] <= _FEW)


@jit
def count_signals(b: Belief, ids: Ids, k: int, now: float) -> NDArray[np.bool_]:
    """Count signals of a source; after which of them the belief changes at once."""
    at_once = np.zeros(ids.size, np.bool_)
    for j in range(ids.size):
        at_once[j] = count_signal(b, ids[j], k, now)
    return at_once
