"""Scalar kernels of a crawl rate: what a rate earns, what a little more of it would earn, and the inverse of that.

`kind` says which objective, spacing and kind of signals a page has. All figures are per unit of importance, for a page
with change_rate > 0. `gain` is what a solver maximises: freshness, or minus the cost; `slope` is its derivative, which
falls as the rate grows; `rate_at` is the rate at which the slope is v.
"""

import math

from recrawl._compile.jit import inline, jit
from recrawl.model.kernels.fresh import (
    age_inverse,
    age_value,
    even_freshness,
    harmonic_inverse,
    harmonic_value,
    posterior_freshness,
    posterior_inverse,
    posterior_value,
    third_order,
)

EVEN = 0  # freshness, crawls evenly spaced
RANDOM = 1  # freshness, crawls at random (Poisson) times
STEPS = 2  # freshness in time steps, crawled with a probability per step
HARMONIC_EVEN = 3
HARMONIC_RANDOM = 4
AGE_EVEN = 5
AGE_RANDOM = 6
COMPLETE = 7  # every change signalled, no false signals: crawl each with probability p, rate = p·change_rate
COMPLETE_HARMONIC = 8  # the same for the harmonic penalty
COMPLETE_HARMONIC_EVEN = 9  # crawl at every n-th signal
SIGNALS = 10  # noisy signals: a threshold on the staleness exponent (`_signal_kernels`)

_EULER = 0.5772156649015329


@inline
def fresh_share(kind: int, change_rate: float, shape: float, rate: float) -> float:
    """Share of time the copy is fresh at a crawl rate."""
    if kind >= COMPLETE:  # also at every n-th signal: fresh for one gap of n
        return min(rate / change_rate, 1.0)
    if rate <= 0.0:
        return 0.0
    if kind == EVEN:
        return posterior_freshness(change_rate / rate, shape)
    if kind == STEPS:
        return rate / (rate + change_rate * (1.0 - rate))
    if kind in (HARMONIC_EVEN, AGE_EVEN):
        return even_freshness(change_rate / rate)
    return rate / (rate + change_rate)


@inline
def gain(kind: int, change_rate: float, shape: float, rate: float) -> float:
    """Freshness, or minus the mean harmonic penalty, or minus the mean age (in time units)."""
    if kind <= STEPS or kind == COMPLETE:
        return fresh_share(kind, change_rate, shape, rate)
    return _minus_cost(kind, change_rate, rate)


@inline
def _minus_cost(kind: int, change_rate: float, rate: float) -> float:
    if rate <= 0.0:
        return -math.inf
    x = change_rate / rate
    if kind == HARMONIC_RANDOM:
        return -math.log1p(x)
    if kind == HARMONIC_EVEN:
        return -_mean_harmonic(x)
    if kind == AGE_RANDOM:
        return -x / (rate + change_rate)
    if kind == AGE_EVEN:
        # (1/x) ∫₀ˣ (u − 1 + e^{−u}) du / Δ = (x²/2 − (x − 1 + e^{−x})) / (xΔ)
        return -third_order(x) / (x * change_rate)
    if kind == COMPLETE_HARMONIC:
        return math.log(min(rate / change_rate, 1.0))
    n = max(math.floor(x), 1.0)
    return -(_harmonic_number(n) - 1.0 + max(1.0 / n - rate / change_rate, 0.0) * n)


@jit
def _mean_harmonic(x: float) -> float:
    """(1/x) ∫₀ˣ E[H(N_u)] du for Poisson counts: Ein(x) − 1 + (1 − e^{−x})/x, Ein(x) = ∫₀ˣ (1 − e^{−u})/u du.

    Up to 40 as the positive series e^{−x} Σ_n x^n/n! (H_n − n/(n+1)); above, Ein(x) = log x + 0.5772….
    """
    if x > 40.0:
        return math.log(x) + _EULER - 1.0 + 1.0 / x
    term = math.exp(-x)
    number = 0.0
    total = 0.0
    n = 0
    while True:
        n += 1
        term *= x / n
        number += 1.0 / n
        part = term * (number - n / (n + 1.0))
        total += part
        if n > x and part <= 1e-17 * total:
            return total


@inline
def _harmonic_number(n: float) -> float:
    if n < 30.0:
        total = 0.0
        for k in range(1, int(n) + 1):
            total += 1.0 / k
        return total
    square = 1.0 / (n * n)
    return math.log(n) + _EULER + 0.5 / n - square * (1 / 12 - square * (1 / 120 - square / 252))


