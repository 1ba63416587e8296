"""What a crawl's outcome teaches about a page, and how that belief becomes the scheduler's parameters.

The live engine and the simulator's compiled loop call the same `learn`, `heed` and `believe`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from recrawl._jit import inline, jit, jit_lean
from recrawl.engine.effects.kernels import (
    Parts,
    judge,
    log_chance,
    said,
    sibling_mass,
    sibling_weight,
    tell_groups,
    tell_lean,
    tell_season,
    told_mass,
    try_ways,
)
from recrawl.estimate.streams.kernels import take_in
from recrawl.schedule.exact.access_kernels import (
    Header,
    State,
    changed_at,
    excess_since,
    fetched_at,
    group_of,
    group_weight,
    importance_of,
    opened,
    own_elapsed,
    season_elapsed,
    set_changed_at,
    set_group_weight,
    write_belief,
)

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_NODES, _WEIGHTS = (0.5 * part + shift for part, shift in zip(leggauss(8), (0.5, 0.0), strict=True))  # from 0 to 1
_FEW = 4.0  # with so few signals of a source so far, each one changes what is believed of its rate at once


class Belief(NamedTuple):
    """Per page: gammas of the missed rate and of each source's weight (shape, rate), and what they rest on."""

    gamma: Array  # (pages, 1 + sources, 2)
    heard: Array  # (pages, sources): signals since the copy was fetched
    heard_at: Array  # (pages, 1; without sources 0): when the first of them came
    signals: Array  # (pages, sources): signals before that
    watched: Array  # time between the first copy and the last crawl
    n_crawls: Ids
    n_changes: Ids
    own: Array  # changes that the missed rate explains
    told: NDArray[np.bool_]  # whether a rate was given for it: the prior says nothing of it then
    counted: NDArray[np.bool_]  # whether the time since the copy was fetched belongs to the account
    factor: Array  # the prior's mean is this much larger for the page: what its folder and host say
    prior: Array  # (1 + sources, 2)
    half_life: Array  # (1,): after how much time evidence counts half
    shapes: Array  # shapes that the prior might have
    scores: Array  # how well each of them foretold the outcomes: Σ ln P
    account: Array  # (2,): importance × time that copies were kept until a crawl told of them, and stale of that


@inline
def precision(b: Belief, i: int, k: int) -> float:
    """Expected share of source k's signals that tell of a change: E(1 − e^{−κ})."""
    return -math.expm1(-b.gamma[i, 1 + k, 0] * math.log1p(1.0 / b.gamma[i, 1 + k, 1]))


@inline
def signal_rate(b: Belief, i: int, k: int, elapsed: float) -> float:
    """Signals of source k per time, as of some time after the last crawl."""
    time = b.watched[i] + elapsed
    return (b.signals[i, k] + b.heard[i, k]) / time if time > 0.0 else 0.0


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
def believe(s: State, b: Belief, parts: Parts, i: int, elapsed: float) -> None:
    """Write what is believed of a page into the scheduler's record, for at most one signal source.

    The caller sees to it that the page is placed anew.
    """
    missed = b.gamma[i, 0, 0] / b.gamma[i, 0, 1]
    true = false = 0.0
    if b.heard.shape[1] > 0:
        rate, share = signal_rate(b, i, 0, elapsed), precision(b, i, 0)
        true, false = share * rate, (1.0 - share) * rate
    evidence = b.gamma[i, 0, 0] if true == 0.0 else math.inf
    write_belief(s, i, missed + true, true / (missed + true), false, evidence)
    set_group_weight(s, i, sibling_weight(parts, i))


@inline
def prior_rate(b: Belief, i: int) -> float:
    """The rate of the gamma that is a page's prior: its mean is the population's, times what its groups say."""
    return float(b.prior[0, 1] / b.factor[i])


@inline
def _score(b: Belief, parts: Parts, i: int, time: float, expected: float, changed: bool) -> None:
    """What each shape of the prior, with its mean as it is, would have said of this outcome given the page's past.

    A first crawl says nothing of the shape, but of whether the page's groups knew better than all pages.
    """
    first = prior_rate(b, i)
    changes, before = max(b.gamma[i, 0, 0] - b.prior[0, 0], 0.0), max(b.gamma[i, 0, 1] - first, 0.0)
    if parts.lean.size > 0:
        tell_lean(parts, parts.likely[i], b.prior[0], changes, before, time, expected, changed)
    if b.n_crawls[i] == 0:
        return
    for g in range(b.shapes.size):
        shape = b.shapes[g] + changes
        rate = b.shapes[g] * first / b.prior[0, 0] + before
        b.scores[g] += log_chance(shape * math.log1p(time / rate) + expected, changed)


@inline
def _forget(gamma: Array, shape: float, rate: float, kept: float) -> None:
    gamma[0] = shape + (gamma[0] - shape) * kept
    gamma[1] = rate + (gamma[1] - rate) * kept


