"""Likelihood intervals of change rates: where the censored log likelihood has fallen by a given amount."""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit
from recrawl.estimate.rates.kernels import add_pseudo, gather, longest_log

Array = NDArray[np.float64]

OPEN_END = 1.7976931348623157e308  # stands for "no upper bound" so that columns stay finite


@inline
def log_likelihood(t: Array, w: Array, n: int, unchanged: float, rate: float) -> tuple[float, float]:
    """Censored log likelihood at a rate, and its slope over ln rate."""
    value = -unchanged * rate
    slope = -unchanged * rate
    for i in range(n):
        x = rate * t[i]
        value += w[i] * math.log(-math.expm1(-x))
        slope += w[i] * x / math.expm1(min(x, 700.0))
    return value, slope


@inline
def likelihood_end(t: Array, w: Array, n: int, unchanged: float, start: float, level: float, side: float) -> float:
    """Where the likelihood falls to ``level`` on one side: steps out, then Newton, which cannot overshoot a concave
    curve."""
    u, step = math.log(start), 0.5
    for _ in range(1500):
        u += side * step
        step *= 1.5
        value, slope = log_likelihood(t, w, n, unchanged, math.exp(u))
        if value < level or abs(u) > 690.0:
            break
    for _ in range(100):
        moved = u - (value - level) / slope
        if abs(moved - u) <= 1e-13 * max(1.0, abs(u)):
            break
        u = moved
        value, slope = log_likelihood(t, w, n, unchanged, math.exp(u))
    return math.exp(u)


@jit
def likelihood_intervals(
    offset: NDArray[np.int64],
    interval: Array,
    changed: NDArray[np.bool_],
    unit: float,
    pseudo_t: Array,
    pseudo_w: Array,
    pseudo_unchanged: float,
    rate: Array,
    drop: float,
    low: Array,
    high: Array,
    information: Array,
) -> None:
    """Where the log likelihood has fallen by ``drop`` below its top, and rate²·(expected information) per page."""
    longest = longest_log(offset, len(rate), len(pseudo_t) + 8)
    t, w = np.empty(longest), np.empty(longest)
    for page in range(len(rate)):
        start, stop = offset[page], offset[page + 1]
        n, unchanged = gather(interval, changed, start, stop, unit, t, w)
        n = add_pseudo(t, w, n, pseudo_t, pseudo_w)
        unchanged += pseudo_unchanged
        low[page], high[page] = page_interval(t, w, n, unchanged, rate[page], drop)
        total = 0.0
        for i in range(start, stop):
            x = rate[page] * interval[i]
            total += x * (x / math.expm1(min(x, 700.0)) if x > 0.0 else 1.0)
        information[page] = total


@inline
def page_interval(t: Array, w: Array, n: int, unchanged: float, rate: float, drop: float) -> tuple[float, float]:
    if n == 0:
        return 0.0, (drop / unchanged if unchanged > 0.0 else OPEN_END)
    if unchanged <= 0.0:
        return likelihood_end(t, w, n, unchanged, rate, -drop, -1.0), OPEN_END
    top, _ = log_likelihood(t, w, n, unchanged, rate)
    below = likelihood_end(t, w, n, unchanged, rate, top - drop, -1.0)
    return below, likelihood_end(t, w, n, unchanged, rate, top - drop, 1.0)
