"""Loops over pages: the crawl value, its slope and its inverse in a page's state, for every objective."""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit
from recrawl.model.kernels.fresh import (
    age_inverse,
    age_value,
    fresh_inverse,
    fresh_value,
    harmonic_inverse,
    harmonic_value,
    posterior_inverse,
    posterior_slope,
    posterior_value,
)
from recrawl.model.kernels.signal_inverse import signal_inverse, signal_offset
from recrawl.model.kernels.signals import (
    _RARE,
    ALL_TERMS,
    _before_and_within,
    signal_count,
    signal_interval,
    signal_slope,
    signal_value,
)

Array = NDArray[np.float64]

FRESHNESS, HARMONIC, AGE = 0, 1, 2


@inline
def at(column: Array, i: int) -> float:
    """Row i of a column that may be one value for all rows."""
    value: float = column[i] if column.size > 1 else column[0]
    return value


@jit
def page_value(
    objective: int,
    change_rate: float,
    shape: float,
    alpha: float,
    gamma: float,
    kappa: float,
    elapsed: float,
    n: float,
    terms: int,
) -> float:
    """Value of crawling one page now, per unit of importance; `n` is the exponent of its signals in units of κ."""
    if change_rate <= 0.0:
        return 0.0
    if objective == FRESHNESS:
        if gamma == 0.0 or kappa == 0.0:
            return posterior_value(change_rate * elapsed, shape) / change_rate
        offset = alpha * elapsed if alpha > 0.0 else 0.0
        return signal_value(alpha, gamma, kappa, change_rate, offset, n, terms)
    x = change_rate * elapsed
    if objective == AGE:
        return age_value(x) / (change_rate * change_rate)
    if gamma > 0.0 and kappa > 0.0:  # complete signals: the count is known
        return n / change_rate
    return harmonic_value(x) / change_rate


@jit
def page_slope(
    objective: int,
    change_rate: float,
    shape: float,
    alpha: float,
    gamma: float,
    kappa: float,
    elapsed: float,
    n: float,
    terms: int,
) -> float:
    """d value / d elapsed, per unit of importance."""
    if change_rate <= 0.0:
        return 0.0
    x = change_rate * elapsed
    if objective == AGE:
        return -x * math.expm1(-x) / change_rate
    signalled = gamma > 0.0 and kappa > 0.0
    if objective == HARMONIC:
        return 0.0 if signalled else -math.expm1(-x)
    if not signalled:
        return posterior_slope(x, shape)
    if alpha == 0.0 or (n > 0.0 and math.isinf(kappa)):
        return 0.0
    if terms >= ALL_TERMS:
        offset = alpha * elapsed
        s = offset if n == 0.0 else offset + n * kappa
        return alpha * math.exp(-s) * signal_interval(alpha, gamma, kappa, offset, n)
    return alpha * signal_slope(alpha, gamma, kappa, alpha * elapsed + n * kappa, terms)


@jit
def page_elapsed(
    objective: int,
    change_rate: float,
    shape: float,
    alpha: float,
    gamma: float,
    kappa: float,
    value: float,
    n: float,
    terms: int,
) -> float:
    """The smallest elapsed time at which the value (per unit of importance) is reached; infinity if never."""
    if value <= 0.0:
        return 0.0
    if change_rate <= 0.0:
        return math.inf
    if objective == AGE:
        return age_inverse(value * change_rate * change_rate) / change_rate
    signalled = gamma > 0.0 and kappa > 0.0
    if objective == HARMONIC:
        if signalled:
            return 0.0 if n >= value * change_rate else math.inf
        return harmonic_inverse(value * change_rate) / change_rate
    if not signalled:
        return posterior_inverse(value * change_rate, shape) / change_rate
    if n > 0.0 and signal_value(alpha, gamma, kappa, change_rate, 0.0, n, terms) >= value:
        return 0.0
    if alpha == 0.0:
        return 0.0 if n >= signal_count(gamma, kappa, change_rate, value, terms) else math.inf
    s = signal_inverse(alpha, gamma, kappa, change_rate, value, terms, 0.0)
    if math.isinf(s):
        return s
    guess = s if n == 0.0 else s - n * kappa
    return signal_offset(alpha, gamma, kappa, change_rate, value, n, terms, guess) / alpha


