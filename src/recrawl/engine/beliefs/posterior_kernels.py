"""The posterior of a page's change rate: a table of the population times the likelihood of what was observed.

    ln L(r) = −r·(U + t) + c·ln r + C·ln(1 − e^{−r·τ}),  ln τ = L/C

U is the time of intervals without a change, C the number of intervals with one and L the sum of the logarithms of their
lengths; a given rate counts as c changes in a time t. The sums fade and depend on no table. The prior of a page is the
table of its folder, held to that of its host, held to that of all pages; the page itself is left out of each.

The posterior on the grid of rates becomes the gamma of the same mean and the same mean logarithm: its crawl value and
the inverse of that are closed forms. A posterior that is narrower than the grid is computed again on a finer one.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import inline, jit, jit_lean
from recrawl.engine.beliefs.arrays import (
    ALL,
    CHANGES,
    FOLDER,
    GIVEN_CHANGES,
    GIVEN_TIME,
    HOST,
    LOG_INTERVALS,
    UNCHANGED,
    UNIT,
    Belief,
)
from recrawl.engine.signals.arrays import any_open, row_of

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

FIRST_PAGES = 2.0  # the first distribution of rates counts as so many pages
_NARROW = 8.0  # curvature of the likelihood over ln r above which the grid is too coarse
_FINE = 24  # rates of the finer grid
_WIDE = 4.0  # it covers so many standard deviations to each side
_STEPS = 8  # of Newton's method
MOST_SHAPE = 1e9


@inline
def _log_changed(x: float) -> float:
    """ln(1 − e^{−x})."""
    return math.log(max(-math.expm1(-x), 1e-300))


@inline
def mean_interval(seen: Array) -> float:
    """The geometric mean of the intervals with a change."""
    return math.exp(seen[LOG_INTERVALS] / seen[CHANGES]) if seen[CHANGES] > 0.0 else 0.0


@inline
def log_likelihood(seen: Array, given: Array, interval: float, rate: float) -> float:
    """Logarithm of the likelihood of a rate, up to a constant; `interval` as `mean_interval` says."""
    total = -rate * (seen[UNCHANGED] + given[GIVEN_TIME])
    if given[GIVEN_CHANGES] > 0.0:
        total += given[GIVEN_CHANGES] * math.log(rate)
    if seen[CHANGES] > 0.0:
        total += seen[CHANGES] * _log_changed(rate * interval)
    return float(total)


@jit_lean
def fill_prior(b: Belief, i: int, out: Array) -> None:
    """The distribution of a page's rate before anything was observed of it, by its folder, host and all pages."""
    share, host, folder = b.share[i], b.table[i, HOST], b.table[i, FOLDER]
    own = 0.0
    for k in range(out.size):
        own += share[k]
    first, by_host, by_folder = UNIT * FIRST_PAGES, UNIT * b.strength[HOST], UNIT * b.strength[FOLDER]
    for k in range(out.size):
        p = (b.tables[ALL, k] - share[k] + first * b.first[k]) / (b.sizes[ALL] - own + first)
        p = (b.tables[host, k] - share[k] + by_host * p) / (b.sizes[host] - own + by_host)
        out[k] = max((b.tables[folder, k] - share[k] + by_folder * p) / (b.sizes[folder] - own + by_folder), 1e-300)


@jit_lean
def normalise(log_weight: Array) -> float:
    """Turn logarithms of weights into weights that add up to 1; the logarithm of their sum before."""
    most, total = log_weight[0], 0.0
    for k in range(1, log_weight.size):
        most = max(most, log_weight[k])
    for k in range(log_weight.size):
        log_weight[k] = math.exp(log_weight[k] - most)
        total += log_weight[k]
    for k in range(log_weight.size):
        log_weight[k] /= total
    return float(most + math.log(total))


