"""Crawl value of a page whose parameters are known only as a mixture of a few components.

A component is a missed rate with a gamma belief (mean α, shape), and a weight κ of a signal; signals come at rate γ.
The crawl value of the page is the mean over the components. Where repeated signals since the copy count in full, a
component's value is that of `pair.value_and_interval`. Where only the first signal counts, ψ has a closed form:
ψ(u) = (1 − e^{−bu})/γ up to u = κ, then (u − κ)/α + e^{−b(u − κ)} (1 − e^{−bκ})/γ, with b = γ/α.

The value grows with time. The exponent s does, and the constant rate α that stands for the gamma falls: it is the mean
of a hazard that falls. At a fixed s, V = ∫₀^s e^{−u} ψ(u) du grows as α falls, by at most the share by which α falls.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit, jit_lean
from recrawl.model.kernels.fresh import fresh_value, posterior_parts
from recrawl.model.kernels.pair import value_and_interval
from recrawl.model.kernels.signals import ALL_TERMS

Array = NDArray[np.float64]

FIELDS = 7  # of a component: weight, mean, shape, signal rate, signal weight, heard, repeated
SOON = 0.05  # for how long a slope is known: of the elapsed time
_STEEPER = 1.25  # by how much at most the parts of a slope grow in that time
_FOREVER = 1e12  # a time after which no value grows any more
_PROBES, _NEAR, _AIM = 8, 0.15, 0.05  # times that are tried; of the way to a goal: what may be left, what is aimed at


@inline
def _both_before(s: float, b: float) -> float:
    """∫₀^s e^{−u} (1 − e^{−bu}) du, by its series where the difference would cancel."""
    if s * (1.0 + b) < 1e-3:
        return b * s * s * (0.5 - s * (2.0 + b) / 6.0 + s * s * (3.0 + 3.0 * b + b * b) / 24.0)
    return math.expm1(-(1.0 + b) * s) / (1.0 + b) - math.expm1(-s)


@jit
def first_signal_value(alpha: float, gamma: float, kappa: float, s: float) -> float:
    """V at the exponent s per unit of importance where the first signal since the copy weighs κ and others nothing."""
    b = gamma / alpha
    if b < 1e-9:
        return fresh_value(s) / alpha
    below = min(s, kappa)
    value = _both_before(below, b) / gamma
    if s > kappa:
        above = s - kappa
        heard = -math.expm1(-b * kappa) / gamma
        value += math.exp(-kappa) * (fresh_value(above) / alpha - heard * math.expm1(-(1.0 + b) * above) / (1.0 + b))
    return value


@inline
def gamma_exponent(mean: float, shape: float, elapsed: float) -> tuple[float, float]:
    """(exponent −ln E e^{−rate·elapsed}, the constant rate of the same value at that exponent) of a gamma belief."""
    x = mean * elapsed
    if math.isinf(shape):
        return x, mean
    if x < 1e-6 * min(shape, 1.0):
        return x * (1.0 - 0.5 * x / shape), mean * (1.0 - x / (3.0 * shape))
    exponent, even, value = posterior_parts(x, shape)
    return exponent, mean * even / value


@jit
def component_value(
    mean: float, shape: float, gamma: float, kappa: float, elapsed: float, heard: float, repeated: bool
) -> float:
    """V per unit of importance of one component; `heard` is what the signals since the copy add to the exponent."""
    exponent, rate = gamma_exponent(mean, shape, elapsed)
    s = exponent + heard
    if s <= 0.0:
        return 0.0
    if gamma <= 0.0 or kappa <= 0.0:
        return fresh_value(s) / rate
    if repeated:
        return value_and_interval(rate, gamma, kappa, rate - gamma * math.expm1(-kappa), s, 0.0, ALL_TERMS)[0]
    return first_signal_value(rate, gamma, kappa, s)


@jit_lean
def components_value(components: Array, elapsed: float) -> float:
    """V per unit of importance of rows (weight, mean, shape, signal rate, signal weight, heard, repeated)."""
    total = 0.0
    for m in range(components.shape[0]):
        c = components[m]
        if c[0] > 0.0:
            total += c[0] * component_value(c[1], c[2], c[3], c[4], elapsed, c[5], c[6] > 0.0)
    return total


@jit_lean
def components_doubt(components: Array, elapsed: float, heard: bool) -> float:
    """−ln P(fresh) at a time since the copy, with or without what the signals since then say."""
    fresh, total = 0.0, 0.0
    for m in range(components.shape[0]):
        c = components[m]
        if c[0] > 0.0:
            exponent = gamma_exponent(c[1], c[2], elapsed)[0] + (c[5] if heard else 0.0)
            fresh += c[0] * math.exp(-exponent)
            total += c[0]
    return -math.log(max(fresh / total, 1e-300))


@inline
def _first_signal_interval(alpha: float, gamma: float, kappa: float, s: float) -> float:
    """ψ(s) where the first signal since the copy weighs κ and others nothing."""
    b = gamma / alpha
    if b < 1e-9:
        return s / alpha
    if s <= kappa:
        return -math.expm1(-b * s) / gamma
    return (s - kappa) / alpha - math.exp(-b * (s - kappa)) * math.expm1(-b * kappa) / gamma


@jit
def component_growth(
    mean: float, shape: float, gamma: float, kappa: float, elapsed: float, heard: float, repeated: bool
) -> tuple[float, float]:
    """(V, at most dV/dt until the elapsed time has grown by the share SOON) of one component.

    dV/dt is e^{−s} s′ ψ(s), and at most V·(−α′/α) for the fall of α. ψ grows by at most the time that passes.
    """
    exponent, rate = gamma_exponent(mean, shape, elapsed)
    s = exponent + heard
    if s <= 0.0:
        return 0.0, 0.0
    if gamma <= 0.0 or kappa <= 0.0:
        value, interval = fresh_value(s) / rate, s / rate
    elif repeated:
        value, interval = value_and_interval(rate, gamma, kappa, rate - gamma * math.expm1(-kappa), s, 0.0, ALL_TERMS)
    else:
        value, interval = first_signal_value(rate, gamma, kappa, s), _first_signal_interval(rate, gamma, kappa, s)
    room = SOON * elapsed
    hazard = mean if math.isinf(shape) else mean / (1.0 + mean * elapsed / shape)
    slope = _STEEPER * (interval + room) * hazard * math.exp(-min(s, 700.0))
    if math.isinf(shape):
        return value, slope
    fall = mean / (3.0 * shape)
    if mean * elapsed > 0.01 * min(shape, 1.0):
        fall = min(fall, hazard * math.exp(-exponent) * max(rate * elapsed - exponent, 0.0) / fresh_value(exponent))
    return value, slope + _STEEPER * (value + room * slope) * fall


@jit_lean
def components_growth(components: Array, elapsed: float) -> tuple[float, float]:
    """(V, at most dV/dt until the elapsed time has grown by the share SOON), both per unit of importance."""
    total, slope = 0.0, 0.0
    for m in range(components.shape[0]):
        c = components[m]
        if c[0] > 0.0:
            value, lift = component_growth(c[1], c[2], c[3], c[4], elapsed, c[5], c[6] > 0.0)
            total += c[0] * value
            slope += c[0] * lift
    return total, slope


@inline
def _means(components: Array) -> tuple[float, float, float]:
    """(mean missed rate, mean of what was heard, what V never exceeds): weighted sums over the components."""
    rate, heard, most = 0.0, 0.0, 0.0
    for m in range(components.shape[0]):
        weight, mean, shape = components[m, 0], components[m, 1], components[m, 2]
        if weight > 0.0:
            rate += weight * mean
            heard += weight * components[m, 5]
            excess = 1.0 if math.isinf(shape) else (shape / (shape - 1.0) if shape > 1.0 else math.inf)
            most += weight * excess / mean
    return rate, heard, most


@jit_lean
def components_elapsed(components: Array, elapsed: float, known: float, goal: float) -> float:
    """A time, at least `elapsed`, up to which the value stays below the goal without a further signal; never too late.

    `known` is the value at `elapsed`; negative: not known. The value grows with time, so that every time at which it is
    below the goal will do. Some are tried, by straight lines through the logarithms of value and time. Where nothing
    was heard, V ≤ rate·t²/2. Infinity where the goal is never reached.
    """
    rate, heard, most = _means(components)
    if not goal <= most * (1.0 + 1e-9):
        return math.inf
    least = math.sqrt(2.0 * goal / rate) * (1.0 - 1e-9)
    low, below, shift = elapsed, known, heard / rate
    if heard == 0.0 and least > elapsed:
        low, below = least, components_value(components, least)
    elif known < 0.0:
        below = components_value(components, elapsed)
    way = goal - (known if known >= 0.0 else 0.0 if low > elapsed else below)
    near, aimed = goal - _NEAR * way, goal - _AIM * way
    high, above, power = math.inf, math.inf, 2.0
    for _ in range(_PROBES):
        if below >= near:
            break
        begin = low + shift
        aim = math.log(aimed / below) if below > 0.0 else 50.0
        if math.isinf(high):
            middle = begin * math.exp(min(aim / power, 7.0)) - shift
        else:
            share = min(max(aim / math.log(above / below), 0.1), 0.9) if below > 0.0 else 0.5
            middle = begin * math.exp(share * math.log((high + shift) / begin)) - shift
        if not low < middle < high:
            break
        value = components_value(components, middle)
        if value >= goal:
            high, above = middle, value
            continue
        if below > 0.0 and value > below:
            power = min(max(math.log(value / below) / math.log((middle + shift) / begin), 0.1), 2.0)
        low, below = middle, value
    if math.isinf(high) and below < near and components_value(components, _FOREVER) < goal:
        return math.inf
    return max(low, elapsed) if below < goal else elapsed
