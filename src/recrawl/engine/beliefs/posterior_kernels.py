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

from recrawl._compile.jit import inline, jit, jit_lean
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
from recrawl.model.kernels.elementary import exp_all, largest, log_all, sum_of, sum_of_products

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

FIRST_PAGES = 2.0  # the first distribution of rates counts as so many pages
_NARROW = 8.0  # curvature of the likelihood over ln r above which the grid is too coarse
_FINE = 24  # rates of the finer grid
_WIDE = 4.0  # it covers so many standard deviations to each side
_STEPS = 8  # of Newton's method
_NEAR = 1e-3  # its last step in ln r: the finer grid need not be centred more exactly
_SMALL = 1.0 / 64.0  # where ln(1 − e^−x) is its series
_NEVER = -200.0  # logarithm of a likelihood, relative to the largest, below which a rate is impossible
MOST_SHAPE = 1e9
_CHANGE, _MORE, _RATES, _LOGS, _WEIGHTS = 2, 2, 3, 4, 5  # rows of `SignalArrays.room`; before them prior, posterior


@inline
def mean_interval(seen: Array) -> tuple[float, float]:
    """The geometric mean of the intervals with a change, and its logarithm; (1, 0) if there are none."""
    log = seen[LOG_INTERVALS] / seen[CHANGES] if seen[CHANGES] > 0.0 else 0.0
    return math.exp(log), log


@jit_lean
def fill_likelihood(seen: Array, given: Array, rates: Array, log_rates: Array, out: Array) -> None:
    """Logarithms of the likelihood of some rates, up to a constant.

    ln(1 − e^{−x}) is ln x − x/2 + x²/24 − x⁴/2880 for small x: the first term that is left out is below 1e-16.
    """
    time, changes, known = seen[UNCHANGED] + given[GIVEN_TIME], seen[CHANGES], given[GIVEN_CHANGES]
    if not changes > 0.0:
        for k in range(out.size):
            out[k] = known * log_rates[k] - rates[k] * time
        return
    interval, log_interval = mean_interval(seen)
    for k in range(out.size):
        out[k] = -(rates[k] * interval)
    exp_all(out)
    for k in range(out.size):
        out[k] = max(1.0 - out[k], 1e-300)
    log_all(out)
    for k in range(out.size):
        x = rates[k] * interval
        small = log_rates[k] + log_interval + x * (-0.5 + x * (1.0 / 24.0 - x * x / 2880.0))
        log_changed = small if x < _SMALL else out[k]
        out[k] = known * log_rates[k] - rates[k] * time + changes * log_changed


@jit_lean
def _to_shares(out: Array) -> None:
    """Turn logarithms into numbers of which the largest is 1."""
    most = largest(out)
    for k in range(out.size):
        gap = out[k] - most
        out[k] = gap if gap > _NEVER else -math.inf
    exp_all(out)


@inline
def spread_rates(spread: Array, out: Array) -> None:
    """Let a distribution spread to neighbouring rates; where it is the first distribution, it stays as it is.

    Shares of pages in tables are rounded, and a rate that no other page is believed to have would keep out all pages:
    each would be held to the rate of the others, whatever it shows.
    """
    risen = 0.0
    for k in range(out.size - 1):
        up = spread[0, k] * out[k] - spread[1, k] * out[k + 1]
        out[k] = max(out[k] + risen - up, 1e-300)
        risen = up
    out[out.size - 1] = max(out[out.size - 1] + risen, 1e-300)


@jit_lean
def fill_prior(b: Belief, i: int, out: Array) -> None:
    """The distribution of a page's rate before anything was observed of it, by its folder, host and all pages."""
    share, own = b.share[i], 0
    for k in range(out.size):
        own += share[k]
    first, by_host, by_folder = UNIT * FIRST_PAGES, UNIT * b.strength[HOST], UNIT * b.strength[FOLDER]
    everywhere, host, folder = b.tables[ALL], b.tables[b.table[i, HOST]], b.tables[b.table[i, FOLDER]]
    of_all = 1.0 / (b.sizes[ALL] - own + first)
    of_host = 1.0 / (b.sizes[b.table[i, HOST]] - own + by_host)
    of_folder = 1.0 / (b.sizes[b.table[i, FOLDER]] - own + by_folder)
    at_first = b.first
    for k in range(out.size):
        mine = float(share[k])
        p = (everywhere[k] - mine + first * at_first[k]) * of_all
        p = (host[k] - mine + by_host * p) * of_host
        out[k] = (folder[k] - mine + by_folder * p) * of_folder
    spread_rates(b.spread, out)


