"""From a page's posterior to the few components by which the scheduler values it, and what those predict."""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit_lean
from recrawl.engine.beliefs.posterior_kernels import matched_shape
from recrawl.engine.signals.arrays import (
    KAPPA,
    MEAN,
    N_CLASSES,
    PRECISIONS,
    SHAPE,
    WEIGHT,
    SignalArrays,
    any_open,
    counted,
    is_open,
)
from recrawl.engine.signals.posterior import has_signals, posterior
from recrawl.model.kernels.mixture import component_value, gamma_exponent

Array = NDArray[np.float64]

_SUMS = 2  # row of scratch, with two more
_MOST_SHAPE = 1e4
_SUREST = float(PRECISIONS[-1])


@jit_lean
def update_components(b: SignalArrays, row: int, totals: Array, elapsed: float, out: Array) -> None:
    """Compute a page's posterior and its components; `out` (sources, rates, classes) holds the posterior."""
    posterior(b, row, totals, elapsed, out)
    best, most = 0, -1.0
    for k in range(b.rate.shape[1]):
        signalled = -b.rate[row, k] * math.expm1(-b.mean_kappa[row, k])
        if is_open(b, b.host[row], k):
            signalled += 1e9
        if has_signals(b, row, k) and signalled > most:
            best, most = k, signalled
    b.main[row] = best
    components = b.components[row]
    components[:] = 0.0
    weight, mean, log = b.room[_SUMS], b.room[_SUMS + 1], b.room[_SUMS + 2]
    weight[:N_CLASSES] = mean[:N_CLASSES] = log[:N_CLASSES] = 0.0
    for a in range(b.rates.size):
        shares, rate, log_rate = out[best, a], b.rates[a], b.log_rates[a]
        for c in range(N_CLASSES):
            weight[c] += shares[c]
            mean[c] += shares[c] * rate
            log[c] += shares[c] * log_rate
    for c in range(N_CLASSES):
        part = components[b.groups[c]]
        part[WEIGHT], part[MEAN] = part[WEIGHT] + weight[c], part[MEAN] + mean[c]
        part[SHAPE], part[KAPPA] = part[SHAPE] + log[c], part[KAPPA] + weight[c] * PRECISIONS[c]
    for m in range(components.shape[0]):
        w = components[m, WEIGHT]
        if w < 1e-6:
            components[m] = 0.0
            components[m, SHAPE] = 1.0
            continue
        rate = components[m, MEAN] / w
        components[m, SHAPE] = min(matched_shape(math.log(rate) - components[m, SHAPE] / w), _MOST_SHAPE)
        components[m, MEAN] = rate
        components[m, KAPPA] = -math.log1p(-components[m, KAPPA] / w)


@inline
def _signalled(b: SignalArrays, row: int, m: int, k: int) -> tuple[float, float]:
    """(weight of a signal, changes that source k tells per clock time) in component m."""
    kappa = float(b.components[row, m, KAPPA] if b.main[row] == k else b.mean_kappa[row, k])
    return kappa, -float(b.rate[row, k]) * math.expm1(-kappa)


@inline
def credited(kappa: float, credit: float) -> float:
    """The weight of a signal whose precision is multiplied by its credit."""
    return kappa if credit == 1.0 else -math.log1p(-min(-math.expm1(-kappa) * credit, _SUREST))


@inline
def _heard(b: SignalArrays, row: int, m: int, k: int) -> float:
    """What the signals of source k since the copy add to the exponent, in component m.

    The components tell the classes of one source apart; of the others, the chance is a mean over their classes.
    """
    n = counted(b, k, b.heard[row, k])
    credit = b.credit[row, k]
    if n == 0.0 or b.main[row] == k:
        return credited(float(b.components[row, m, KAPPA]), credit) * n
    total, kept = 0.0, 0.0
    for c in range(b.kappas.size):
        total += b.share[row, k, c]
        kept += b.share[row, k, c] * math.exp(-credited(b.kappas[c], credit) * n)
    return -math.log(kept / total) if total > 0.0 else credited(float(b.mean_kappa[row, k]), credit) * n