@jit_lean
def learn(s: State, b: Belief, parts: Parts, i: int, begin: float, end: float, changed: bool) -> None:
    """Take in a crawl's outcome: from one copy to the next, with the signals heard since, the page changed or not."""
    interval = end - begin
    if interval <= 0.0:
        return
    n_sources = b.heard.shape[1]
    time = own_elapsed(s, i, begin, interval)
    mass, heard = sibling_mass(s, i, begin, end), 0.0
    for k in range(n_sources):
        heard += b.heard[i, k] * b.gamma[i, 1 + k, 0] / b.gamma[i, 1 + k, 1]
    own = b.gamma[i, 0, 0] * math.log1p(time / b.gamma[i, 0, 1])
    expected = heard + sibling_weight(parts, i) * mass
    judge(parts, own + expected, changed)
    if b.counted[i]:
        b.account[0] += importance_of(s, i) * interval
        if changed:
            b.account[1] += importance_of(s, i) * _stale_when_found(s, b, parts, i, begin, end)
    told = told_mass(s, parts, i, begin, end)
    if heard == 0.0:
        age = begin - changed_at(s, i)
        season = season_elapsed(s, begin, interval)
        try_ways(parts, i, b.prior[0, 0], prior_rate(b, i), age, season, told, changed)
        tell_season(parts, begin, end, b.gamma[i, 0], time - season, expected, changed)
    if parts.active[0] >= 0:
        tell_groups(s, parts, i, begin, end, b.gamma[i, 0], time, own + heard, changed)
    if b.half_life[0] < math.inf:
        kept = math.exp2(-interval / b.half_life[0])
        for j in range(1 + n_sources):
            _forget(b.gamma[i, j], b.prior[j, 0], b.prior[j, 1] if j > 0 else prior_rate(b, i), kept)
        if parts.active[0] >= 0:
            _forget(parts.weight[i], parts.prior[0], parts.prior[1], kept)
            _forget(parts.twin[i], 0.0, 0.0, kept)
    if not b.told[i] and heard == 0.0:
        _score(b, parts, i, time, expected, changed)
    if changed:
        b.own[i] += own / (own + expected) if own > 0.0 else 1.0
    if parts.active[0] >= 0:
        _take_in_twin(b, parts, i, time, heard, told, changed)
    _take_in(b, parts, i, time, mass, changed)
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
def _take_in(b: Belief, parts: Parts, i: int, time: float, mass: float, changed: bool) -> None:
    """An outcome for the gammas of a page: missed rate, signal sources, siblings."""
    if not parts.heeded[0]:
        take_in(b.gamma[i], time, b.heard[i], changed)
        return
    n = b.gamma.shape[1]
    _copy(b.gamma[i, 0], parts.rows[0])
    _take_in_together(b, parts, i, time, mass, changed)
    for j in range(n):
        _copy(parts.rows[j], b.gamma[i, j])


@inline
def _take_in_together(b: Belief, parts: Parts, i: int, time: float, mass: float, changed: bool) -> None:
    """An outcome for the first of `rows`, and for signal sources and siblings; these take their weight over."""
    n = b.gamma.shape[1]
    for j in range(1, n):
        _copy(b.gamma[i, j], parts.rows[j])
        parts.heard[j - 1] = b.heard[i, j - 1]
    _copy(parts.weight[i], parts.rows[n])
    parts.heard[n - 1] = mass
    take_in(parts.rows[: n + 1], time, parts.heard[:n], changed)
    _copy(parts.rows[n], parts.weight[i])


@inline
def _take_in_twin(b: Belief, parts: Parts, i: int, time: float, heard: float, mass: float, changed: bool) -> None:
    """The same for what would be believed of the missed rate if siblings were heeded, or were not."""
    n, twin = b.gamma.shape[1], parts.twin[i]
    shape, rate = b.prior[0, 0], prior_rate(b, i) / parts.twin_mean[0]
    parts.rows[0, 0], parts.rows[0, 1] = max(shape + twin[0], 1e-3 * shape), max(rate + twin[1], 1e-3 * rate)
    own = parts.rows[0, 0] * math.log1p(time / parts.rows[0, 1])
    if not parts.heeded[0]:
        heard += mass * parts.weight[i, 0] / parts.weight[i, 1]
    if changed:
        twin[2] += own / (own + heard) if own > 0.0 else 1.0
    if parts.heeded[0]:
        for j in range(1, n):
            _copy(b.gamma[i, j], parts.rows[j])
        take_in(parts.rows[:n], time, b.heard[i], changed)
    else:
        _take_in_together(b, parts, i, time, mass, changed)
    twin[0], twin[1] = parts.rows[0, 0] - shape, parts.rows[0, 1] - rate


