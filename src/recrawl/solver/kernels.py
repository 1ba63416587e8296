"""Loops over pages for a solver: every page's rate at a price, and what a whole plan earns.

Columns may have one element for all rows. `skip_below` leaves a page out while its price lies below it (pages of a
host that is at its limit then). Each loop works on rows start … stop, so that threads can share the pages.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit
from recrawl.model.kernels.outcomes import page_outcome
from recrawl.model.kernels.pages import at
from recrawl.model.kernels.rates import HARMONIC_RANDOM, RANDOM, SIGNALS, rate_at
from recrawl.model.kernels.signal_inverse import signal_inverse
from recrawl.model.kernels.signals import ALL_TERMS, signal_count, signal_interval
from recrawl.solver.plain_kernels import clip, common_fill, common_totals, main_of_two, two_fill, two_totals

Array = NDArray[np.float64]
Kinds = NDArray[np.uint8]
_ROUNDING = 1e-12  # a slope this little above the price, relative, is counted as rounding


@jit
def _signal_rate_at(
    change_rate: float, alpha: float, gamma: float, kappa: float, v: float, guess: float
) -> tuple[float, float]:
    """(crawl rate, threshold on the staleness exponent) of a page with noisy signals whose crawl value is v."""
    if v * change_rate >= 1.0:
        return 0.0, math.inf
    if alpha == 0.0:
        count = signal_count(gamma, kappa, change_rate, v, ALL_TERMS)
        return gamma / max(count, 1.0), count * kappa
    s = signal_inverse(alpha, gamma, kappa, change_rate, v, ALL_TERMS, guess)
    return 1.0 / signal_interval(alpha, gamma, kappa, s, 0.0), s


@inline
def _rate(
    kind: int,
    change_rate: float,
    importance: float,
    shape: float,
    alpha: Array,
    gamma: Array,
    kappa: Array,
    exponent: Array,
    i: int,
    price: float,
) -> float:
    if importance <= 0.0 or change_rate <= 0.0:
        return 0.0
    v = price / importance
    if kind == SIGNALS:
        rate, exponent[i] = _signal_rate_at(change_rate, at(alpha, i), at(gamma, i), at(kappa, i), v, exponent[i])
        return rate
    return rate_at(kind, change_rate, shape, v)


@inline
def _rate_within(
    kind: Kinds,
    change_rate: Array,
    importance: Array,
    shape: Array,
    alpha: Array,
    gamma: Array,
    kappa: Array,
    low: Array,
    high: Array,
    exponent: Array,
    i: int,
    price: float,
) -> float:
    """The rate of row i at a price, within its limits."""
    k = kind[i] if kind.size > 1 else kind[0]
    rate = _rate(k, change_rate[i], importance[i], at(shape, i), alpha, gamma, kappa, exponent, i, price)
    return clip(rate, at(low, i), at(high, i))


@jit
def totals(
    start: int,
    stop: int,
    kind: Kinds,
    change_rate: Array,
    importance: Array,
    shape: Array,
    alpha: Array,
    gamma: Array,
    kappa: Array,
    cost: Array,
    low: Array,
    high: Array,
    skip_below: Array,
    exponent: Array,
    price: float,
    surcharge: float,
) -> tuple[float, float]:
    """(Σ cost·rate, Σ rate) when a crawl has the price price·cost + surcharge."""
    if kind.size == shape.size == cost.size == low.size == high.size == skip_below.size == 1 and kind[0] != SIGNALS:
        crawl = price * cost[0] + surcharge
        args = (start, stop, change_rate, importance, shape[0], low[0], high[0], crawl)
        crawls = common_totals(kind[0], *args)
        return cost[0] * crawls, crawls
    main = main_of_two(start, stop, kind, shape, cost, low, high, skip_below)
    if main >= 0 and price * cost[0] >= skip_below[0]:
        crawl = price * cost[0] + surcharge
        crawls = two_totals(main, start, stop, kind, change_rate, importance, low[0], high, crawl)
        return cost[0] * crawls, crawls
    spent, crawls = 0.0, 0.0
    for i in range(start, stop):
        c = at(cost, i)
        if price * c < at(skip_below, i):
            continue
        paid = price * c + surcharge
        rate = _rate_within(kind, change_rate, importance, shape, alpha, gamma, kappa, low, high, exponent, i, paid)
        spent += c * rate
        crawls += rate
    return spent, crawls


@jit
def fill_rates(
    start: int,
    stop: int,
    kind: Kinds,
    change_rate: Array,
    importance: Array,
    shape: Array,
    alpha: Array,
    gamma: Array,
    kappa: Array,
    cost: Array,
    low: Array,
    high: Array,
    skip_below: Array,
    exponent: Array,
    price: float,
    surcharge: float,
    out: Array,
) -> float:
    """Write every page's rate at that price (pages left out keep what is there); returns 0."""
    if kind.size == shape.size == cost.size == low.size == high.size == skip_below.size == 1 and kind[0] != SIGNALS:
        crawl = price * cost[0] + surcharge
        common_fill(kind[0], start, stop, change_rate, importance, shape[0], low[0], high[0], crawl, out)
        return 0.0
    main = main_of_two(start, stop, kind, shape, cost, low, high, skip_below)
    if main >= 0 and price * cost[0] >= skip_below[0]:
        two_fill(main, start, stop, kind, change_rate, importance, low[0], high, price * cost[0] + surcharge, out)
        return 0.0
    for i in range(start, stop):
        c = at(cost, i)
        if price * c < at(skip_below, i):
            continue
        paid = price * c + surcharge
        out[i] = _rate_within(kind, change_rate, importance, shape, alpha, gamma, kappa, low, high, exponent, i, paid)
    return 0.0


