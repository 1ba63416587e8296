"""What a crawl's outcome teaches beyond a page's own rate: how far siblings, bursts and the distant past count.

Groups of every level hear of every outcome; the level whose groups foretold the outcomes best is the one that counts.
Ways of bursting and forgetting are tried out on the first pages, each with a belief of its own, and the best is taken.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import inline, jit_lean
from recrawl.estimate.streams.kernels import take_in
from recrawl.schedule.exact.access_kernels import (
    HOURS,
    State,
    add_outcome,
    burst_ahead,
    excess_since,
    group_of,
    season_between,
)

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

WEIGHT_SHAPE, WEIGHT_RATE, SCORE = 0, 1, 2  # columns of `level`
BOOSTS, FADES, HALF_LIVES, KIN = 0, 1, 2, 3  # columns of `way`
ALONE, TOGETHER, AS_HEEDED = 0.0, 1.0, 2.0  # whether siblings count in a way
_RECALL = 0.9998  # what is learned of a level counts this much after the next outcome
_LATELY = 0.9995  # how often changes were found counts this much after the next outcome
_AS_RECKONED = 10.0  # a chance is held to what was reckoned as by so many crawls
SEASON_DAYS = 7.0  # longer intervals do not tell at which hours a page changed
CREDIT, EXPECTED = 0, 1  # columns of `season`
FIRST_WEIGHT = (1.0, 2.0)  # belief about the weight of siblings before anything is known


class Parts(NamedTuple):
    """What siblings, bursts and drift rest on."""

    weight: Array  # (pages, 2): gamma of the weight of each page's siblings
    twin: Array  # (pages, 3): what the missed rate's gamma has over its prior, and `own`, if heeded were the other way
    group: NDArray[np.int32]  # (pages, levels)
    members: Ids  # of each group, ever
    level: Array  # (levels, 3): gamma of the weight of siblings, score
    active: Ids  # (1,): the level that counts; −1: none
    heeded: NDArray[np.bool_]  # (1,): whether siblings count: they foretell better than pages alone
    twin_mean: Array  # (1,): how much larger the mean of the twins' prior is
    prior: Array  # (2,): gamma of the weight of a page's siblings
    way: Array  # (ways, 4): boost, fade and half-life that are tried, and whether siblings count
    trial: Array  # (first pages, ways, 2): gamma of the missed rate in each way
    score: Array  # of each way
    likely: Array  # (pages,): rate of a page's folder and host against that of all pages
    lean: Array  # how far that might be heeded: as a power
    lean_score: Array  # how well each of them foretold the outcomes
    season: Array  # (hours of a week or 0, 2): changes credited to each, and expected if all were alike
    clock: Array  # (hours + 1): time by the season at each full hour of a week, as fitted
    hour: Array  # (1,): length of an hour
    season_score: Array  # (2,): of no season, and of the one fitted
    reliability: Array  # (10, 3): by stated chance of a change: sum of it, crawls, changes
    lately: Array  # (10, 3): the same by the chance that was reckoned, forgetting
    knots: Array  # (12, 2): chances reckoned and what is stated for them, from 0 to 1
    rows: Array  # room to work in: gammas
    heard: Array  # and signals


@inline
def log_chance(exponent: float, changed: bool) -> float:
    """Logarithm of the probability of an outcome."""
    return math.log(max(-math.expm1(-exponent), 1e-300)) if changed else -exponent


@inline
def sibling_mass(s: State, i: int, begin: float, end: float) -> float:
    """Excess changes of a typical sibling over an interval; a page alone in its group has none."""
    group = group_of(s, i)
    return excess_since(s, group, begin, end) if group >= 0 else 0.0


@inline
def sibling_weight(parts: Parts, i: int) -> float:
    """How many changes of a page an excess change of a sibling stands for."""
    return float(parts.weight[i, 0] / parts.weight[i, 1]) if parts.heeded[0] else 0.0


@inline
def said(parts: Parts, p: float) -> float:
    """The chance of a change that is stated where p was reckoned: as often as one was found then, lately."""
    knots = parts.knots
    k = 1
    while p > knots[k, 0] and k + 1 < knots.shape[0]:
        k += 1
    width = knots[k, 0] - knots[k - 1, 0]
    share = (p - knots[k - 1, 0]) / width if width > 0.0 else 1.0
    return float(knots[k - 1, 1] + share * (knots[k, 1] - knots[k - 1, 1]))


@jit_lean
def judge(parts: Parts, exponent: float, changed: bool) -> None:
    """Keep what was stated and reckoned beside what was found; chances are stated by it from then on."""
    p = -math.expm1(-exponent)
    stated = said(parts, p)
    _count(parts.reliability, stated, changed)
    for b in range(10):
        for c in range(3):
            parts.lately[b, c] *= _LATELY
    _count(parts.lately, p, changed)
    for b in range(10):
        reckoned, crawls, found = parts.lately[b, 0], parts.lately[b, 1], parts.lately[b, 2]
        x = (reckoned + _AS_RECKONED * (b + 0.5) / 10.0) / (crawls + _AS_RECKONED)
        y = (found + _AS_RECKONED * (b + 0.5) / 10.0) / (crawls + _AS_RECKONED)
        parts.knots[b + 1, 0] = x
        parts.knots[b + 1, 1] = max(y, parts.knots[b, 1])


@inline
def _count(bins: Array, p: float, changed: bool) -> None:
    k = min(int(10.0 * p), 9)
    bins[k, 0] += p
    bins[k, 1] += 1.0
    bins[k, 2] += changed


@inline
def _two_rows(parts: Parts, own: Array, other: Array, time: float, mass: float, changed: bool) -> None:
    """Take an outcome in for a rate and a weight; the results are in `rows`."""
    for c in range(2):
        parts.rows[0, c] = own[c]
        parts.rows[1, c] = other[c]
    parts.heard[0] = mass
    take_in(parts.rows[:2], time, parts.heard[:1], changed)


@jit_lean
def tell_groups(
    s: State, parts: Parts, i: int, begin: float, end: float, own: Array, time: float, exponent: float, changed: bool
) -> None:
    """Let the page's group of each level know of an outcome that its own rate foretold with an exponent."""
    interval = end - begin
    for k in range(parts.level.shape[0]):
        g, level = parts.group[i, k], parts.level[k]
        mass = excess_since(s, g, begin, end) if parts.members[g] > 1 else 0.0
        typical = level[WEIGHT_SHAPE] / level[WEIGHT_RATE]
        total = exponent + typical * mass
        level[SCORE] = _RECALL * level[SCORE] + log_chance(total, changed)
        _two_rows(parts, own, level, time, mass, changed)
        for c in range(2):
            level[c] = FIRST_WEIGHT[c] + (parts.rows[1, c] - FIRST_WEIGHT[c]) * _RECALL
        if parts.members[g] < 2:
            continue
        weight = sibling_weight(parts, i) if k == parts.active[0] else typical
        add_outcome(s, g, begin, end, exponent / interval, weight, changed)


