"""What a crawl's outcome says about a page, and how that belief becomes the scheduler's parameters.

The live engine and the simulator's compiled loop call the same kernels: `learn_outcome` (by `end_crawls`) after a
crawl, `count_signal` and `apply_belief` after a signal.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import inline, jit, jit_lean
from recrawl.engine.beliefs.arrays import Belief, precision, signal_rate
from recrawl.engine.beliefs.staleness_kernels import stale_when_found
from recrawl.engine.effects.kernels import (
    EffectArrays,
    level_excess,
    log_chance,
    score_siblings,
    sibling_excess,
    sibling_weight,
    update_calibration,
    update_groups,
)
from recrawl.estimate.streams.kernels import take_in
from recrawl.schedule.exact.access_kernels import (
    Header,
    State,
    fetched_at,
    importance_of,
    opened,
    set_changed_at,
    set_group_weight,
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
def apply_belief(s: State, b: Belief, effects: EffectArrays, i: int, elapsed: float) -> None:
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
    set_group_weight(s, i, sibling_weight(effects, i))


@inline
def _score(b: Belief, i: int, interval: float, expected: float, changed: bool) -> None:
    """Score each shape of the prior, with its mean as it is, by the probability of this outcome given the page's past.

    A first crawl scores no shape.
    """
    if b.n_crawls[i] == 0:
        return
    first = b.prior[0, 1]
    changes, before = max(b.gamma[i, 0, 0] - b.prior[0, 0], 0.0), max(b.gamma[i, 0, 1] - first, 0.0)
    for g in range(b.shapes.size):
        shape = b.shapes[g] + changes
        rate = b.shapes[g] * first / b.prior[0, 0] + before
        b.scores[g] += log_chance(shape * math.log1p(interval / rate) + expected, changed)


@inline
def _forget(gamma: Array, shape: float, rate: float, share: float) -> None:
    gamma[0] = shape + (gamma[0] - shape) * share
    gamma[1] = rate + (gamma[1] - rate) * share


@jit_lean
def learn(s: State, b: Belief, effects: EffectArrays, i: int, begin: float, end: float, changed: bool) -> None:
    """Update all beliefs by a crawl's outcome: whether the page changed between two copies, given the signals since."""
    interval = end - begin
    if interval <= 0.0:
        return
    n_sources = b.heard.shape[1]
    used_excess, heard = sibling_excess(s, i, begin, end), 0.0
    for k in range(n_sources):
        heard += b.heard[i, k] * b.gamma[i, 1 + k, 0] / b.gamma[i, 1 + k, 1]
    own = b.gamma[i, 0, 0] * math.log1p(interval / b.gamma[i, 0, 1])
    expected = heard + sibling_weight(effects, i) * used_excess
    update_calibration(effects, own + expected, changed)
    if b.counted[i]:
        b.ledger[0] += importance_of(s, i) * interval
        if changed:
            b.ledger[1] += importance_of(s, i) * stale_when_found(s, b, effects, i, begin, end)
    excess = level_excess(s, effects, i, begin, end)
    if heard == 0.0:
        score_siblings(effects, i, b.prior[0], b.half_life[0], interval, excess, changed)
    if effects.active[0] >= 0:
        update_groups(s, effects, i, begin, end, b.gamma[i, 0], own + heard, changed)
    if b.half_life[0] < math.inf:
        share = math.exp2(-interval / b.half_life[0])
        for j in range(1 + n_sources):
            _forget(b.gamma[i, j], b.prior[j, 0], b.prior[j, 1], share)
        if effects.active[0] >= 0:
            _forget(effects.weight[i], effects.prior[0], effects.prior[1], share)
            _forget(effects.alternative[i], 0.0, 0.0, share)
    if not b.fixed_rate[i] and heard == 0.0:
        _score(b, i, interval, expected, changed)
    if changed:
        b.own[i] += own / (own + expected) if own > 0.0 else 1.0
    if effects.active[0] >= 0:
        _take_in_alternative(b, effects, i, interval, heard, excess, changed)
    _take_in(b, effects, i, interval, used_excess, changed)
    for k in range(n_sources):
        b.signals[i, k] += b.heard[i, k]
        b.heard[i, k] = 0.0
        b.heard_at[i, 0] = math.inf
    b.watched[i] += interval
    b.n_crawls[i] += 1
    b.counted[i] = True
    b.n_changes[i] += changed
    if changed:
        set_changed_at(s, i, end)