@jit_lean
def fill_posterior(b: Belief, i: int, prior: Array, out: Array) -> float:
    """The posterior on the grid; the logarithm of the probability of what was observed."""
    interval = mean_interval(b.seen[i])
    for k in range(out.size):
        out[k] = math.log(prior[k]) + log_likelihood(b.seen[i], b.evidence[i], interval, b.rates[k])
    return normalise(out)


@inline
def _slopes(seen: Array, given: Array, interval: float, rate: float) -> tuple[float, float]:
    """First and second derivative of the log likelihood by ln r."""
    linear = rate * (seen[UNCHANGED] + given[GIVEN_TIME])
    first, second = given[GIVEN_CHANGES] - linear, -linear
    if seen[CHANGES] > 0.0:
        x = rate * interval
        if x < 1e-3:
            first += seen[CHANGES] * (1.0 - 0.5 * x)
            second -= seen[CHANGES] * 0.5 * x
        elif x < 500.0:
            e = math.expm1(x)
            first += seen[CHANGES] * x / e
            second += seen[CHANGES] * x * (e - x * (e + 1.0)) / (e * e)
    return first, second


@jit_lean
def _mode(seen: Array, given: Array, rate: float) -> tuple[float, float]:
    """(rate of the largest likelihood, curvature over ln r there), from a rate nearby.

    It is at most (C + c)/(U + t), and near that where it lies far below the grid.
    """
    time, curve = seen[UNCHANGED] + given[GIVEN_TIME], 0.0
    if time > 0.0:
        rate = min(rate, (seen[CHANGES] + given[GIVEN_CHANGES]) / time)
    if seen[CHANGES] <= 0.0:
        return given[GIVEN_CHANGES] / time, given[GIVEN_CHANGES]
    interval = mean_interval(seen)
    for _ in range(_STEPS):
        slope, second = _slopes(seen, given, interval, rate)
        curve = -second
        if not curve > 1e-12:
            break
        step = min(max(slope / curve, -1.0), 1.0)
        rate *= math.exp(step)
        if abs(step) < 1e-6:
            break
    return rate, curve


@inline
def _prior_at(b: Belief, prior: Array, rate: float) -> float:
    """The prior's density over ln r between the rates of the grid."""
    n = prior.size
    x = math.log(rate / b.rates[0]) / math.log(b.rates[1] / b.rates[0])
    j = min(max(int(x), 0), n - 2)
    share = min(max(x - j, 0.0), 1.0)
    return float(prior[j] ** (1.0 - share) * prior[j + 1] ** share)


@inline
def matched_shape(gap: float) -> float:
    """The shape of the gamma whose logarithm of the mean exceeds the mean logarithm by a gap.

    ln a − ψ(a) = gap, by Minka's approximation (relative error below 1.5%).
    """
    gap = max(gap, 0.5 / MOST_SHAPE)
    return (3.0 - gap + math.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)


@jit_lean
def _fine_gamma(b: Belief, i: int, prior: Array, rate: float, deviation: float) -> tuple[float, float]:
    """(shape, rate) of the gamma that goes with the posterior around the most likely rate."""
    step = 2.0 * _WIDE * deviation / (_FINE - 1)
    most, total, mean, mean_log = -math.inf, 0.0, 0.0, 0.0
    interval = mean_interval(b.seen[i])
    for k in range(_FINE):
        x = (k - 0.5 * (_FINE - 1)) * step
        here = rate * math.exp(x)
        weight = math.log(_prior_at(b, prior, here)) + log_likelihood(b.seen[i], b.evidence[i], interval, here)
        if weight > most:
            scale = math.exp(most - weight) if total > 0.0 else 0.0
            total, mean, mean_log, most = total * scale, mean * scale, mean_log * scale, weight
        weight = math.exp(weight - most)
        total += weight
        mean += weight * math.expm1(x)
        mean_log += weight * x
    mean, mean_log = mean / total, mean_log / total
    shape = matched_shape(math.log1p(mean) - mean_log)
    return shape, shape / (rate * (1.0 + mean))