@jit_lean
def unchanged_chance(b: SignalArrays, row: int, elapsed: float, without: int) -> float:
    """P(unchanged) after a clock time and the signals heard; the changes that source `without` tells as if missed."""
    total = 0.0
    for m in range(b.components.shape[1]):
        c = b.components[row, m]
        if c[WEIGHT] <= 0.0:
            continue
        exponent = gamma_exponent(float(c[MEAN]), float(c[SHAPE]), elapsed)[0]
        for k in range(b.rate.shape[1]):
            exponent += _signalled(b, row, m, k)[1] * elapsed if k == without else _heard(b, row, m, k)
        total += c[WEIGHT] * math.exp(-exponent)
    return total


@jit_lean
def chance_beside(b: SignalArrays, row: int, k: int, elapsed: float) -> tuple[float, float]:
    """P(unchanged) had source k been silent, and by how much a signal of the credit 1 lowers that."""
    silent, taken = 0.0, 0.0
    for m in range(b.components.shape[1]):
        c = b.components[row, m]
        if c[WEIGHT] <= 0.0:
            continue
        exponent = gamma_exponent(float(c[MEAN]), float(c[SHAPE]), elapsed)[0]
        for j in range(b.rate.shape[1]):
            if j != k:
                exponent += _heard(b, row, m, j)
        unchanged = c[WEIGHT] * math.exp(-exponent)
        silent += unchanged
        taken -= unchanged * math.expm1(-_signalled(b, row, m, k)[0])
    return silent, taken


@inline
def open_component(b: SignalArrays, row: int, m: int) -> tuple[float, float, float, float, float, float]:
    """(missed rate, shape, signal rate, matched weight, heard exponent, whether repetitions count) by open sources."""
    c = b.components[row, m]
    missed, rate, signalled, heard, repeated = 0.0, 0.0, 0.0, 0.0, 1.0
    for k in range(b.rate.shape[1]):
        true = _signalled(b, row, m, k)[1]
        if true <= 0.0:
            continue
        if is_open(b, b.host[row], k):
            rate += float(b.rate[row, k])
            signalled += true
            heard += _heard(b, row, m, k)
            repeated = min(repeated, b.repeats[k])
        else:
            missed += true
    mean = float(c[MEAN]) + missed
    shape = float(c[SHAPE]) * (mean / float(c[MEAN])) ** 2
    return mean, shape, rate, -math.log1p(-min(signalled / rate, 0.99999)) if signalled > 0.0 else 0.0, heard, repeated


@jit_lean
def mixture_value(b: SignalArrays, row: int, elapsed: float) -> float:
    """Crawl value per unit of importance; negative where no open source has signalled: the page's own value holds."""
    if not any_open(b, row):
        return -1.0
    total = 0.0
    for m in range(b.components.shape[1]):
        weight = b.components[row, m, WEIGHT]
        if weight > 0.0:
            mean, shape, rate, kappa, heard, repeated = open_component(b, row, m)
            total += weight * component_value(mean, shape, rate, kappa, elapsed, heard, repeated > 0.0)
    return total


@inline
def change_rate_moments(b: SignalArrays, row: int) -> tuple[float, float]:
    """Mean and variance of the change rate."""
    first = second = 0.0
    for m in range(b.components.shape[1]):
        c = b.components[row, m]
        d = float(c[MEAN])
        for k in range(b.rate.shape[1]):
            d += _signalled(b, row, m, k)[1]
        first += c[WEIGHT] * d
        second += c[WEIGHT] * (d * d + c[MEAN] * c[MEAN] / c[SHAPE])
    return first, max(second - first * first, 0.0)


@jit_lean
def fill_qualities(b: SignalArrays, row: int, recall: Array, false_rate: Array) -> float:
    """Share of the changes that each source with an open gate tells, and its signals without a change per time.

    The mean change rate.
    """
    mean = change_rate_moments(b, row)[0]
    for k in range(b.rate.shape[1]):
        recall[k] = false_rate[k] = 0.0
        if b.rate[row, k] > 0.0 and is_open(b, b.host[row], k):
            true = 0.0
            for m in range(b.components.shape[1]):
                true += float(b.components[row, m, WEIGHT]) * _signalled(b, row, m, k)[1]
            recall[k] = min(true / mean, 1.0)
            false_rate[k] = max(float(b.rate[row, k]) - true, 0.0)
    return mean