@inline
def told_mass(s: State, parts: Parts, i: int, begin: float, end: float) -> float:
    """Excess changes of a typical sibling over an interval, whether they are heeded or not."""
    k = parts.active[0]
    if k < 0 or parts.members[parts.group[i, k]] < 2:
        return 0.0
    return excess_since(s, parts.group[i, k], begin, end)


@jit_lean
def try_ways(
    parts: Parts, i: int, shape: float, first: float, age: float, interval: float, mass: float, changed: bool
) -> None:
    """What each way of bursting, forgetting and heeding siblings would have said of this outcome; then let it learn."""
    if i >= parts.trial.shape[0]:
        return
    weight = parts.weight[i] if parts.active[0] >= 0 else parts.prior
    other = ALONE if parts.heeded[0] else TOGETHER
    heeded = mass if parts.heeded[0] else 0.0
    for w in range(parts.way.shape[0]):
        own, kin = parts.trial[i, w], parts.way[w, KIN]
        rate = first / parts.twin_mean[0] if kin == other else first
        if own[1] == 0.0:
            own[0], own[1] = shape, rate
        told = heeded if kin == AS_HEEDED else kin * mass
        expected = weight[0] / weight[1] * told
        time = interval
        if parts.way[w, BOOSTS] > 0.0:
            time += burst_ahead(parts.way[w, BOOSTS], parts.way[w, FADES], age, interval)
        if parts.way[w, HALF_LIVES] < math.inf:
            kept = math.exp2(-interval / parts.way[w, HALF_LIVES])
            own[0] = shape + (own[0] - shape) * kept
            own[1] = rate + (own[1] - rate) * kept
        parts.score[w] += log_chance(own[0] * math.log1p(time / own[1]) + expected, changed)
        _two_rows(parts, own, weight, time, told, changed)
        own[0], own[1] = parts.rows[0, 0], parts.rows[0, 1]


@jit_lean
def tell_season(
    parts: Parts, begin: float, end: float, own: Array, burst: float, expected: float, changed: bool
) -> None:
    """Judge the season fitted so far by an outcome; then credit the hours of the interval with what was found."""
    hour, interval = parts.hour[0], end - begin
    if parts.season.shape[0] == 0 or interval > SEASON_DAYS * 24.0 * hour:
        return
    season = season_between(parts.clock, hour, begin, end)
    plain = own[0] * math.log1p((interval + burst) / own[1]) + expected
    fitted = own[0] * math.log1p((season + burst) / own[1]) + expected
    parts.season_score[0] += log_chance(plain, changed)
    parts.season_score[1] += log_chance(fitted, changed)
    rate = own[0] / own[1]
    each = rate / max(-math.expm1(-fitted), 1e-9) if changed else 0.0
    b = int(np.floor(begin / hour))
    while b * hour < end:
        k = b % HOURS
        inside = min(end, (b + 1) * hour) - max(begin, b * hour)
        parts.season[k, CREDIT] += each * inside * (parts.clock[k + 1] - parts.clock[k])
        parts.season[k, EXPECTED] += rate * inside
        b += 1


@inline
def tell_lean(
    parts: Parts, likely: float, prior: Array, changes: float, watched: float, time: float, rest: float, changed: bool
) -> None:
    """What heeding the page's folder and host more or less would have said of an outcome, given the page's own past."""
    log_likely = math.log(likely)
    for k in range(parts.lean.size):
        scaled = prior[1] * math.exp(-parts.lean[k] * log_likely)
        exponent = (prior[0] + changes) * math.log1p(time / (scaled + watched))
        parts.lean_score[k] += log_chance(exponent + rest, changed)
