"""What a crawl's outcome says beyond a page's own rate: how much siblings count, and how well chances are calibrated.

Groups of every level get every outcome; the level whose groups predicted the outcomes best is used.
The first pages are followed with siblings and without, each with a belief of its own; the better one is used.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import inline, jit_lean
from recrawl.estimate.streams.kernels import take_in
from recrawl.schedule.exact.access_kernels import State, add_outcome, excess_since, group_of

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

WEIGHT_SHAPE, WEIGHT_RATE, SCORE = 0, 1, 2  # columns of `level`
ALONE, TOGETHER = 0, 1  # places in `score` and `trial`: without siblings, with them
_RECALL = 0.9998  # what is learned of a level counts this much after the next outcome
_RECENT = 0.9995  # how often changes were found counts this much after the next outcome
_HELD_BY_CRAWLS = 10.0  # prior of the calibration: as so many crawls that agree with the computed probability
FIRST_WEIGHT = (1.0, 2.0)  # belief about the weight of siblings before anything is known


class EffectArrays(NamedTuple):
    """State of siblings and calibration."""

    weight: Array  # (pages, 2): gamma of the weight of each page's siblings
    alternative: Array  # (pages, 3): missed rate's gamma beyond its prior, and `own`, if `used` were the opposite
    group: NDArray[np.int32]  # (pages, levels)
    members: Ids  # of each group, ever
    level: Array  # (levels, 3): gamma of the weight of siblings, score
    active: Ids  # (1,): the level that counts; −1: none
    used: NDArray[np.bool_]  # (1,): whether siblings are used: they predicted better than pages alone
    alternative_mean: Array  # (1,): mean of the alternative prior over that of the prior
    prior: Array  # (2,): gamma of the weight of a page's siblings
    trial: Array  # (first pages, 2, 2): gamma of the missed rate without siblings and with them
    score: Array  # (2,): Σ ln P without siblings and with them
    reliability: Array  # (10, 3): by reported probability of a change: its sum, crawls, changes
    recent: Array  # (10, 3): the same by computed probability, with forgetting
    knots: Array  # (12, 2): computed probabilities and the calibrated ones, from 0 to 1
    rows: Array  # room to work in: gammas
    heard: Array  # and signals


@inline
def log_chance(exponent: float, changed: bool) -> float:
    """Logarithm of the probability of an outcome."""
    return math.log(max(-math.expm1(-exponent), 1e-300)) if changed else -exponent


@inline
def sibling_excess(s: State, i: int, begin: float, end: float) -> float:
    """Excess changes of a typical sibling over an interval; a page alone in its group has none."""
    group = group_of(s, i)
    return excess_since(s, group, begin, end) if group >= 0 else 0.0


@inline
def sibling_weight(effects: EffectArrays, i: int) -> float:
    """How many changes of a page one excess change of a sibling stands for; 0 where siblings are not used."""
    return float(effects.weight[i, 0] / effects.weight[i, 1]) if effects.used[0] else 0.0


@inline
def calibrated_chance(effects: EffectArrays, p: float) -> float:
    """The calibrated probability of a change for a computed one: how often changes were found then, recently."""
    knots = effects.knots
    k = 1
    while p > knots[k, 0] and k + 1 < knots.shape[0]:
        k += 1
    width = knots[k, 0] - knots[k - 1, 0]
    share = (p - knots[k - 1, 0]) / width if width > 0.0 else 1.0
    return float(knots[k - 1, 1] + share * (knots[k, 1] - knots[k - 1, 1]))


@jit_lean
def update_calibration(effects: EffectArrays, exponent: float, changed: bool) -> None:
    """Compare reported and computed probabilities with an outcome, and update the calibration."""
    p = -math.expm1(-exponent)
    calibrated = calibrated_chance(effects, p)
    _count(effects.reliability, calibrated, changed)
    for b in range(10):
        for c in range(3):
            effects.recent[b, c] *= _RECENT
    _count(effects.recent, p, changed)
    for b in range(10):
        computed, crawls, found = effects.recent[b, 0], effects.recent[b, 1], effects.recent[b, 2]
        x = (computed + _HELD_BY_CRAWLS * (b + 0.5) / 10.0) / (crawls + _HELD_BY_CRAWLS)
        y = (found + _HELD_BY_CRAWLS * (b + 0.5) / 10.0) / (crawls + _HELD_BY_CRAWLS)
        effects.knots[b + 1, 0] = x
        effects.knots[b + 1, 1] = max(y, effects.knots[b, 1])


@inline
def _count(bins: Array, p: float, changed: bool) -> None:
    k = min(int(10.0 * p), 9)
    bins[k, 0] += p
    bins[k, 1] += 1.0
    bins[k, 2] += changed


@inline
def _two_rows(effects: EffectArrays, own: Array, other: Array, time: float, excess: float, changed: bool) -> None:
    """Update a rate and a weight by an outcome; the results are in `rows`."""
    for c in range(2):
        effects.rows[0, c] = own[c]
        effects.rows[1, c] = other[c]
    effects.heard[0] = excess
    take_in(effects.rows[:2], time, effects.heard[:1], changed)


@jit_lean
def update_groups(
    s: State,
    effects: EffectArrays,
    i: int,
    begin: float,
    end: float,
    own: Array,
    exponent: float,
    changed: bool,
) -> None:
    """Add one crawl outcome to the page's group at every level.

    `exponent` is rate × interval: the page's own expected number of changes.
    """
    interval = end - begin
    for k in range(effects.level.shape[0]):
        g, level = effects.group[i, k], effects.level[k]
        excess = excess_since(s, g, begin, end) if effects.members[g] > 1 else 0.0
        typical = level[WEIGHT_SHAPE] / level[WEIGHT_RATE]
        total = exponent + typical * excess
        level[SCORE] = _RECALL * level[SCORE] + log_chance(total, changed)
        _two_rows(effects, own, level, interval, excess, changed)
        for c in range(2):
            level[c] = FIRST_WEIGHT[c] + (effects.rows[1, c] - FIRST_WEIGHT[c]) * _RECALL
        if effects.members[g] < 2:
            continue
        weight = sibling_weight(effects, i) if k == effects.active[0] else typical
        add_outcome(s, g, begin, end, exponent / interval, weight, changed)


@inline
def level_excess(s: State, effects: EffectArrays, i: int, begin: float, end: float) -> float:
    """Excess changes of a typical sibling over an interval, whether they are used or not."""
    k = effects.active[0]
    if k < 0 or effects.members[effects.group[i, k]] < 2:
        return 0.0
    return excess_since(s, effects.group[i, k], begin, end)


@jit_lean
def score_siblings(
    effects: EffectArrays, i: int, prior: Array, half_life: float, interval: float, excess: float, changed: bool
) -> None:
    """Score pages alone and pages with siblings by this outcome; then update the belief under each."""
    if i >= effects.trial.shape[0]:
        return
    weight = effects.weight[i]
    other = ALONE if effects.used[0] else TOGETHER
    for w in range(effects.score.size):
        own, shape = effects.trial[i, w], prior[0]
        rate = prior[1] / effects.alternative_mean[0] if w == other else prior[1]
        if own[1] == 0.0:
            own[0], own[1] = shape, rate
        counted = w * excess
        expected = weight[0] / weight[1] * counted
        if half_life < math.inf:
            share = math.exp2(-interval / half_life)
            own[0] = shape + (own[0] - shape) * share
            own[1] = rate + (own[1] - rate) * share
        effects.score[w] += log_chance(own[0] * math.log1p(interval / own[1]) + expected, changed)
        _two_rows(effects, own, weight, interval, counted, changed)
        own[0], own[1] = effects.rows[0, 0], effects.rows[0, 1]
