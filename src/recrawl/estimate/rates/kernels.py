"""The irregular maximum-likelihood estimate of a change rate, for many pages at once.

Unchanged intervals count only through their sum, so a page's work is its changed intervals. Where a page's
intervals are whole multiples of one unit (daily crawls) they are counted instead of kept. The exponential is
written out as a polynomial and eight doublings, because a loop of plain arithmetic is compiled to vector
instructions and a library call is not; ``expm1(2y) = m(m + 2)`` keeps it exact for small arguments.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit

Array = NDArray[np.float64]

MAX_EXPONENT = 160.0  # beyond it a changed interval says nothing more about its rate


@inline
def expm1_small(y: float) -> float:
    """e^y − 1 for 0 ≤ y ≤ 0.625, relative error below 1e-13."""
    y2 = y * y
    y4 = y2 * y2
    low = (1.0 + y * (1.0 / 2.0)) + y2 * (1.0 / 6.0 + y * (1.0 / 24.0))
    middle = (1.0 / 120.0 + y * (1.0 / 720.0)) + y2 * (1.0 / 5040.0 + y * (1.0 / 40320.0))
    high = (1.0 / 362880.0 + y * (1.0 / 3628800.0)) + y2 * (1.0 / 39916800.0)
    return y * ((low + y4 * middle) + (y4 * y4) * high)


@inline
def score_sums(t: Array, w: Array, n: int, rate: float, buffer: Array) -> tuple[float, float, float]:
    """Q = Σ w·q, −Q′ and Q″ with q = t/(e^{rate·t} − 1), over the first n entries (n a multiple of 8)."""
    scale = rate * (1.0 / 256.0)
    for i in range(n):
        y = min(t[i] * scale, MAX_EXPONENT / 256.0)
        m = expm1_small(y)
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        q = t[i] / m
        first = w[i] * q
        second = first * (t[i] + q)
        buffer[0, i] = first
        buffer[1, i] = second
        buffer[2, i] = second * (t[i] + 2.0 * q)
    return add_up(buffer[0], n), add_up(buffer[1], n), add_up(buffer[2], n)


@inline
def add_up(x: Array, n: int) -> float:
    """Sum of the first n entries (n a multiple of 4), in four strands."""
    a = b = c = d = 0.0
    for i in range(0, n, 4):
        a += x[i]
        b += x[i + 1]
        c += x[i + 2]
        d += x[i + 3]
    return (a + b) + (c + d)


@inline
def first_guess(t: Array, w: Array, n: int, t_unchanged: float) -> float:
    """Exact when all changed intervals are equal, corrected for their variance: one Newton step on ln Q."""
    n0 = n1 = n2 = m0 = m1 = m2 = 0.0
    for i in range(0, n, 2):
        n0 += w[i]
        n1 += w[i] * t[i]
        n2 += w[i] * t[i] * t[i]
        m0 += w[i + 1]
        m1 += w[i + 1] * t[i + 1]
        m2 += w[i + 1] * t[i + 1] * t[i + 1]
    n0, n1, n2 = n0 + m0, n1 + m1, n2 + m2
    m = n1 / t_unchanged
    x = math.log1p(m)
    rate = x * (n0 / n1)
    bend = (m + 1.0) * (x * (m + 2.0) - 2.0 * m) / (m * m * m) if m > 0.05 else 1.0 / 6.0
    extra = 0.5 * rate * bend * (n2 - n1 * n1 / n0) / t_unchanged
    return rate * (1.0 + min(1.0, extra * m / (x * (m + 1.0))))


@inline
def solve_score(t: Array, w: Array, n: int, t_unchanged: float, buffer: Array) -> float:
    """The rate at which Q = Σ w·t/(e^{rate·t} − 1) equals t_unchanged, kept in a bracket.

    Halley's method on Q over the rate near the solution, and on ln Q over ln rate (which is nearly straight) far
    from it.
    """
    rate = first_guess(t, w, n, t_unchanged)
    low, high = 0.0, math.inf
    for _ in range(200):
        q, d, e = score_sums(t, w, n, rate, buffer)
        excess = q - t_unchanged
        if excess > 0.0:
            low = rate
        else:
            high = rate
        if abs(excess) < 0.25 * t_unchanged:
            moved = rate + 2.0 * excess * d / (2.0 * d * d - excess * e)
            close = abs(moved - rate) < 5e-4 * rate
        else:
            s = rate * d / q
            g = math.log(q / t_unchanged)
            slope = s + 0.5 * g * (s + s * s - rate * rate * e / q) / s
            moved = rate * math.exp(max(-3.0, min(3.0, g / max(slope, 0.5 * s))))
            close = False
        if close:
            return moved
        if not low < moved < high:
            moved = 0.5 * (low + high) if high < math.inf else 2.0 * rate
        rate = moved
    return rate


@inline
def count_multiples(
    interval: Array, changed: NDArray[np.bool_], start: int, stop: int, unit: float, t: Array, w: Array
) -> tuple[int, float]:
    """Count intervals of 1 … 8 units, eight counters in one word; −1 where an interval is something else."""
    per_unit = 1.0 / unit
    broken = False
    unchanged = np.int64(0)
    for k in range(8):
        t[k] = (k + 1) * unit
        w[k] = 0.0
    for first in range(start, stop, 128):
        n = min(128, stop - first)
        x, z = interval[first : first + n], changed[first : first + n]
        everything, seen = np.int64(0), np.int64(0)
        for i in range(n):
            above = np.int64(x[i] * per_unit + 0.5) - 1
            broken |= ((above + 1) * unit != x[i]) | (np.uint64(above) > np.uint64(7))
            one = np.int64(1) << ((8 * above) & 63)
            everything += one
            seen += one & -np.int64(z[i])
        rest = everything - seen
        for k in range(8):
            w[k] += (seen >> (8 * k)) & 255
            unchanged += (k + 1) * ((rest >> (8 * k)) & 255)
    return (-1 if broken else 8), float(unchanged) * unit


@inline
def gather_changed(
    interval: Array, changed: NDArray[np.bool_], start: int, stop: int, t: Array, w: Array
) -> tuple[int, float]:
    """Changed intervals with weight 1, and the unchanged time; intervals of length 0 say nothing and are left out."""
    n = 0
    for i in range(start, stop):
        t[n] = interval[i]
        w[n] = 1.0
        n += changed[i] & (interval[i] > 0.0)
    a = b = c = d = 0.0
    for i in range(start, stop - 3, 4):
        a += interval[i] * (1 - changed[i])
        b += interval[i + 1] * (1 - changed[i + 1])
        c += interval[i + 2] * (1 - changed[i + 2])
        d += interval[i + 3] * (1 - changed[i + 3])
    for i in range(stop - (stop - start) % 4, stop):
        a += interval[i] * (1 - changed[i])
    return n, (a + b) + (c + d)


@inline
def gather(
    interval: Array, changed: NDArray[np.bool_], start: int, stop: int, unit: float, t: Array, w: Array
) -> tuple[int, float]:
    """A page's changed intervals (t, weight w), how many entries they are, and its unchanged time."""
    if unit > 0.0 and stop - start > 8:
        n, unchanged = count_multiples(interval, changed, start, stop, unit, t, w)
        if n > 0:
            return drop_empty(t, w), unchanged
    return gather_changed(interval, changed, start, stop, t, w)


