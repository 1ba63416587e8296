"""How probable it is that a copy is stale, and for how long: formulas of freshness and of the staleness ledger."""

import math

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from recrawl._jit import inline, jit, jit_lean
from recrawl.engine.beliefs.arrays import Belief
from recrawl.engine.calibration import Calibration, calibrated_chance
from recrawl.schedule.exact.access_kernels import (
    Header,
    State,
    clock_between,
    fetched_at,
    importance_of,
    opened,
)

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_NODES, _WEIGHTS = (0.5 * part + shift for part, shift in zip(leggauss(8), (0.5, 0.0), strict=True))  # from 0 to 1


@inline
def _doubt(s: State, b: Belief, own: Array, i: int, begin: float, at: float) -> float:
    """−ln P(fresh) of a copy fetched at `begin`, at a later time, given all that is known now.

    `own` is the gamma (shape, rate) of the page's missed rate.
    """
    exponent = own[0] * math.log1p(clock_between(s, i, begin, at) / own[1])
    for k in range(b.heard.shape[1]):
        if b.heard_at[i, 0] <= at:
            exponent += b.heard[i, k] * b.gamma[i, 1 + k, 0] / b.gamma[i, 1 + k, 1]
    return float(exponent)


@jit_lean
def stale_time(s: State, b: Belief, c: Calibration, i: int, begin: float, end: float, calibrated: bool) -> float:
    """∫ P(stale) dt of a copy, by calibrated or by computed probabilities.

    Gauss-Legendre from the fetch to the first signal and from there to the end, with more nodes where each begins.
    """
    heard = begin
    if b.heard_at.shape[1] > 0:
        heard = min(max(b.heard_at[i, 0], begin), end)
    total = 0.0
    for part in range(2):
        first, last = (begin, heard) if part == 0 else (heard, end)
        for k in range(_NODES.size if last > first else 0):
            at = first + (last - first) * _NODES[k] ** 2
            chance = -math.expm1(-_doubt(s, b, b.gamma[i, 0], i, begin, at))
            total += (
                2.0
                * _NODES[k]
                * _WEIGHTS[k]
                * (last - first)
                * (calibrated_chance(c, chance) if calibrated else chance)
            )
    return total


@inline
def stale_when_found(s: State, b: Belief, c: Calibration, i: int, begin: float, end: float) -> float:
    """Expected stale time given that the crawl at the end found a change; half of it where that was improbable."""
    chance = -math.expm1(-_doubt(s, b, b.gamma[i, 0], i, begin, end))
    return stale_time(s, b, c, i, begin, end, False) / chance if chance > 1e-9 else 0.5 * (end - begin)


@jit
def open_time(header: Header, b: Belief, c: Calibration, ids: Ids, begin: Array, end: Array) -> tuple[float, float]:
    """(importance × time of copies, stale of that) where no crawl has judged them yet."""
    s = opened(header)
    time = stale = 0.0
    for j in range(ids.size):
        i = ids[j]
        if b.counted[i] and end[j] > begin[j]:
            time += importance_of(s, i) * (end[j] - begin[j])
            stale += importance_of(s, i) * stale_time(s, b, c, i, begin[j], end[j], True)
    return time, stale


@jit
def fill_doubted_at(header: Header, b: Belief, ids: Ids, now: float, exponent: float, out: Array) -> None:
    """The earliest time from now on at which −ln P(fresh) of each copy is at least the exponent; infinity: never.

    The doubt grows with time. Bisection starts from the time at which the page's own gamma (a, b) alone reaches it,
    b·(e^{exponent/a} − 1).
    """
    s = opened(header)
    for j in range(ids.size):
        i = ids[j]
        begin, own = fetched_at(s, i), b.gamma[i, 0]
        low = max(now, begin)
        if _doubt(s, b, own, i, begin, low) >= exponent:
            out[j] = low
            continue
        step = max(own[1] * math.expm1(min(exponent / own[0], 600.0)), low - begin, 1e-300)
        while step < math.inf and _doubt(s, b, own, i, begin, begin + step) < exponent:
            step *= 2.0 if step < 1e200 else math.inf
        high = begin + step
        while high < math.inf:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            if _doubt(s, b, own, i, begin, middle) >= exponent:
                high = middle
            else:
                low = middle
        out[j] = high


@jit
def fill_fresh(header: Header, b: Belief, ids: Ids, own: Array, now: float, out: Array) -> None:
    """The probability that each page's copy is fresh; `own` has the gamma (shape, rate) of each missed rate."""
    s = opened(header)
    for j in range(ids.size):
        begin = fetched_at(s, ids[j])
        end = max(now, begin)
        out[j] = math.exp(-_doubt(s, b, own[j], ids[j], begin, end))