@inline
def slope(kind: int, change_rate: float, shape: float, rate: float) -> float:
    """d gain / d rate: what the next crawl per time earns; at rate 0 from above, at a page's cap from below."""
    if kind >= COMPLETE and rate > change_rate * (1.0 + 1e-12):
        return 0.0  # every signalled change is crawled already
    if kind == RANDOM:
        total = rate + change_rate
        return change_rate / (total * total)
    if kind == STEPS:
        total = rate + change_rate * (1.0 - rate)
        return change_rate / (total * total)
    if kind == COMPLETE:
        return 1.0 / change_rate
    if kind == EVEN:
        return posterior_value(change_rate / rate if rate > 0.0 else math.inf, shape) / change_rate
    return _cost_slope(kind, change_rate, rate)


@inline
def _cost_slope(kind: int, change_rate: float, rate: float) -> float:
    if rate <= 0.0:
        return math.inf
    x = change_rate / rate
    if kind == HARMONIC_RANDOM:
        return x / (rate + change_rate)
    if kind == HARMONIC_EVEN:
        return harmonic_value(x) / change_rate
    if kind == AGE_RANDOM:
        total = rate + change_rate
        return x * (rate + total) / (rate * total * total)
    if kind == AGE_EVEN:
        return age_value(x) / (change_rate * change_rate)
    if kind == COMPLETE_HARMONIC:
        return 1.0 / rate
    return max(math.floor(x), 1.0) / change_rate


@inline
def corner_slope(kind: int, change_rate: float, shape: float, rate: float, v: float) -> float:
    """The slope at a rate; where it jumps there (a crawl at every n-th signal exactly), the one nearest to v."""
    if kind == COMPLETE_HARMONIC_EVEN and rate > 0.0:
        exact = change_rate / rate
        n = math.floor(exact * (1.0 + 1e-13))
        if abs(exact - n) <= 1e-12 * n:
            return min(max(v, (n - 1.0) / change_rate), n / change_rate)
    return slope(kind, change_rate, shape, rate)


@inline
def rate_at(kind: int, change_rate: float, shape: float, v: float) -> float:
    """The rate whose slope is v (the largest such rate where several have it); 0 where no rate earns v."""
    if kind == RANDOM:
        return max(math.sqrt(change_rate / v) - change_rate, 0.0)
    if kind == HARMONIC_RANDOM:
        return 2.0 / (v * (1.0 + math.sqrt(1.0 + 4.0 / (v * change_rate))))
    if kind == COMPLETE:
        return change_rate if v * change_rate <= 1.0 else 0.0
    if kind == COMPLETE_HARMONIC:
        return min(change_rate, 1.0 / v)
    if kind == EVEN:
        return change_rate / posterior_inverse(v * change_rate, shape)
    if kind == STEPS:
        if change_rate >= 1.0:
            return 1.0 if v <= 1.0 else 0.0
        return min(max((math.sqrt(change_rate / v) - change_rate) / (1.0 - change_rate), 0.0), 1.0)
    return _rate_at_other(kind, change_rate, v)


@jit
def _rate_at_other(kind: int, change_rate: float, v: float) -> float:
    if kind == HARMONIC_EVEN:
        return change_rate / harmonic_inverse(v * change_rate)
    if kind == AGE_EVEN:
        return change_rate / age_inverse(v * change_rate * change_rate)
    if kind == AGE_RANDOM:
        return change_rate * _age_random_inverse(v * change_rate * change_rate)
    return change_rate / max(math.ceil(v * change_rate * (1.0 - 1e-15)), 1.0)


@jit
def _age_random_inverse(y: float) -> float:
    """The z with 1/z² − 1/(1 + z)² = y, by Newton on the logarithms."""
    z = 1.0 / math.sqrt(y) if y > 1.0 else (2.0 / y) ** (1 / 3)
    goal = math.log(y)
    for _ in range(60):
        error = math.log1p(2.0 * z) - 2.0 * (math.log(z) + math.log1p(z)) - goal
        step = error / (2.0 * z / (2.0 * z + 1.0) - 2.0 - 2.0 * z / (1.0 + z))
        z *= math.exp(-step)
        if abs(step) <= 1e-15:
            break
    return z