@inline
def drop_empty(t: Array, w: Array) -> int:
    n = 0
    for k in range(8):
        t[n], w[n] = t[k], w[k]
        n += w[k] > 0.0
    return n


@inline
def longest_log(offset: NDArray[np.int64], n_pages: int, more: int) -> int:
    """Entries of the longest log of a page, and so many more."""
    longest = more + 8
    for page in range(n_pages):
        longest = max(longest, offset[page + 1] - offset[page] + more)
    return longest


@inline
def add_pseudo(t: Array, w: Array, n: int, pseudo_t: Array, pseudo_w: Array) -> int:
    """Add the changed intervals of a prior to the n of a page; how many entries they are."""
    for k in range(len(pseudo_t)):
        t[n + k] = pseudo_t[k]
        w[n + k] = pseudo_w[k]
    return n + len(pseudo_t)


@inline
def pad(t: Array, w: Array, n: int) -> int:
    """Fill up to a multiple of 8 with entries of weight 0."""
    filled = (n + 7) & ~7
    for i in range(n, filled):
        t[i] = t[0]
        w[i] = 0.0
    return filled


@jit
def mle_rates(
    offset: NDArray[np.int64],
    interval: Array,
    changed: NDArray[np.bool_],
    unit: float,
    pseudo_t: Array,
    pseudo_w: Array,
    pseudo_unchanged: float,
    out: Array,
) -> None:
    """The MLE per page; without it, 1/(total time) when nothing changed and 1/(shortest interval) when all did."""
    longest = longest_log(offset, len(out), len(pseudo_t) + 8)
    t, w, buffer = np.empty(longest), np.empty(longest), np.empty((3, longest))
    for page in range(len(out)):
        n, unchanged = gather(interval, changed, offset[page], offset[page + 1], unit, t, w)
        n = add_pseudo(t, w, n, pseudo_t, pseudo_w)
        out[page] = solve_page(t, w, n, unchanged + pseudo_unchanged, buffer)


@inline
def solve_page(t: Array, w: Array, n: int, unchanged: float, buffer: Array) -> float:
    if n == 0:
        return 1.0 / unchanged if unchanged > 0.0 else 0.0
    if unchanged <= 0.0:
        shortest = math.inf
        for i in range(n):
            shortest = min(shortest, float(t[i]))
        return 1.0 / shortest
    if n == 1:
        return math.log1p(w[0] * t[0] / unchanged) / float(t[0])
    return solve_score(t, w, pad(t, w, n), unchanged, buffer)
