"""Streaming estimation: every page keeps gammas, every crawl replaces them by the gammas of the same mean and variance.

An unchanged interval is conjugate: the gamma's rate grows by it, exactly. A changed one turns gamma(a, b) into
λ^{a−1}e^{−bλ}(1 − e^{−λt}), whose moments are closed: with r = b/(b+t), Z = 1 − r^a is the chance of a change, and
E λ^k·Z·b^k/(a)_k = 1 − r^{a+k} = Z + r^a·(1 − r)·(1 + … + r^{k−1}), which does not cancel.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import inline, jit

Array = NDArray[np.float64]

N_SLOTS = 3
CHUNK = 256


@inline
def after_crawl(a: float, b: float, t: float, changed: bool) -> tuple[float, float, float]:
    """Probability of the outcome, and the gamma (shape, rate) after it."""
    seen = -math.expm1(-a * math.log1p(t / b))
    if not changed:
        return 1.0 - seen, a, b + t
    if seen <= 0.0:
        return 0.0, a, b
    rest = (1.0 - seen) * (t / (b + t))
    first = 1.0 + rest / seen
    second = first + rest * (b / (b + t)) / seen
    shape = a * first * first / ((a + 1.0) * second - a * first * first)
    return seen, shape, shape * b / (a * first)


@inline
def touch(state: Array, page: NDArray[np.int64], first: int, last: int) -> float:
    """Load the rows of the next crawls: loads that depend on nothing overlap, so far-apart pages arrive together."""
    total = 0.0
    for i in range(first, last):
        total += state[page[i], 0]
        total += state[page[i], state.shape[1] - 1]
    return total


@jit
def update_rates(
    state: Array,
    page: NDArray[np.int64],
    interval: Array,
    changed: NDArray[np.bool_],
    prior: Array,
    half_life: float,
) -> float:
    """One crawl after the other: forget towards the prior by 2^{−interval/half_life}, then take in the outcome."""
    forgets = half_life < math.inf
    warmth = 0.0
    for i in range(len(page)):
        if i % CHUNK == 0:
            warmth += touch(state, page, i, min(i + CHUNK, len(page)))
        row = page[i]
        a, b = state[row, 0], state[row, 1]
        if forgets:
            kept = math.exp2(-interval[i] / half_life)
            base = row if len(prior) > 1 else 0
            a = prior[base, 0] + (a - prior[base, 0]) * kept
            b = prior[base, 1] + (b - prior[base, 1]) * kept
        _, state[row, 0], state[row, 1] = after_crawl(a, b, interval[i], changed[i])
    return warmth


@inline
def mixed(w1: float, a1: float, b1: float, w2: float, a2: float, b2: float) -> tuple[float, float, float]:
    """Weight, shape and rate of the gamma with the moments of a mixture of two."""
    p = w1 / (w1 + w2)
    m1, m2 = a1 / b1, a2 / b2
    mean = p * m1 + (1.0 - p) * m2
    gap = (m1 - m2) / mean
    spread = p * (m1 / mean) ** 2 / a1 + (1.0 - p) * (m2 / mean) ** 2 / a2 + p * (1.0 - p) * gap * gap
    return w1 + w2, 1.0 / spread, 1.0 / (spread * mean)


@inline
def mixture_centre(slot: Array) -> float:
    """Geometric mean of the slots' mean rates, which a small weight far off hardly moves."""
    total = 0.0
    for j in range(N_SLOTS):
        if slot[j, 0] > 0.0:
            total += slot[j, 0] * math.log(slot[j, 1] / slot[j, 2])
    return math.exp(total)


@inline
def move(source: Array, i: int, target: Array, j: int) -> None:
    target[j, 0], target[j, 1], target[j, 2] = source[i, 0], source[i, 1], source[i, 2]


@inline
def make_room(slot: Array) -> None:
    """From N_SLOTS + 1 hypotheses to N_SLOTS: merge the neighbours in age that differ least, weighed by their
    weight."""
    least, place = math.inf, 0
    for j in range(N_SLOTS):
        w1, w2 = slot[j, 0], slot[j + 1, 0]
        if w1 * w2 == 0.0:
            cost = -1.0
        else:
            apart = math.log(slot[j, 1] * slot[j + 1, 2] / (slot[j, 2] * slot[j + 1, 1]))
            cost = w1 * w2 / (w1 + w2) * (apart * apart + abs(1.0 / slot[j, 1] - 1.0 / slot[j + 1, 1]))
        if cost < least:
            least, place = cost, j
    if slot[place, 0] == 0.0:
        move(slot, place + 1, slot, place)
    elif slot[place + 1, 0] > 0.0:
        slot[place, 0], slot[place, 1], slot[place, 2] = mixed(
            slot[place, 0],
            slot[place, 1],
            slot[place, 2],
            slot[place + 1, 0],
            slot[place + 1, 1],
            slot[place + 1, 2],
        )
    for j in range(place + 1, N_SLOTS):
        move(slot, j + 1, slot, j)


