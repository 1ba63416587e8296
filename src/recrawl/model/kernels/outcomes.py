"""What a page earns at a crawl rate, whatever its kind: gain, freshness and slope, also with noisy signals."""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit
from recrawl.model.kernels.pages import at
from recrawl.model.kernels.rates import COMPLETE, SIGNALS, STEPS, corner_slope, fresh_share, gain
from recrawl.model.kernels.signal_inverse import interval_inverse
from recrawl.model.kernels.signals import ALL_TERMS, signal_interval, signal_value

Array = NDArray[np.float64]
Kinds = NDArray[np.uint8]


@jit
def _signal_outcome(
    change_rate: float, alpha: float, gamma: float, kappa: float, rate: float, exponent: float, v: float
) -> tuple[float, float]:
    """(freshness, slope) of a noisy-signal page at a rate; the slope nearest to v where the rate is a corner.

    Freshness is e^{−s} + V(s)·rate at the threshold s whose interval is 1/rate: the tangent, also where two thresholds
    are mixed.
    """
    if rate <= 0.0:
        return 0.0, 1.0 / change_rate
    if alpha == 0.0:
        rate = min(rate, gamma)
        exact = gamma / rate
        count = math.floor(exact * (1.0 + 1e-13))
        value = signal_value(alpha, gamma, kappa, change_rate, 0.0, count, ALL_TERMS)
        fresh = math.exp(-count * kappa) + value * rate
        if abs(exact - count) <= 1e-12 * count:
            before = signal_value(alpha, gamma, kappa, change_rate, 0.0, count - 1.0, ALL_TERMS)
            value = min(max(v, before), value)
        return fresh, value
    s = exponent
    if not (0.0 < s < 1e4 and abs(rate * signal_interval(alpha, gamma, kappa, s, 0.0) - 1.0) < 1e-11):
        s = interval_inverse(alpha, gamma, kappa, 1.0 / rate, exponent)
    value = 1.0 / change_rate
    if not math.isinf(s):
        value = signal_value(alpha, gamma, kappa, change_rate, s, 0.0, ALL_TERMS)
    return math.exp(-s) + value * rate, value


@inline
def page_outcome(
    kind: int,
    change_rate: float,
    importance: float,
    shape: float,
    alpha: Array,
    gamma: Array,
    kappa: Array,
    exponent: float,
    i: int,
    price: float,
    rate: float,
) -> tuple[float, float, float]:
    """(gain, freshness, slope) of one page, times its importance."""
    if importance <= 0.0:
        return 0.0, 0.0, 0.0
    if change_rate <= 0.0:  # always fresh; costs are then 0
        return (importance if kind <= STEPS or kind in (COMPLETE, SIGNALS) else 0.0), importance, 0.0
    if kind == SIGNALS:
        v = price / importance
        share, earned = _signal_outcome(change_rate, at(alpha, i), at(gamma, i), at(kappa, i), rate, exponent, v)
        return importance * share, importance * share, importance * earned
    return (
        importance * gain(kind, change_rate, shape, rate),
        importance * fresh_share(kind, change_rate, shape, rate),
        importance * corner_slope(kind, change_rate, shape, rate, price / importance),
    )


@jit
def fill_outcomes(
    what: int,
    kind: Kinds,
    change_rate: Array,
    importance: Array,
    shape: Array,
    alpha: Array,
    gamma: Array,
    kappa: Array,
    rate: Array,
    out: Array,
) -> None:
    """out[i] = gain (what 0), freshness (1) or slope (2) of page i at a rate, times importance."""
    for i in range(out.size):
        d, m, a = at(change_rate, i), at(importance, i), at(shape, i)
        k = kind[i] if kind.size > 1 else kind[0]
        out[i] = page_outcome(k, d, m, a, alpha, gamma, kappa, 0.0, i, m, at(rate, i))[what]
