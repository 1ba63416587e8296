"""How fast the clocks of folders run: changes found against changes expected, by bins of time.

    activity of a group in bin b:  A_b = (N_b + c·m_b) / (u·E_b + c)
    m_b = 1 without memory, else 1 + f·(A_{b−1} − 1) with f = e^{−width/memory}

N_b are the changes found and E_b those expected from the pages' own rates at the usual pace. u is found over expected
of all pages in the long run: rates that are too low do not make clocks run fast for ever, which would keep them too
low. The pace of a clock is the weighted mean of real time (1) and the activities of its levels: folder, folder above,
host, all pages, each without memory and with it. A crawl adds to the bins of its interval: what it expected evenly, a
change it found in proportion to the pace at which the clock ran.

The weights w make the outcomes of crawls most probable. A crawl that expected x = h·Σ w·T adds −x to ln P(outcomes) if
it found no change, ln(1 − e^{−x}) if it found one; T is how long each term would have let the clock run, h changes
expected per clock time. Of each, the parabola that touches it at u times the weights of that time is kept:

    ln P(outcomes) ≈ slope·w − w·curvature·w/2
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit_lean
from recrawl.engine.clocks.arrays import LENGTHS, NEVER, REAL_TIME, TERMS, TIMES, Clocks
from recrawl.model.kernels.elementary import sum_of_products
from recrawl.schedule.exact.access_kernels import BINS

Array = NDArray[np.float64]

_HELD_BY = 0.03  # an activity is held to the expected one as by so many expected changes
_USUAL_HELD_BY = 10.0  # found over expected in the long run is held to 1 as by so many changes
_USUAL_BINS = 200.0  # the long run: after so many bins it counts 1/e
_ROUNDS = 100  # of a fit of weights
_LEAST, _LEAST_WEIGHT = 1e-300, 1e-12  # expected changes of a crawl; a weight before they add up to 1


@inline
def bin_of(c: Clocks, time: float) -> int:
    """The number of the bin that a time belongs to."""
    return int(np.floor(time / c.scale[0]))


@jit_lean
def _roll(c: Clocks, g: int, newest: int) -> None:
    """Bring the ring of a group to a bin."""
    for b in range(max(c.newest[g] + 1, newest - BINS + 1), newest + 1):
        c.found[g, b % BINS] = c.expected[g, b % BINS] = 0.0
    c.newest[g] = max(c.newest[g], newest)


@inline
def _fill_run(found: Array, expected: Array, level: float, n: int, plain: Array, held: Array) -> None:
    """Activity of n bins that lie side by side, in vector registers."""
    for j in range(n):
        share = 1.0 / (level * expected[j] + _HELD_BY)
        plain[j], held[j] = (found[j] + _HELD_BY) * share, _HELD_BY * share


@inline
def _level(c: Clocks) -> float:
    """Found over expected changes of all pages in the long run."""
    return float((c.usual[0] + _USUAL_HELD_BY) / (c.usual[1] + _USUAL_HELD_BY))


@jit_lean
def _fill_activity(c: Clocks, g: int, first: int, bins: int, plain: Array, held: Array) -> None:
    """Activity of a group in bins from the first on, without memory; how far each is held to what memory says.

    Where the ring has no such bin, nothing was found or expected. The others are two runs of the ring.
    """
    level = _level(c)
    found, expected, newest = c.found[g], c.expected[g], c.newest[g]
    low = min(max(newest - BINS + 1 - first, 0), bins)
    high = max(min(newest - first + 1, bins), low)
    for j in range(low):
        plain[j] = held[j] = 1.0
    for j in range(high, bins):
        plain[j] = held[j] = 1.0
    start = (first + low) % BINS
    turn = low + min(BINS - start, high - low)
    _fill_run(found[start:], expected[start:], level, turn - low, plain[low:], held[low:])
    _fill_run(found, expected, level, high - turn, plain[turn:], held[turn:])


@inline
def _remember(terms: Array, t: int, j: int, fade: float, excess: float) -> tuple[float, float, float]:
    """Activity of a level in bin j without memory and with it, which replaces how far it is held; the next excess."""
    plain, held = terms[t, j], terms[t + 1, j]
    lasting = plain + held * excess
    terms[t + 1, j] = lasting
    return plain, lasting, fade * (plain - 1.0) + fade * held * excess


@jit_lean
def fill_paces(c: Clocks, clock: int, newest: int, bins: int, terms: Array, out: Array) -> float:
    """Paces of a clock in some bins up to the newest one, oldest first; the pace just after that.

    `terms` (terms, bins) gets the part of each term before it is weighted. Memory starts at the usual pace; `excess` is
    m_b − 1, and A_b with memory is A_b without it + held·excess. The four levels are written out: their excesses do not
    wait for each other.
    """
    fade, w = math.exp(-c.scale[0] / c.scale[1]), c.weight
    for level in range(4):
        plain, held = terms[1 + 2 * level], terms[2 + 2 * level]
        _fill_activity(c, c.group[clock, level], newest - bins + 1, bins, plain, held)
    real, p1, m1, p2, m2, p3, m3, p4, m4 = w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8]
    e1 = e2 = e3 = e4 = 0.0
    for j in range(bins):
        a1, b1, e1 = _remember(terms, 1, j, fade, e1)
        a2, b2, e2 = _remember(terms, 3, j, fade, e2)
        a3, b3, e3 = _remember(terms, 5, j, fade, e3)
        a4, b4, e4 = _remember(terms, 7, j, fade, e4)
        terms[0, j] = 1.0
        out[j] = (real + p1 * a1 + m1 * b1) + (p2 * a2 + m2 * b2) + (p3 * a3 + m3 * b3) + (p4 * a4 + m4 * b4)
    return float(real + p1 + p2 + p3 + p4 + m1 * (1.0 + e1) + m2 * (1.0 + e2) + m3 * (1.0 + e3) + m4 * (1.0 + e4))


@inline
def _fill_lengths(c: Clocks, first: int, bins: int, begin: float, end: float, out: Array) -> None:
    """How much of an interval lies in each of some bins."""
    for j in range(bins):
        low, high = (first + j) * c.scale[0], (first + j + 1) * c.scale[0]
        out[j] = max(min(end, high) - max(begin, low), 0.0)


@jit_lean
def weigh_terms(
    c: Clocks, newest: int, bins: int, terms: Array, paces: Array, crawl: tuple[float, float, float, float]
) -> None:
    """Add the outcome of a crawl to the likelihood of the weights.

    `crawl`: begin and end of the interval, changes expected per clock time, changes found.
    """
    begin, end, hazard, changes = crawl
    first, lengths = max(bin_of(c, begin) - newest + bins - 1, 0), c.room[LENGTHS]
    _fill_lengths(c, newest - bins + 1 + first, bins - first, begin, end, lengths)
    total = sum_of_products(paces[first:], lengths, bins - first)
    if total <= 0.0:
        return
    times = c.room[TIMES]
    for t in range(TERMS):
        times[t] = sum_of_products(terms[t, first:], lengths, bins - first)
        c.slope[t] -= hazard * times[t]
    if changes > 0.0:
        level, expected = _level(c), max(hazard * total, _LEAST)
        unchanged = math.exp(-level * expected)
        share = changes * math.expm1(-expected) / (math.expm1(-level * expected) * total)
        for t in range(TERMS):
            c.slope[t] += share * times[t] * (1.0 + share * level * total * unchanged)
            for k in range(TERMS):
                c.curvature[t, k] += share * times[t] * share * times[k] * unchanged


@inline
def _add_run(expected: Array, found: Array, crawl: tuple[float, float], n: int, lengths: Array, paces: Array) -> None:
    """Add what a crawl expected and found per clock time to n bins that lie side by side."""
    hazard, changes = crawl
    for j in range(n):
        expected[j] += hazard * lengths[j]
        found[j] += changes * (lengths[j] * paces[j])


@jit_lean
def add_to_groups(
    c: Clocks, clock: int, newest: int, bins: int, paces: Array, crawl: tuple[float, float, float, float]
) -> None:
    """Add a crawl to the bins of its interval, at every level.

    `crawl`: begin and end of the interval, changes expected and changes found, both per clock time.
    """
    begin, end, hazard, found = crawl
    first = max(bin_of(c, begin), newest - bins + 1)
    if newest > c.newest[c.group[clock, 0]] > NEVER:
        fade = math.exp(-(newest - c.newest[c.group[clock, 0]]) / _USUAL_BINS)
        c.usual[0] *= fade
        c.usual[1] *= fade
    n, start, lengths = newest + 1 - first, first % BINS, c.room[LENGTHS]
    at, turn = paces[bins - n :], min(BINS - start, n)
    _fill_lengths(c, first, n, begin, end, lengths)
    for level in range(c.group.shape[1]):
        g = c.group[clock, level]
        _roll(c, g, newest)
        _add_run(c.expected[g, start:], c.found[g, start:], (hazard, found), turn, lengths, at)
        _add_run(c.expected[g], c.found[g], (hazard, found), n - turn, lengths[turn:], at[turn:])
    c.usual[0] += found * sum_of_products(at, lengths, n)
    c.usual[1] += hazard * max(min(end, (newest + 1) * c.scale[0]) - max(begin, first * c.scale[0]), 0.0)


@inline
def _highest(slope: float, curvature: float, pull: float) -> float:
    """Where slope·w − curvature·w²/2 + pull·ln w is largest: curvature·w² − slope·w = pull."""
    root = math.sqrt(slope * slope + 4.0 * curvature * pull)
    return 2.0 * pull / (root - slope) if slope < 0.0 else (root + slope) / (2.0 * curvature)


@jit_lean
def fit_weights(c: Clocks, held_by: float) -> None:
    """Weights under which the outcomes are most probable, held to the first ones, made to add up to 1.

    One weight after the other is set to where the likelihood is largest, which rises with each. A weight is held to its
    first value v by h·(v·ln w − w), as by h changes that were expected and found.
    """
    for _ in range(_ROUNDS):
        for t in range(TERMS):
            slope = c.slope[t] - held_by + c.curvature[t, t] * c.weight[t]
            for k in range(TERMS):
                slope -= c.curvature[t, k] * c.weight[k]
            first = REAL_TIME if t == 0 else (1.0 - REAL_TIME) / (TERMS - 1)
            c.weight[t] = max(_highest(slope, c.curvature[t, t], held_by * first), _LEAST_WEIGHT)
    total = 0.0
    for t in range(TERMS):
        total += c.weight[t]
    for t in range(TERMS):
        c.weight[t] /= total