@jit
def update_drifting(
    state: Array,
    page: NDArray[np.int64],
    interval: Array,
    changed: NDArray[np.bool_],
    hazard: float,
    restart: float,
) -> float:
    """Hypotheses "the rate last jumped at crawl k", oldest first, weighed by how well each foretold the outcomes.

    Before each crawl the rate has jumped with probability ``hazard``; a jump starts at gamma(restart, mean = the
    estimate).
    """
    slot = np.empty((N_SLOTS + 1, 3))
    flat = state.reshape(len(state), -1)
    warmth = 0.0
    for i in range(len(page)):
        if i % CHUNK == 0:
            warmth += touch(flat, page, i, min(i + CHUNK, len(page)))
        row = page[i]
        for j in range(N_SLOTS):
            move(state[row], j, slot, j)
        centre = mixture_centre(slot)
        for j in range(N_SLOTS):
            slot[j, 0] *= 1.0 - hazard
        slot[N_SLOTS, 0], slot[N_SLOTS, 1], slot[N_SLOTS, 2] = hazard, restart, restart / centre
        total = 0.0
        for j in range(N_SLOTS + 1):
            if slot[j, 0] > 0.0:
                chance, slot[j, 1], slot[j, 2] = after_crawl(slot[j, 1], slot[j, 2], interval[i], changed[i])
                slot[j, 0] *= chance
                total += slot[j, 0]
        if total < 1e-290:
            continue
        for j in range(N_SLOTS + 1):
            slot[j, 0] /= total
        make_room(slot)
        for j in range(N_SLOTS):
            move(slot, j, state[row], j)
    return warmth


@jit
def drifting_gammas(state: Array, out: Array) -> None:
    """Per page the gamma to plan on: the geometric centre as mean, the mixture's relative variance as 1/shape."""
    for row in range(len(state)):
        slot = state[row]
        mean = second = 0.0
        for j in range(N_SLOTS):
            if slot[j, 0] > 0.0:
                m = slot[j, 1] / slot[j, 2]
                mean += slot[j, 0] * m
                second += slot[j, 0] * m * m * (1.0 + 1.0 / slot[j, 1])
        out[row, 0] = mean * mean / (second - mean * mean)
        out[row, 1] = out[row, 0] / mixture_centre(slot)


@inline
def take_in(gamma: Array, interval: float, signals: Array, changed: bool) -> None:
    """One crawl's outcome for independent gammas of (missed rate, weight of source 1, …).

    Of a changed interval with Z = 1 − ∏ r_j^{a_j}, the moments of parameter j are those above with r^a replaced by
    the product.
    """
    n = gamma.shape[0]
    if not changed:
        gamma[0, 1] += interval
        for j in range(1, n):
            gamma[j, 1] += signals[j - 1]
        return
    exponent = gamma[0, 0] * math.log1p(interval / gamma[0, 1])
    for j in range(1, n):
        exponent += gamma[j, 0] * math.log1p(signals[j - 1] / gamma[j, 1])
    seen = -math.expm1(-exponent)
    if seen <= 0.0:
        return
    for j in range(n):
        a, b, x = gamma[j, 0], gamma[j, 1], interval if j == 0 else signals[j - 1]
        if x > 0.0:
            rest = (1.0 - seen) * (x / (b + x))
            first = 1.0 + rest / seen
            second = first + rest * (b / (b + x)) / seen
            shape = a * first * first / ((a + 1.0) * second - a * first * first)
            gamma[j, 0], gamma[j, 1] = shape, shape * b / (a * first)


@jit
def update_quality(state: Array, page: NDArray[np.int64], amount: Array, changed: NDArray[np.bool_]) -> float:
    """Crawls one after the other; amount is (interval, signals of source 1, …)."""
    flat = state.reshape(len(state), -1)
    warmth = 0.0
    for i in range(len(page)):
        if i % CHUNK == 0:
            warmth += touch(flat, page, i, min(i + CHUNK, len(page)))
        take_in(state[page[i]], amount[i, 0], amount[i, 1:], changed[i])
    return warmth