@jit_lean
def fill_posterior(b: Belief, i: int, prior: Array, out: Array) -> None:
    """The posterior on the grid."""
    fill_likelihood(b.seen[i], b.evidence[i], b.rates, b.signals.log_rates, out)
    _to_shares(out)
    for k in range(out.size):
        out[k] *= prior[k]
    share = 1.0 / sum_of(out)
    for k in range(out.size):
        out[k] *= share


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
    interval = mean_interval(seen)[0]
    for _ in range(_STEPS):
        slope, second = _slopes(seen, given, interval, rate)
        curve = -second
        if not curve > 1e-12:
            break
        step = min(max(slope / curve, -1.0), 1.0)
        rate *= math.exp(step)
        if abs(step) < _NEAR:
            break
    return rate, curve


@inline
def matched_shape(gap: float) -> float:
    """The shape of the gamma whose logarithm of the mean exceeds the mean logarithm by a gap.

    ln a − ψ(a) = gap, by Minka's approximation (relative error below 1.5%).
    """
    gap = max(gap, 0.5 / MOST_SHAPE)
    return (3.0 - gap + math.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)


@jit_lean
def _fine_gamma(b: Belief, i: int, prior: Array, rate: float, deviation: float) -> tuple[float, float]:
    """(shape, rate) of the gamma that goes with the posterior around the most likely rate.

    Between the rates of the grid the logarithm of the prior is linear in ln r.
    """
    step = 2.0 * _WIDE * deviation / (_FINE - 1)
    log_rate, log_rates, room = math.log(rate), b.signals.log_rates, b.signals.room
    more, rates, logs, weights = room[_MORE, :_FINE], room[_RATES, :_FINE], room[_LOGS, :_FINE], room[_WEIGHTS, :_FINE]
    for k in range(_FINE):
        more[k] = (k - 0.5 * (_FINE - 1)) * step
        logs[k] = log_rate + more[k]
    exp_all(more)
    for k in range(_FINE):
        rates[k] = rate * more[k]
        more[k] -= 1.0
    fill_likelihood(b.seen[i], b.evidence[i], rates, logs, weights)
    cell, low, high, last = -1, 0.0, 0.0, prior.size - 2
    for k in range(_FINE):
        place = (logs[k] - log_rates[0]) / (log_rates[1] - log_rates[0])
        j = min(max(int(place), 0), last)
        if j != cell:
            cell, low, high = j, math.log(prior[j]), math.log(prior[j + 1])
        weights[k] += low + min(max(place - j, 0.0), 1.0) * (high - low)
    _to_shares(weights)
    total = sum_of(weights)
    mean = sum_of_products(weights, more, _FINE) / total
    for k in range(_FINE):
        logs[k] -= log_rate
    shape = matched_shape(math.log1p(mean) - sum_of_products(weights, logs, _FINE) / total)
    return shape, shape / (rate * (1.0 + mean))


@jit_lean
def gamma_of(b: Belief, i: int, prior: Array, posterior: Array) -> tuple[float, float]:
    """(shape, rate) of the gamma that goes with a page's posterior: same mean, same mean logarithm.

    The curvature of the likelihood at its mode is c + C·x²e^x/(e^x − 1)² with x = r·τ: at most C + c.
    """
    n, best = posterior.size, 0
    for k in range(n):
        best = k if posterior[k] > posterior[best] else best
    if posterior[best] > 0.3 and b.seen[i, CHANGES] + b.evidence[i, GIVEN_CHANGES] > _NARROW:
        rate, curve = _mode(b.seen[i], b.evidence[i], b.rates[best])
        if curve > _NARROW:
            return _fine_gamma(b, i, prior, rate, 1.0 / math.sqrt(curve))
    mean = sum_of_products(posterior, b.rates, n)
    mean_log = sum_of_products(posterior, b.signals.log_rates, n)
    width = b.signals.log_rates[1] - b.signals.log_rates[0]  # a rate is known to half a cell
    shape = matched_shape(max(math.log(mean) - mean_log, width * width / 24.0))
    return shape, shape / mean