@inline
def _weigh_of(
    only: int,
    start: int,
    stop: int,
    kind: Kinds,
    change_rate: Array,
    importance: Array,
    shape: Array,
    alpha: Array,
    gamma: Array,
    kappa: Array,
    low: Array,
    high: Array,
    exponent: Array,
    price: Array,
    rate: Array,
) -> tuple[float, float, float, float, float]:
    gains, fresh, loss, paid, overshoot = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(start, stop):
        d, m, a = change_rate[i], importance[i], at(shape, i)
        k = only if only >= 0 else kind[i]
        r, p, floor, cap = rate[i], at(price, i), at(low, i), at(high, i)
        earned, share, marginal = page_outcome(k, d, m, a, alpha, gamma, kappa, at(exponent, i), i, p, r)
        # at an optimum the slope lies a rounding above or below the price, by chance: no branch on that
        excess, above = marginal - p, r - floor
        gains += earned
        fresh += share
        paid += p * above if above > 0.0 else 0.0
        loss += max(-excess, 0.0) * above if above > 0.0 else 0.0
        if excess > p * _ROUNDING and r < cap:
            more = _enough(k, d, m, a, alpha, gamma, kappa, i, p, r)
            loss += excess * (min(more, cap) - r)
        else:
            overshoot = max(overshoot, excess / p if r < cap and p > 0.0 else 0.0)
    return gains, fresh, loss, paid, overshoot


@jit
def weigh(
    start: int,
    stop: int,
    kind: Kinds,
    change_rate: Array,
    importance: Array,
    shape: Array,
    alpha: Array,
    gamma: Array,
    kappa: Array,
    low: Array,
    high: Array,
    exponent: Array,
    price: Array,
    rate: Array,
) -> tuple[float, float, float, float, float]:
    """The fields of `Outcome` over some rows."""
    args = (start, stop, kind, change_rate, importance, shape, alpha, gamma, kappa, low, high, exponent, price, rate)
    if kind.size > 1:
        return _weigh_of(-1, *args)
    if kind[0] == RANDOM:
        return _weigh_of(RANDOM, *args)
    if kind[0] == HARMONIC_RANDOM:
        return _weigh_of(HARMONIC_RANDOM, *args)
    return _weigh_of(kind[0], *args)


@jit
def _enough(
    kind: int,
    change_rate: float,
    importance: float,
    shape: float,
    alpha: Array,
    gamma: Array,
    kappa: Array,
    i: int,
    price: float,
    rate: float,
) -> float:
    """A rate above the given one at which the slope is no longer above the price: the best rate lies below it."""
    more = max(2.0 * rate, change_rate * 1e-3)
    for _ in range(200):
        _, _, marginal = page_outcome(kind, change_rate, importance, shape, alpha, gamma, kappa, 0.0, i, price, more)
        if marginal <= price:
            return more
        more *= 2.0
    return math.inf
