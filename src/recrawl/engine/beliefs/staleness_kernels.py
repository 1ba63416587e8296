"""How probable it is that a copy is stale, and for how long: formulas of freshness and of the staleness ledger."""

import math

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit, jit_lean
from recrawl.engine.beliefs.arrays import Belief
from recrawl.engine.outcomes.calibration import Calibration, calibrated_chance, computed_chance
from recrawl.engine.signals.arrays import row_of
from recrawl.model.kernels.elementary import exp_all, log_all
from recrawl.schedule.exact.access_kernels import (
    Header,
    State,
    clock_between,
    components_doubt,
    fetched_at,
    has_components,
    importance_of,
    opened,
    page_clock_from,
    page_reading,
)

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_CLEAR = 1e-4  # chances that can be had as a difference from 1: those of shorter times are a part of them
_NODES, _WEIGHTS = (0.5 * part + shift for part, shift in zip(leggauss(8), (0.5, 0.0), strict=True))  # from 0 to 1
_MORE, _MORE_WEIGHTS = (0.5 * part + shift for part, shift in zip(leggauss(16), (0.5, 0.0), strict=True))


@inline
def _heard_at(b: Belief, i: int) -> float:
    """When the first signal since the copy came; infinity: none did."""
    row = row_of(b.signals, i)
    return float(b.signals.heard_at[row]) if row >= 0 else math.inf


@inline
def own_doubt(s: State, b: Belief, i: int, time: float) -> float:
    """−ln P(fresh) after a clock time without a signal."""
    if has_components(s, i):
        return components_doubt(s, i, time, False)
    return float(b.gamma[i, 0] * math.log1p(time / b.gamma[i, 1]))


@inline
def doubts(s: State, b: Belief, i: int, begin: float, at: float) -> tuple[float, float, float]:
    """(clock time, −ln P(fresh), the same without signals) of a copy fetched at `begin`, by what is known now."""
    return _doubts_after(s, b, i, clock_between(s, i, begin, at), at)


@inline
def _doubts_after(s: State, b: Belief, i: int, time: float, at: float) -> tuple[float, float, float]:
    """The same where the clock time is known."""
    missed = own_doubt(s, b, i, time)
    if has_components(s, i) and _heard_at(b, i) <= at:
        return time, components_doubt(s, i, time, True), missed
    return time, missed, missed


@inline
def _doubt(s: State, b: Belief, i: int, begin: float, at: float) -> float:
    """−ln P(fresh) of a copy fetched at `begin`, at a later time, given all that is known now."""
    return doubts(s, b, i, begin, at)[1]


@jit_lean
def stale_time(s: State, b: Belief, c: Calibration, i: int, begin: float, end: float, calibrated: bool) -> float:
    """∫ P(stale) dt of a copy, by calibrated or by computed probabilities.

    Gauss-Legendre from the fetch to the first signal and from there to the end, with more nodes where each begins, and
    twice as many in all for calibrated probabilities, which have corners.
    """
    nodes, weights = (_MORE, _MORE_WEIGHTS) if calibrated else (_NODES, _WEIGHTS)
    heard = min(max(_heard_at(b, i), begin), end) if has_components(s, i) else begin
    total, reading = 0.0, page_reading(s, i, begin)
    for part in range(2):
        first, last = (begin, heard) if part == 0 else (heard, end)
        for k in range(nodes.size if last > first else 0):
            at = first + (last - first) * nodes[k] ** 2
            time = page_clock_from(s, i, begin, reading, at)
            chance = -math.expm1(-_doubts_after(s, b, i, time, at)[1])
            if calibrated:
                chance = calibrated_chance(c, chance)
            total += 2.0 * nodes[k] * weights[k] * (last - first) * chance
    return total


@jit_lean
def _own_stale_time(s: State, b: Belief, i: int, begin: float, end: float) -> float:
    """∫ P(stale) dt of a copy of a page without components: P(stale) is 1 − (1 + t/b)^{−a} after a clock time t.

    (a, b) is the page's gamma. The nodes are those of `stale_time`.
    """
    shape, rate, chances = b.gamma[i, 0], b.gamma[i, 1], b.signals.room[0, : _NODES.size]
    reading, total = page_reading(s, i, begin), 0.0
    for k in range(_NODES.size):
        chances[k] = 1.0 + page_clock_from(s, i, begin, reading, begin + (end - begin) * _NODES[k] ** 2) / rate
    log_all(chances)
    for k in range(_NODES.size):
        chances[k] *= -shape
    exp_all(chances)
    for k in range(_NODES.size):
        total += _NODES[k] * _WEIGHTS[k] * (1.0 - chances[k])
    return 2.0 * (end - begin) * total


@inline
def stale_when_found(s: State, b: Belief, c: Calibration, i: int, copies: tuple[float, float], doubt: float) -> float:
    """Expected stale time given that the crawl at the end found a change; half of it where that was improbable.

    `doubt` is −ln P(fresh) at the end.
    """
    begin, end = copies
    chance = -math.expm1(-doubt)
    if chance > _CLEAR and not has_components(s, i):
        return _own_stale_time(s, b, i, begin, end) / chance
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
        begin, own = fetched_at(s, i), b.gamma[i]
        low = max(now, begin)
        if _doubt(s, b, i, begin, low) >= exponent:
            out[j] = low
            continue
        step = max(own[1] * math.expm1(min(exponent / own[0], 600.0)), low - begin, 1e-300)
        while step < math.inf and _doubt(s, b, i, begin, begin + step) < exponent:
            step *= 2.0 if step < 1e200 else math.inf
        high = begin + step
        while high < math.inf:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            if _doubt(s, b, i, begin, middle) >= exponent:
                high = middle
            else:
                low = middle
        out[j] = high


@inline
def exponent_of(knots: Array, probability: float) -> float:
    """−ln P(fresh) from which on a page has changed with a calibrated probability."""
    return -math.log1p(-min(computed_chance(knots, probability), 1.0 - 1e-12))


@jit
def fill_fresh(header: Header, b: Belief, ids: Ids, now: float, out: Array) -> None:
    """The probability that each page's copy is fresh."""
    s = opened(header)
    for j in range(ids.size):
        begin = fetched_at(s, ids[j])
        out[j] = math.exp(-_doubt(s, b, ids[j], begin, max(now, begin)))


@jit
def doubt_parts(header: Header, b: Belief, i: int, now: float) -> tuple[float, float, float]:
    """−ln P(fresh) of a copy as if its clock ran at the usual pace and no signal had come, by its clock, by signals."""
    s = opened(header)
    begin = fetched_at(s, i)
    end = max(now, begin)
    _, doubt, missed = doubts(s, b, i, begin, end)
    return own_doubt(s, b, i, end - begin), missed, doubt
