"""What a crawl's outcome says about a page, and how that belief becomes the scheduler's parameters.

The live engine and the simulator's compiled loop call the same kernels, by `learn_crawl`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit, jit_lean
from recrawl.engine.beliefs.arrays import CHANGES, LOG_INTERVALS, UNCHANGED, Belief
from recrawl.engine.beliefs.posterior_kernels import believe, by_signals
from recrawl.engine.beliefs.staleness_kernels import doubts, stale_when_found
from recrawl.engine.outcomes.calibration import Calibration, update_calibration
from recrawl.schedule.exact.access_kernels import (
    Header,
    State,
    has_components,
    importance_of,
    opened,
    write_belief,
)

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)  # its multiples, without their whole parts, are spread evenly over 0 to 1


@jit_lean
def apply_belief(s: State, b: Belief, i: int) -> None:
    """Write the belief about a page without signals into the scheduler's record; the caller places the page again."""
    write_belief(s, i, b.gamma[i, 0] / b.gamma[i, 1], b.gamma[i, 0])


@inline
def _observe(b: Belief, i: int, time: float, changed: bool, fade: float) -> None:
    """Add an interval to the observations of a page."""
    for k in range(3):
        b.seen[i, k] *= fade
    for k in range(2):
        if b.evidence[i, k] != 0.0:  # zeros that are never written take no memory
            b.evidence[i, k] *= fade
    if changed:
        b.seen[i, CHANGES] += 1.0
        b.seen[i, LOG_INTERVALS] += math.log(max(time, 1e-300))
    else:
        b.seen[i, UNCHANGED] += time


@jit_lean
def learn_outcome(
    s: State, b: Belief, c: Calibration, i: int, copies: tuple[float, float], changed: bool, room: Array
) -> tuple[float, float, float, float]:
    """Update all beliefs but those about signals by a crawl's outcome, and write them for the scheduler.

    `copies` are the times of the copy before and of the new one. `room` has two rows: for a prior and a posterior. The
    caller places the page again. (clock time of the interval, −ln P(unchanged) as it was predicted, the same without
    signals, and by the belief that knows no signals.)
    """
    begin, end = copies
    interval = end - begin
    if interval <= 0.0:
        return 0.0, 0.0, 0.0, 0.0
    time, doubt, missed = doubts(s, b, i, begin, end)
    own = missed if not has_components(s, i) else b.gamma[i, 0] * math.log1p(time / b.gamma[i, 1])
    chance, moment = -math.expm1(-doubt), begin + interval * (_GOLDEN * (b.n_crawls[i] + 1) % 1.0)
    before = -math.expm1(-doubts(s, b, i, begin, moment)[1])
    update_calibration(c, chance, changed, before)
    if b.counted[i]:
        b.ledger[0] += importance_of(s, i) * interval
        if changed:
            b.ledger[1] += importance_of(s, i) * stale_when_found(s, b, c, i, copies, doubt)
    _observe(b, i, time, changed, fade_of(b, interval))
    b.watched[i] += interval
    b.n_crawls[i] += 1
    b.counted[i] = True
    b.n_changes[i] += changed
    believe(b, i, room[0], room[1], not by_signals(b, i))
    apply_belief(s, b, i)
    return time, doubt, missed, own


@inline
def fade_of(b: Belief, interval: float) -> float:
    """What older observations count after an interval."""
    return math.exp2(-interval / b.half_life[0])


@jit
def apply_beliefs(header: Header, b: Belief, ids: Ids) -> None:
    """Write the beliefs about pages into the scheduler's records; the caller places them again."""
    s = opened(header)
    for i in ids:
        apply_belief(s, b, i)
