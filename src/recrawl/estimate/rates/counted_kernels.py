"""The MLE of pages crawled at whole multiples of one unit (daily crawls), eight pages side by side.

Such a page is sixteen counts: changed and unchanged intervals of 1 … 8 units. With m = e^{rate·unit} − 1 all that
the score needs follows by e^{(k+1)x} − 1 = m_k + m + m_k·m, and eight pages fill a vector register.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit
from recrawl.estimate.rates.kernels import count_multiples, expm1_small, gather, longest_log, solve_page

Array = NDArray[np.float64]

LANES = 8
BINS = 8


@inline
def guess_rates(weight: Array, unchanged: Array, unit: float, rate: Array) -> None:
    """As ``first_guess``, for eight pages: exact for equal intervals, corrected for their variance."""
    sums = np.zeros((3, LANES))
    for k in range(BINS):
        for lane in range(LANES):
            first = weight[k, lane] * (k + 1)
            sums[0, lane] += weight[k, lane]
            sums[1, lane] += first
            sums[2, lane] += first * (k + 1)
    for lane in range(LANES):
        n, t, square = sums[0, lane], sums[1, lane], sums[2, lane]
        m = t * unit / unchanged[lane]
        x = math.log1p(m)
        bend = (m + 1.0) * (x * (m + 2.0) - 2.0 * m) / (m * m * m) if m > 0.05 else 1.0 / 6.0
        extra = 0.5 * (x * n / t) * bend * (square - t * t / n) * unit / unchanged[lane]
        rate[lane] = x * n / (t * unit) * (1.0 + min(1.0, extra * m / (x * (m + 1.0))))


@inline
def halley_round(weight: Array, unchanged: Array, unit: float, rate: Array, work: Array) -> float:
    """One step of Halley's method for eight pages; the largest relative step."""
    for lane in range(LANES):
        m = expm1_small(min(rate[lane] * unit, 20.0) * (1.0 / 32.0))
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        work[0, lane] = m
        work[1, lane] = m
        work[2, lane] = work[3, lane] = work[4, lane] = 0.0
    for k in range(BINS):
        t = (k + 1) * unit
        for lane in range(LANES):
            q = t / work[1, lane]
            first = weight[k, lane] * q
            second = first * (t + q)
            work[2, lane] += first
            work[3, lane] += second
            work[4, lane] += second * (t + 2.0 * q)
            work[1, lane] = work[1, lane] + work[0, lane] + work[1, lane] * work[0, lane]
    largest = 0.0
    for lane in range(LANES):
        excess, d = work[2, lane] - unchanged[lane], work[3, lane]
        step = 2.0 * excess * d / (2.0 * d * d - excess * work[4, lane])
        largest = max(largest, abs(step) / rate[lane])
        rate[lane] += step
    return largest


@jit
def solve_block(weight: Array, unchanged: Array, unit: float, rate: Array, work: Array) -> bool:
    """The rates of eight pages that each saw both outcomes; False where a page needs the safeguarded solver."""
    guess_rates(weight, unchanged, unit, rate)
    for _ in range(4):
        largest = halley_round(weight, unchanged, unit, rate, work)
        if not largest < 0.3:
            return False
        if largest < 5e-4:
            return True
    return False


@jit
def counted_rates(
    offset: NDArray[np.int64], interval: Array, changed: NDArray[np.bool_], unit: float, out: Array
) -> None:
    """As ``mle_rates`` without pseudo-observations, faster where intervals are 1 … 8 units."""
    longest = longest_log(offset, len(out), 16)
    t, w, buffer = np.empty(longest), np.empty(longest), np.empty((3, longest))
    weight, unchanged, rate, work = np.ones((BINS, LANES)), np.ones(LANES), np.ones(LANES), np.empty((5, LANES))
    place = np.empty(LANES, np.int64)
    filled = 0
    for page in range(len(out)):
        start, stop = offset[page], offset[page + 1]
        n, quiet = count_multiples(interval, changed, start, stop, unit, t, w)
        n_changed = 0.0
        for k in range(BINS):
            weight[k, filled] = w[k]
            n_changed += w[k]
        if n < 0 or stop - start <= 8 or n_changed == 0.0 or quiet == 0.0:
            n, quiet = gather(interval, changed, start, stop, 0.0, t, w)
            out[page] = solve_page(t, w, n, quiet, buffer)
            continue
        unchanged[filled], place[filled] = quiet, page
        filled += 1
        if filled == LANES:
            filled = 0
            finish(offset, interval, changed, weight, unchanged, unit, rate, work, place, LANES, t, w, buffer, out)
    if filled:
        for lane in range(filled, LANES):
            weight[:, lane], unchanged[lane] = weight[:, 0], unchanged[0]
        finish(offset, interval, changed, weight, unchanged, unit, rate, work, place, filled, t, w, buffer, out)


@inline
def finish(
    offset: NDArray[np.int64],
    interval: Array,
    changed: NDArray[np.bool_],
    weight: Array,
    unchanged: Array,
    unit: float,
    rate: Array,
    work: Array,
    place: NDArray[np.int64],
    n_lanes: int,
    t: Array,
    w: Array,
    buffer: Array,
    out: Array,
) -> None:
    """Write a block's rates; one by one where the eight do not settle together."""
    settled = solve_block(weight, unchanged, unit, rate, work)
    for lane in range(n_lanes):
        page = place[lane]
        if settled:
            out[page] = rate[lane]
        else:
            n, quiet = gather(interval, changed, offset[page], offset[page + 1], unit, t, w)
            out[page] = solve_page(t, w, n, quiet, buffer)