@inline
def _copy(row: Array, to: Array) -> None:
    for k in range(row.size):
        to[k] = row[k]


@inline
def _take_in(b: Belief, effects: EffectArrays, i: int, time: float, excess: float, changed: bool) -> None:
    """Update the gammas of a page by an outcome: missed rate, signal sources, siblings."""
    if not effects.used[0]:
        take_in(b.gamma[i], time, b.heard[i], changed)
        return
    n = b.gamma.shape[1]
    _copy(b.gamma[i, 0], effects.rows[0])
    _take_in_together(b, effects, i, time, excess, changed)
    for j in range(n):
        _copy(effects.rows[j], b.gamma[i, j])


@inline
def _take_in_together(b: Belief, effects: EffectArrays, i: int, time: float, excess: float, changed: bool) -> None:
    """Update the first of `rows`, signal sources and siblings by an outcome; the siblings' weight is kept."""
    n = b.gamma.shape[1]
    for j in range(1, n):
        _copy(b.gamma[i, j], effects.rows[j])
        effects.heard[j - 1] = b.heard[i, j - 1]
    _copy(effects.weight[i], effects.rows[n])
    effects.heard[n - 1] = excess
    take_in(effects.rows[: n + 1], time, effects.heard[:n], changed)
    _copy(effects.rows[n], effects.weight[i])


@inline
def _take_in_alternative(
    b: Belief, effects: EffectArrays, i: int, time: float, heard: float, excess: float, changed: bool
) -> None:
    """Update the alternative belief about the missed rate: with siblings where they are not used, else without."""
    n, alternative = b.gamma.shape[1], effects.alternative[i]
    shape, rate = b.prior[0, 0], b.prior[0, 1] / effects.alternative_mean[0]
    effects.rows[0, 0], effects.rows[0, 1] = (
        max(shape + alternative[0], 1e-3 * shape),
        max(rate + alternative[1], 1e-3 * rate),
    )
    own = effects.rows[0, 0] * math.log1p(time / effects.rows[0, 1])
    if not effects.used[0]:
        heard += excess * effects.weight[i, 0] / effects.weight[i, 1]
    if changed:
        alternative[2] += own / (own + heard) if own > 0.0 else 1.0
    if effects.used[0]:
        for j in range(1, n):
            _copy(b.gamma[i, j], effects.rows[j])
        take_in(effects.rows[:n], time, b.heard[i], changed)
    else:
        _take_in_together(b, effects, i, time, excess, changed)
    alternative[0], alternative[1] = effects.rows[0, 0] - shape, effects.rows[0, 1] - rate


@jit_lean
def learn_outcome(
    s: State,
    b: Belief,
    effects: EffectArrays,
    i: int,
    copies: tuple[float, float],
    now: float,
    changed: bool,
    later: Array,
) -> None:
    """One crawl has ended: learn from it and write the belief for the scheduler; the caller places the page again.

    `copies` are the times of the copy before and of the new one. `later` signals per source came after the new copy.
    """
    for k in range(b.heard.shape[1]):
        b.heard[i, k] -= later[k]
    learn(s, b, effects, i, copies[0], copies[1], changed)
    for k in range(b.heard.shape[1]):
        b.heard[i, k] = later[k]
        if later[k] > 0.0:
            b.heard_at[i, 0] = copies[1]
    if b.heard.shape[1] < 2:
        apply_belief(s, b, effects, i, max(now - copies[1], 0.0))


@jit
def apply_beliefs(header: Header, b: Belief, effects: EffectArrays, ids: Ids, now: float) -> None:
    """Write the beliefs about pages into the scheduler's records; the caller places them again."""
    s = opened(header)
    for i in ids:
        apply_belief(s, b, effects, i, max(now - fetched_at(s, i), 0.0))


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