@jit
def fill_states(
    what: int,
    objective: int,
    change_rate: Array,
    importance: Array,
    shape: Array,
    alpha: Array,
    gamma: Array,
    kappa: Array,
    given: Array,
    n: Array,
    terms: int,
    out: Array,
) -> None:
    """out[i] = value (what 0), slope (1) at elapsed `given`, or elapsed (2) at value `given`."""
    for i in range(out.size):
        mu = at(importance, i)
        d, a = at(change_rate, i), at(shape, i)
        al, ga, ka, count, x = at(alpha, i), at(gamma, i), at(kappa, i), at(n, i), at(given, i)
        if what == 2:
            goal = x / mu if mu > 0.0 else (math.inf if x > 0.0 else 0.0)
            out[i] = page_elapsed(objective, d, a, al, ga, ka, goal, count, terms)
        elif mu == 0.0:
            out[i] = 0.0
        elif what == 0:
            out[i] = mu * page_value(objective, d, a, al, ga, ka, x, count, terms)
        else:
            out[i] = mu * page_slope(objective, d, a, al, ga, ka, x, count, terms)


@jit
def fill_fresh_inverse(share: Array, out: Array) -> None:
    """out[i] = the x with 1 − e^{−x}(1 + x) = share[i]."""
    for i in range(out.size):
        out[i] = fresh_inverse(share[i])


@jit
def fill_intervals(alpha: Array, gamma: Array, kappa: Array, exponent: Array, out: Array) -> None:
    """out[i] = expected time until the staleness exponent reaches `exponent`."""
    for i in range(out.size):
        al, ga, ka, s = at(alpha, i), at(gamma, i), at(kappa, i), at(exponent, i)
        if al == 0.0 and ga > 0.0 and ka > 0.0 and not math.isinf(s):
            count = math.ceil(s / ka * (1.0 - 1e-14)) if not math.isinf(ka) else (1.0 if s > 0.0 else 0.0)
            out[i] = count / ga
        else:
            out[i] = signal_interval(al, ga, ka, s, 0.0)


@jit
def sources_value(alpha: float, gammas: Array, kappas: Array, change_rate: float, s: float, most: int) -> float:
    """V per unit of importance for several sources, exactly: a sum over count vectors i, κ·i < s; −1 if over `most`.

    (1/γ) Σ_i multinomial(|i|; i) ∏ (γ_k/γ)^{i_k} e^{−κ·i} G_{|i|}(s − κ·i); a proof source (κ = ∞) only adds to γ.
    """
    if change_rate <= 0.0 or s <= 0.0:
        return 0.0
    if s > 745.0:
        return 1.0 / change_rate
    gamma: float = gammas.sum()
    if alpha > _RARE * gamma:
        return fresh_value(s) / change_rate
    ratio = alpha / gamma
    log_share = math.log1p(ratio)
    k = gammas.size
    counts = np.zeros(k, np.int64)
    total = 0.0
    visited = 0
    while True:
        used = 0.0
        size = 0
        log_weight = 0.0
        for j in range(k):
            if counts[j]:
                used += counts[j] * kappas[j]
                size += counts[j]
                log_weight += counts[j] * math.log(gammas[j] / gamma) - math.lgamma(counts[j] + 1.0)
        log_weight += math.lgamma(size + 1.0) - used
        if alpha > 0.0:
            x = gamma * ((s - used) / alpha)
            total += math.exp(log_weight) * _before_and_within(size + 1.0, x, ratio, log_share)
        else:
            total += -math.exp(log_weight) * math.expm1(used - s)
        visited += 1
        if visited > most:
            return -1.0
        j = 0
        while j < k:  # the next vector below the plane κ·i = s
            counts[j] += 1
            used = 0.0
            for m in range(k):
                if counts[m]:
                    used += counts[m] * kappas[m]
            if gammas[j] > 0.0 and used < s:
                break
            counts[j] = 0
            j += 1
        if j == k:
            return total / gamma