@jit_lean
def gamma_of(b: Belief, i: int, prior: Array, posterior: Array) -> tuple[float, float]:
    """(shape, rate) of the gamma that goes with a page's posterior: same mean, same mean logarithm."""
    mean, mean_log, best = 0.0, 0.0, 0
    for k in range(posterior.size):
        mean += posterior[k] * b.rates[k]
        mean_log += posterior[k] * b.signals.log_rates[k]
        if posterior[k] > posterior[best]:
            best = k
    if posterior[best] > 0.3 and b.seen[i, CHANGES] + b.evidence[i, GIVEN_CHANGES] > 0.0:
        rate, curve = _mode(b.seen[i], b.evidence[i], b.rates[best])
        if curve > _NARROW:
            return _fine_gamma(b, i, prior, rate, 1.0 / math.sqrt(curve))
    width = math.log(b.rates[1] / b.rates[0])  # all of it at one rate says no more than that it is nearest
    shape = matched_shape(max(math.log(mean) - mean_log, width * width / 24.0))
    return shape, shape / mean


@inline
def _add(b: Belief, table: int, k: int, change: float) -> None:
    b.tables[table, k] += change
    b.sizes[table] += change


@jit_lean
def count_in_tables(b: Belief, i: int, posterior: Array) -> None:
    """Replace what a page adds to the tables of its folder, its host and all pages."""
    left, change = UNIT, 0.0
    rest = 1.0
    for k in range(posterior.size):
        new = min(int(posterior[k] / rest * left + 0.5), left) if rest > 1e-12 else 0
        rest -= posterior[k]
        left -= new
        change = new - float(b.share[i, k])
        b.share[i, k] = new
        _add(b, ALL, k, change)
        _add(b, b.table[i, HOST], k, change)
        _add(b, b.table[i, FOLDER], k, change)


@inline
def by_signals(b: Belief, i: int) -> bool:
    """Whether a page is valued by signals: a source that counts on its host has signalled it."""
    row = row_of(b.signals, i)
    return row >= 0 and any_open(b.signals, row)


@jit_lean
def believe(b: Belief, i: int, prior: Array, posterior: Array, count: bool) -> None:
    """Compute a page's gamma from its observations and the tables; count it in them, if that is asked for."""
    fill_prior(b, i, prior)
    fill_posterior(b, i, prior, posterior)
    b.gamma[i, 0], b.gamma[i, 1] = gamma_of(b, i, prior, posterior)
    if count:
        count_in_tables(b, i, posterior)


@jit
def believe_all(b: Belief, ids: Ids, count: bool) -> None:
    """Compute the gammas of pages; those that were crawled are counted in the tables if that is asked for.

    Pages that are valued by signals stay as they were last counted: the intervals between their crawls depend on
    changes.
    """
    prior, posterior = np.empty(b.rates.size), np.empty(b.rates.size)
    for i in ids:
        believe(b, i, prior, posterior, count and b.n_crawls[i] > 0 and not by_signals(b, i))


@jit
def likelihood_of_strengths(b: Belief, ids: Ids, host: Array, folder: Array) -> Array:
    """(hosts, folders): Σ ln P(what was observed of each page) for each pair of strengths, the page left out."""
    n = b.rates.size
    out, kept = np.zeros((host.size, folder.size)), b.strength.copy()
    prior, like = np.empty(n), np.empty(n)
    for i in ids:
        interval = mean_interval(b.seen[i])
        for k in range(n):
            like[k] = log_likelihood(b.seen[i], b.evidence[i], interval, b.rates[k])
        normalise(like)
        for h in range(host.size):
            for f in range(folder.size):
                b.strength[HOST], b.strength[FOLDER] = host[h], folder[f]
                fill_prior(b, i, prior)
                total = 0.0
                for k in range(n):
                    total += prior[k] * like[k]
                out[h, f] += math.log(max(total, 1e-300))
    b.strength[:] = kept
    return out
