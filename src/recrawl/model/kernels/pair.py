"""The noisy-signal value together with a bound on the interval, in the fewest steps: what a scheduler asks for.

With the terms of `_signal_kernels`, γψ = Σ_i P(i+1, x_i), by parts γV = Σ_i e^{−iκ} g^{i+1} P(i+1, y_i) − e^{−s}γψ;
g = γ/(α + γ) and y_i = x_i/g. For small i, P is one minus a short sum. That takes one exponential per term, but
the difference loses the digits by which its parts exceed it; where it would lose many, the slower sums are asked.
The limit of V at which ψ counts as linear comes earlier than that of ψ: in V its error is weighed by e^{−s}.
"""

import math

from recrawl._compile.jit import inline, jit
from recrawl.model.kernels.fresh import reciprocal
from recrawl.model.kernels.signals import (
    ALL_TERMS,
    _linear_value,
    linear_interval,
    signal_interval,
    signal_slope,
    signal_value,
)

_FEW = 64.0
_RARE = 1e4  # where signals are rarer than this, beside missed changes, the short sums lose digits
_STEP = 0.15  # of the exponent: a smaller step of one signal leaves the bound on ψ a near one
_LEFT = 0.05  # the share of the parts that must be left


@inline
def _decay(alpha: float, gamma: float, kappa: float, count: float) -> float:
    """How far, as an exponent, ψ has come to its linear form after as many times κ."""
    ratio = alpha / (gamma * kappa)
    return count * 19.739 * ratio * ratio / (1.0 + 2.7 * ratio) ** 2


@inline
def _is_linear(decay: float, s: float) -> bool:
    return decay + min(s, 30.0) > 38.0 and s > 1.0


@inline
def _is_ordinary(alpha: float, gamma: float, kappa: float, change_rate: float, terms: int) -> bool:
    return terms >= ALL_TERMS and 1e-9 * gamma < alpha < 1e9 * gamma and 0.0 < kappa < math.inf and change_rate > 0.0


@inline
def _sums(alpha: float, gamma: float, kappa: float, offset: float, n: float, decay: float) -> tuple[float, float]:
    """(V, ψ) by short sums; a negative V where they are long, or lose too many digits."""
    count = n + offset / kappa
    if 0.0 < count < _FEW and decay < 36.0 and alpha < _RARE * gamma:
        return _short_sums(alpha, gamma, kappa, offset, n, int(count))
    return -1.0, 0.0


@jit
def value_and_interval(
    alpha: float, gamma: float, kappa: float, change_rate: float, offset: float, n: float, terms: int
) -> tuple[float, float]:
    """(V per unit of importance, ψ or a little more) at the exponent offset + n·κ."""
    if _is_ordinary(alpha, gamma, kappa, change_rate, terms):
        s = offset + n * kappa
        decay = _decay(alpha, gamma, kappa, n + offset / kappa)
        if _is_linear(decay, s):
            value = _linear_value(alpha, gamma, kappa, change_rate, s)
            if kappa < _STEP * s:
                return value, (s + kappa) / (alpha + gamma * kappa)
            return value, signal_interval(alpha, gamma, kappa, offset, n)
        value, interval = _sums(alpha, gamma, kappa, offset, n, decay)
        if value >= 0.0:
            return min(value, 1.0 / change_rate), interval
    value = signal_value(alpha, gamma, kappa, change_rate, offset, n, terms)
    return value, signal_interval(alpha, gamma, kappa, offset, n)


@jit
def value_and_slope(
    alpha: float, gamma: float, kappa: float, change_rate: float, s: float, terms: int
) -> tuple[float, float, float]:
    """(V per unit of importance at the exponent s, dV/ds, relative error of that at most)."""
    if _is_ordinary(alpha, gamma, kappa, change_rate, terms):
        decay = _decay(alpha, gamma, kappa, s / kappa)
        if _is_linear(decay, s):
            interval = linear_interval(alpha, gamma, kappa, s)
            return _linear_value(alpha, gamma, kappa, change_rate, s), math.exp(-s) * interval, math.exp(-decay)
        value, interval = _sums(alpha, gamma, kappa, s, 0.0, decay)
        if value >= 0.0:
            return min(value, 1.0 / change_rate), math.exp(-s) * interval, 0.0
    value = signal_value(alpha, gamma, kappa, change_rate, s, 0.0, terms)
    return value, signal_slope(alpha, gamma, kappa, s, terms), 0.0


@jit
def _short_sums(alpha: float, gamma: float, kappa: float, offset: float, n: float, last: int) -> tuple[float, float]:
    """(V, ψ) from the terms 0 … last; a negative V where too many digits are lost."""
    share = gamma / (alpha + gamma)
    discount = math.exp(-kappa)
    fresh = math.exp(-(offset + n * kappa))
    weight, within = share, fresh  # e^{−iκ} g^{i+1} and e^{−(s − iκ)}
    total = passed = parts = 0.0
    for i in range(last + 1):
        exponent = offset + (n - i) * kappa
        x = exponent * (gamma / alpha)
        parts += weight
        if x > i + 41.0 + 9.0 * math.sqrt(i + 1.0):  # P(i+1, x) is 1
            total += weight
            passed += 1.0
        else:
            y = x + exponent
            term_x = below_x = math.exp(-x)
            term_y = below_y = below_x * within
            for j in range(1, i + 1):
                r = reciprocal(j)
                term_x *= x * r
                term_y *= y * r
                below_x += term_x
                below_y += term_y
            total += weight * (1.0 - below_y)
            passed += 1.0 - below_x
        weight *= share * discount
        within /= discount
    total -= fresh * passed
    return (total / gamma if total > _LEFT * parts else -1.0), passed / gamma
