"""Streaming estimation: every page keeps gammas, every crawl replaces them by the gammas of the same mean and variance.

An unchanged interval is conjugate: the gamma's rate grows by it, exactly. A changed one turns gamma(a, b) into
λ^{a−1}e^{−bλ}(1 − e^{−λt}), whose moments are closed: with r = b/(b+t), Z = 1 − r^a is the chance of a change, and
E λ^k·Z·b^k/(a)_k = 1 − r^{a+k} = Z + r^a·(1 − r)·(1 + … + r^{k−1}), which does not cancel.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit

Array = NDArray[np.float64]

N_SLOTS = 3
RISES = 0.125
SHORT = 1.0 / 3.0
CHUNK = 256


@inline
def after_crawl(a: float, b: float, t: float, changed: bool) -> tuple[float, float, float]:
    """Probability of the outcome, and the gamma (shape, rate) after it."""
    return after_outcome(a, b, t, changed, -math.expm1(-a * math.log1p(t / b)))


@inline
def after_outcome(a: float, b: float, t: float, changed: bool, seen: float) -> tuple[float, float, float]:
    """The same where the chance of a change is known; for shape 1 it is t/(b + t)."""
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
    """Harmonic mean of the hypotheses' rates: one over the expected time between changes."""
    wait = 0.0
    for j in range(N_SLOTS):
        wait += slot[j, 0] * slot[j, 2] / slot[j, 1]
    return 1.0 / wait


@inline
def closest(slot: Array) -> int:
    """The place of the two neighbours in age that differ least, weighed by their weight."""
    least, place = math.inf, 0
    for j in range(N_SLOTS):
        both = slot[j, 0] * slot[j + 1, 0]
        times = slot[j, 1] * slot[j + 1, 2] / (slot[j, 2] * slot[j + 1, 1])
        apart = times + 1.0 / times - 2.0 + abs(1.0 / slot[j, 1] - 1.0 / slot[j + 1, 1])
        cost = both * apart / (slot[j, 0] + slot[j + 1, 0]) if both > 0.0 else -1.0
        if cost < least:
            least, place = cost, j
    return place


@inline
def make_room(slot: Array, state: Array, row: int) -> None:
    """From N_SLOTS + 1 hypotheses to the page's N_SLOTS: the two that differ least become one."""
    i = closest(slot)
    for j in range(N_SLOTS + 1):
        kept = j if j <= i else j - 1
        for k in range(3):
            state[row, kept, k] = slot[j, k]
    if slot[i, 0] > 0.0:
        state[row, i, 0], state[row, i, 1], state[row, i, 2] = mixed(
            slot[i, 0], slot[i, 1], slot[i, 2], slot[i + 1, 0], slot[i + 1, 1], slot[i + 1, 2]
        )


@jit
def update_drifting(
    state: Array,
    page: NDArray[np.int64],
    interval: Array,
    changed: NDArray[np.bool_],
    hazard: float,
    jump: float,
) -> float:
    """Hypotheses "the rate last jumped at crawl k", oldest first, weighted by how well each predicted the outcomes.

    Before each crawl the rate has jumped with probability ``hazard``, less where the interval is below SHORT/estimate
    or above 1/(SHORT·estimate), where a change is no news: then to an exponential belief of mean estimate·jump (share
    RISES of the jumps) or estimate/jump. A changed crawl starts the first of these hypotheses, an unchanged one the
    second; the other explains it worse and is dropped.
    """
    slot = np.empty((N_SLOTS + 1, 3))
    flat = state.reshape(len(state), -1)
    warmth = 0.0
    for i in range(len(page)):
        if i % CHUNK == 0:
            warmth += touch(flat, page, i, min(i + CHUNK, len(page)))
        row = page[i]
        for j in range(N_SLOTS):
            for k in range(3):
                slot[j, k] = state[row, j, k]
        centre = mixture_centre(slot)
        expected = interval[i] * centre
        jumped = hazard * min(1.0, expected / SHORT, 1.0 / (SHORT * max(expected, SHORT)))
        for j in range(N_SLOTS):
            slot[j, 0] *= 1.0 - jumped
        share, wait = (RISES, 1.0 / (centre * jump)) if changed[i] else (1.0 - RISES, jump / centre)
        seen = interval[i] / (wait + interval[i])
        chance, slot[N_SLOTS, 1], slot[N_SLOTS, 2] = after_outcome(1.0, wait, interval[i], changed[i], seen)
        total = slot[N_SLOTS, 0] = jumped * share * chance
        for j in range(N_SLOTS):
            if slot[j, 0] > 0.0:
                chance, slot[j, 1], slot[j, 2] = after_crawl(slot[j, 1], slot[j, 2], interval[i], changed[i])
                slot[j, 0] *= chance
                total += slot[j, 0]
        if total < 1e-290:
            continue
        for j in range(N_SLOTS + 1):
            slot[j, 0] /= total
        make_room(slot, state, row)
    return warmth


@jit
def drifting_gammas(state: Array, out: Array) -> None:
    """Per page the gamma to plan on: the harmonic centre as mean, the mixture's relative variance as 1/shape."""
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
