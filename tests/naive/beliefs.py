"""A plain twin of what is believed of change rates: tables are sums over pages; it imports nothing."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from mpmath import mp, mpf
from scipy.optimize import brentq
from scipy.special import digamma

RATES = 1e-4 * 2.0 ** np.arange(32)  # per day
FIRST_PAGES, UNIT, NARROW, SPREAD = 2.0, 255, 8.0, 0.06


class Observed(NamedTuple):
    """What was observed of a page: `unchanged` time, `changes` with the sum of ln of their intervals, a given rate."""

    unchanged: float = 0.0
    changes: float = 0.0
    log_intervals: float = 0.0
    given_changes: float = 0.0
    given_time: float = 0.0

    @property
    def interval(self):
        """The length of a changed interval, where there is one."""
        return math.exp(self.log_intervals / self.changes) if self.changes else 1.0


def first_table(per_day=RATES):
    """The distribution of rates before anything is known."""
    table = per_day**-0.4 * (1.0 + per_day / 10.0) ** -1.8
    return table / table.sum()


def log_likelihood(observed, rate):
    """ln P(observed | rate), up to a constant."""
    total = -rate * (observed.unchanged + observed.given_time)
    if observed.given_changes:
        total += observed.given_changes * math.log(rate)
    if observed.changes:
        total += observed.changes * math.log(max(-math.expm1(-rate * observed.interval), 1e-300))
    return total


def posterior(prior, observed, rates):
    """The posterior on the grid."""
    log = np.log(prior) + [log_likelihood(observed, rate) for rate in rates.tolist()]
    weight = np.exp(log - log.max())
    return weight / weight.sum()


def moments(weight, rates):
    """(mean, mean logarithm) of a distribution on a grid."""
    return float(weight @ rates), float(weight @ np.log(rates))


def shape_of(gap):
    """The shape of the gamma whose logarithm of the mean exceeds the mean logarithm by a gap."""
    return brentq(lambda log: log - digamma(math.exp(log)) - gap, -12.0, 22.0, xtol=1e-13)


def gamma_of(prior, observed, rates):
    """(shape, rate) of the gamma of a posterior's mean and mean logarithm, and how near to the mean another one is.

    A posterior that is narrower than the grid is computed on a finer one.
    """
    weight = posterior(prior, observed, rates)
    mean, mean_log = moments(weight, rates)
    mode, curve = likeliest(observed)
    narrow = weight.max() > 0.3 and observed.changes + observed.given_changes > 0 and curve > NARROW
    if narrow:
        rate = mode * np.exp(np.linspace(-4.0, 4.0, 801) / math.sqrt(curve))
        mean, mean_log = moments(posterior(interpolated(prior, rates, rate), observed, rate), rate)
    least = 1e-9 if narrow else math.log(rates[1] / rates[0]) ** 2 / 24.0  # half of the variance within a bin
    shape = math.exp(shape_of(max(math.log(mean) - mean_log, least)))
    at_the_edge = abs(curve - NARROW) < 0.05 or abs(weight.max() - 0.3) < 0.01
    return shape, shape / mean, 0.05 if at_the_edge else 5e-3 if narrow else 1e-9


def interpolated(prior, rates, rate):
    """The prior's density over ln r between the rates of the grid, and as at its ends beyond them."""
    return np.exp(np.interp(np.log(rate), np.log(rates), np.log(prior)))


def likeliest(observed, low=1e-30, high=1e30):
    """(rate of the largest likelihood, curvature over ln r there); the likelihood is concave in ln r."""
    low, high = math.log(low), math.log(high)
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if log_likelihood(observed, math.exp(left)) < log_likelihood(observed, math.exp(right)):
            low = left
        else:
            high = right
    rate = math.exp(0.5 * (low + high))
    curve = rate * (observed.unchanged + observed.given_time)
    if observed.changes:
        x = rate * observed.interval
        curve -= observed.changes * (x * (1 - x) / math.expm1(x) - x * x / math.expm1(x) ** 2) if x < 300 else 0.0
    return rate, curve


def exact_moments(prior, crawls, rates, given=(0.0, 0.0)):
    """(mean, mean logarithm) by Bayes' rule, crawl by crawl, to many digits: (interval, changed) each."""
    with mp.workdps(50):
        total = mean = mean_log = mpf(0)
        for share, rate in zip(prior.tolist(), rates.tolist(), strict=True):
            r, weight = mpf(rate), mpf(share)
            for interval, changed in crawls:
                unchanged = mp.exp(-r * mpf(interval))
                weight *= 1 - unchanged if changed else unchanged
            weight *= r ** mpf(given[0]) * mp.exp(-r * mpf(given[1]))
            total, mean, mean_log = total + weight, mean + weight * r, mean_log + weight * mp.log(r)
        return float(mean / total), float(mean_log / total)


def shares(weight):
    """A distribution in whole units; what rounding leaves goes to the next rates."""
    out, left, rest = [], UNIT, 1.0
    for p in weight.tolist():
        new = min(int(p / rest * left + 0.5), left) if rest > 1e-12 else 0
        rest, left = rest - p, left - new
        out.append(new)
    return np.array(out)


def prior_of(page, pages, first, strength):
    """The prior of a page by all other pages, those of its host and those of its folder."""
    others = [other for other in pages if other is not page and other.share is not None]

    def pooled(chosen, base, n_pages):
        counts = sum((other.share / UNIT for other in chosen), np.zeros(len(base)))
        return (counts + n_pages * base) / (counts.sum() + n_pages)

    out = pooled(others, first, FIRST_PAGES)
    out = pooled([other for other in others if other.host == page.host], out, strength[0])
    out = pooled([other for other in others if other.folder == page.folder], out, strength[1])
    return spread_over(first) @ out


def spread_over(first):
    """The matrix by which a distribution spreads to neighbouring rates: a Markov chain that leaves the first one."""
    matrix = np.eye(len(first))
    for k in range(len(first) - 1):
        for source, target in ((k, k + 1), (k + 1, k)):
            moved = SPREAD * min(first[target] / first[source], 1.0)
            matrix[target, source] += moved
            matrix[source, source] -= moved
    return matrix