@inline
def _add_to_table(b: Belief, t: int, change: Array, more: float) -> None:
    table = b.tables[t]
    for k in range(table.size):
        table[k] += change[k]
    b.sizes[t] += more


@jit_lean
def count_in_tables(b: Belief, i: int, posterior: Array) -> None:
    """Replace what a page adds to the tables of its folder, its host and all pages."""
    share, change = b.share[i], b.signals.room[_CHANGE]
    left, rest = UNIT, 1.0
    for k in range(posterior.size):
        new = 0
        if posterior[k] * left >= 0.5 * rest and rest > 1e-12:
            new = min(int(posterior[k] / rest * left + 0.5), left)
            left -= new
        rest -= posterior[k]
        change[k] = new - float(share[k])
        share[k] = new
    more = sum_of(change)
    _add_to_table(b, ALL, change, more)
    _add_to_table(b, b.table[i, HOST], change, more)
    _add_to_table(b, b.table[i, FOLDER], change, more)


@inline
def by_signals(b: Belief, i: int) -> bool:
    """Whether a page is valued by signals: a source that counts on its host has signalled it."""
    row = row_of(b.signals, i)
    return row >= 0 and any_open(b.signals, row)


@inline
def believe(b: Belief, i: int, prior: Array, posterior: Array, count: bool) -> None:
    """Compute a page's gamma from its observations and the tables; count it in them, if that is asked for."""
    fill_prior(b, i, prior)
    fill_posterior(b, i, prior, posterior)
    b.gamma[i, 0], b.gamma[i, 1] = gamma_of(b, i, prior, posterior)
    if count:
        count_in_tables(b, i, posterior)


@jit_lean
def believe_all(b: Belief, ids: Ids, count: bool) -> None:
    """Compute the gammas of pages; those that were crawled are counted in the tables if that is asked for.

    Pages that are valued by signals stay as they were last counted: the intervals between their crawls depend on
    changes.
    """
    prior, posterior = b.signals.room[0], b.signals.room[1]
    for k in range(ids.size):
        i = ids[k]
        believe(b, i, prior, posterior, count and b.n_crawls[i] > 0 and not by_signals(b, i))


@jit_lean
def count_all(b: Belief, ids: Ids) -> None:
    """Count pages that were crawled in the tables again, by the tables as they are; their gammas stay as they are."""
    prior, posterior = b.signals.room[0], b.signals.room[1]
    for k in range(ids.size):
        if not by_signals(b, ids[k]):
            fill_prior(b, ids[k], prior)
            fill_posterior(b, ids[k], prior, posterior)
            count_in_tables(b, ids[k], posterior)


@jit
def likelihood_of_strengths(b: Belief, ids: Ids, host: Array, folder: Array) -> Array:
    """(hosts, folders): Σ ln P(what was observed of each page) for each pair of strengths, the page left out."""
    n = b.rates.size
    out, kept = np.zeros((host.size, folder.size)), b.strength.copy()
    prior, like = np.empty(n), np.empty(n)
    for i in ids:
        fill_likelihood(b.seen[i], b.evidence[i], b.rates, b.signals.log_rates, like)
        _to_shares(like)
        for h in range(host.size):
            for f in range(folder.size):
                b.strength[HOST], b.strength[FOLDER] = host[h], folder[f]
                fill_prior(b, i, prior)
                out[h, f] += math.log(max(sum_of_products(prior, like, n), 1e-300))
    b.strength[:] = kept
    return out
