"""How fast the clocks of folders run: changes found against changes expected, by bins of time.

    activity of a group in bin b:  A_b = (N_b + c·m_b) / (u·E_b + c)
    m_b = 1 without memory, else 1 + f·(A_{b−1} − 1) with f = e^{−width/memory}

N_b are the changes found and E_b those expected from the pages' own rates at the usual pace. u is found over expected
of all pages in the long run: rates that are too low do not make clocks run fast for ever, which would keep them too
low. The pace of a clock is the weighted mean of real time (1) and the activities of its levels: folder, folder above,
host, all pages, each without memory and with it. A crawl adds to the bins of its interval: what it expected evenly, a
change it found in proportion to the pace at which the clock ran.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import inline, jit_lean
from recrawl.engine.clocks.arrays import NEVER, REAL_TIME, TERMS, Clocks
from recrawl.schedule.exact.access_kernels import BINS

Array = NDArray[np.float64]

_HELD_BY = 0.03  # an activity is held to the expected one as by so many expected changes
_USUAL_HELD_BY = 10.0  # found over expected in the long run is held to 1 as by so many changes
_USUAL_BINS = 200.0  # the long run: after so many bins it counts 1/e


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


@jit_lean
def _fill_activity(c: Clocks, g: int, first: int, bins: int, plain: Array, held: Array) -> None:
    """Activity of a group in bins from the first on, without memory; how far each is held to what memory says."""
    level = (c.usual[0] + _USUAL_HELD_BY) / (c.usual[1] + _USUAL_HELD_BY)
    found, expected, newest = c.found[g], c.expected[g], c.newest[g]
    for j in range(bins):
        b = first + j
        if b > newest or b <= newest - BINS:
            plain[j] = held[j] = 1.0
        else:
            share = 1.0 / (level * expected[b % BINS] + _HELD_BY)
            plain[j], held[j] = (found[b % BINS] + _HELD_BY) * share, _HELD_BY * share


@jit_lean
def fill_paces(c: Clocks, clock: int, newest: int, bins: int, terms: Array, out: Array) -> float:
    """Paces of a clock in some bins up to the newest one, oldest first; the pace just after that.

    `terms` (terms, bins) gets the part of each term before it is weighted. Memory starts at the usual pace; `excess` is
    m_b − 1, and A_b with memory is A_b without it + held·excess.
    """
    fade = math.exp(-c.scale[0] / c.scale[1])
    ahead = c.weight[0]
    for j in range(bins):
        out[j] = c.weight[0]
        terms[0, j] = 1.0
    for level in range(c.group.shape[1]):
        plain, lasting = terms[1 + 2 * level], terms[2 + 2 * level]
        weight, lasting_weight, excess = c.weight[1 + 2 * level], c.weight[2 + 2 * level], 0.0
        _fill_activity(c, c.group[clock, level], newest - bins + 1, bins, plain, lasting)
        for j in range(bins):
            held = lasting[j]
            lasting[j] = plain[j] + held * excess
            excess = fade * (plain[j] - 1.0) + fade * held * excess
            out[j] += weight * plain[j] + lasting_weight * lasting[j]
        ahead += weight + lasting_weight * (1.0 + excess)
    return float(ahead)


@inline
def _inside(c: Clocks, b: int, begin: float, end: float) -> float:
    return float(max(min(end, (b + 1) * c.scale[0]) - max(begin, b * c.scale[0]), 0.0))


@jit_lean
def credit_terms(
    c: Clocks, newest: int, bins: int, terms: Array, paces: Array, crawl: tuple[float, float, float, float]
) -> None:
    """Credit the terms of a clock with the changes that a crawl found, and with what it expected.

    `crawl`: begin and end of the interval, changes expected per clock time, changes found.
    """
    begin, end, hazard, changes = crawl
    total, first = 0.0, max(bin_of(c, begin) - newest + bins - 1, 0)
    for j in range(first, bins):
        total += paces[j] * _inside(c, newest - bins + 1 + j, begin, end)
    if total <= 0.0:
        return
    for t in range(terms.shape[0]):
        time = 0.0
        for j in range(first, bins):
            time += terms[t, j] * _inside(c, newest - bins + 1 + j, begin, end)
        c.credit[t] += changes * c.weight[t] * time / total
        c.exposure[t] += hazard * time


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
    for level in range(c.group.shape[1]):
        g = c.group[clock, level]
        _roll(c, g, newest)
        for b in range(first, newest + 1):
            inside = _inside(c, b, begin, end)
            at_pace = inside * paces[b - newest + bins - 1]
            c.expected[g, b % BINS] += hazard * inside
            c.found[g, b % BINS] += found * at_pace
            if level == 0:
                c.usual[0] += found * at_pace
                c.usual[1] += hazard * inside


@jit_lean
def fit_weights(c: Clocks, held_by: float) -> None:
    """Weights of the terms: credited over expected changes, held to equal weights, adding up to 1."""
    total = 0.0
    for t in range(TERMS):
        first = REAL_TIME if t == 0 else (1.0 - REAL_TIME) / (TERMS - 1)
        c.weight[t] = (c.credit[t] + held_by * first) / (c.exposure[t] + held_by)
        total += c.weight[t]
    for t in range(TERMS):
        c.weight[t] /= total