@jit
def learn_all(
    header: Header, b: Belief, parts: Parts, ids: Ids, begin: Array, end: Array, changed: NDArray[np.bool_], kept: Array
) -> None:
    """Take in outcomes; `kept` signals came after the fetch began and belong to the next interval."""
    s = opened(header)
    for j in range(ids.size):
        for k in range(b.heard.shape[1]):
            b.heard[ids[j], k] -= kept[j, k]
        learn(s, b, parts, ids[j], begin[j], end[j], changed[j])
        for k in range(b.heard.shape[1]):
            b.heard[ids[j], k] = kept[j, k]
            if kept[j, k] > 0.0:
                b.heard_at[ids[j], 0] = end[j]


@jit
def believe_all(header: Header, b: Belief, parts: Parts, ids: Ids, now: float) -> None:
    """Write what is believed of pages into the scheduler's records; the caller places them anew."""
    s = opened(header)
    for i in ids:
        believe(s, b, parts, i, max(now - fetched_at(s, i), 0.0))


@inline
def heed(b: Belief, i: int, k: int, now: float) -> bool:
    """Count a signal; whether it changes what is believed of the page at once."""
    b.heard[i, k] += 1.0
    b.heard_at[i, 0] = min(b.heard_at[i, 0], now)
    return bool(b.signals[i, k] + b.heard[i, k] <= _FEW)


@jit
def heed_all(b: Belief, ids: Ids, k: int, now: float) -> NDArray[np.bool_]:
    """Count signals of a source; for which of them the belief changes at once."""
    stirred = np.zeros(ids.size, np.bool_)
    for j in range(ids.size):
        stirred[j] = heed(b, ids[j], k, now)
    return stirred


# --- copies that may be stale ----------------------------------------------------------------------------------------


@inline
def _doubt(s: State, b: Belief, i: int, begin: float, at: float, end: float) -> float:
    """−ln P(fresh) of a copy fetched at `begin`, at a time up to the end, by all that is known at the end."""
    exponent = b.gamma[i, 0, 0] * math.log1p(own_elapsed(s, i, begin, at - begin) / b.gamma[i, 0, 1])
    for k in range(b.heard.shape[1]):
        if b.heard_at[i, 0] <= at:
            exponent += b.heard[i, k] * b.gamma[i, 1 + k, 0] / b.gamma[i, 1 + k, 1]
    group = group_of(s, i)
    if group >= 0 and group_weight(s, i) > 0.0:
        excess = max(excess_since(s, group, begin, end) - excess_since(s, group, at, end), 0.0)
        exponent += group_weight(s, i) * excess
    return float(exponent)


@jit_lean
def stale_time(s: State, b: Belief, parts: Parts, i: int, begin: float, end: float, stated: bool) -> float:
    """∫ P(stale) dt of a copy, by chances as they are stated or as they were reckoned.

    From the fetch to the first signal and from there to the end, each closer looked at where it begins.
    """
    heard = begin
    if b.heard_at.shape[1] > 0:
        heard = min(max(b.heard_at[i, 0], begin), end)
    total = 0.0
    for part in range(2):
        first, last = (begin, heard) if part == 0 else (heard, end)
        for k in range(_NODES.size if last > first else 0):
            at = first + (last - first) * _NODES[k] ** 2
            chance = -math.expm1(-_doubt(s, b, i, begin, at, end))
            total += 2.0 * _NODES[k] * _WEIGHTS[k] * (last - first) * (said(parts, chance) if stated else chance)
    return total


@inline
def _stale_when_found(s: State, b: Belief, parts: Parts, i: int, begin: float, end: float) -> float:
    """How long it was where the crawl at the end has found a change; half of the time where that was improbable."""
    chance = -math.expm1(-_doubt(s, b, i, begin, end, end))
    return stale_time(s, b, parts, i, begin, end, False) / chance if chance > 1e-9 else 0.5 * (end - begin)


@jit
def kept_time(header: Header, b: Belief, parts: Parts, ids: Ids, begin: Array, end: Array) -> tuple[float, float]:
    """(importance × time that copies were kept, stale of that) where no crawl has told whether they were."""
    s = opened(header)
    time = stale = 0.0
    for j in range(ids.size):
        i = ids[j]
        if b.counted[i] and end[j] > begin[j]:
            time += importance_of(s, i) * (end[j] - begin[j])
            stale += importance_of(s, i) * stale_time(s, b, parts, i, begin[j], end[j], True)
    return time, stale


@jit
def fill_fresh(header: Header, b: Belief, ids: Ids, now: float, out: Array) -> None:
    """The probability that each page's copy is still the page."""
    s = opened(header)
    for j in range(ids.size):
        begin = fetched_at(s, ids[j])
        end = max(now, begin)
        out[j] = math.exp(-_doubt(s, b, ids[j], begin, end, end))
