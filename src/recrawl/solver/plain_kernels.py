"""Loops over pages of one kind, or of one kind and that of complete signals, with one cost and one floor: vectorised.

For everything else there is the loop of `kernels`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, inline_sum, jit, jit_sum
from recrawl.model.kernels.rates import COMPLETE, COMPLETE_HARMONIC, EVEN, HARMONIC_RANDOM, RANDOM, rate_at

Array = NDArray[np.float64]
Kinds = NDArray[np.uint8]


@inline
def clip(rate: float, low: float, high: float) -> float:
    return max(low, min(rate, high))


@inline
def _common_rate(
    kind: int, change_rate: float, importance: float, shape: float, low: float, high: float, price: float
) -> float:
    rate = rate_at(kind, change_rate, shape, price / importance)
    return clip(rate if importance > 0.0 and change_rate > 0.0 else 0.0, low, high)


@inline_sum
def _common_totals_of(
    kind: int,
    start: int,
    stop: int,
    change_rate: Array,
    importance: Array,
    shape: float,
    low: float,
    high: float,
    price: float,
) -> float:
    crawls = 0.0
    for i in range(start, stop):
        crawls += _common_rate(kind, change_rate[i], importance[i], shape, low, high, price)
    return crawls


@jit_sum
def common_totals(
    kind: int,
    start: int,
    stop: int,
    change_rate: Array,
    importance: Array,
    shape: float,
    low: float,
    high: float,
    price: float,
) -> float:
    """Σ rate where all pages have one kind, cost and limits; a loop of its own for each frequent kind is vectorised."""
    args = (start, stop, change_rate, importance, shape, low, high, price)
    if kind == RANDOM:
        return _common_totals_of(RANDOM, *args)
    if kind == HARMONIC_RANDOM:
        return _common_totals_of(HARMONIC_RANDOM, *args)
    if kind == EVEN:
        return _common_totals_of(EVEN, *args)
    return _common_totals_of(kind, *args)


@inline
def _common_fill_of(
    kind: int,
    start: int,
    stop: int,
    change_rate: Array,
    importance: Array,
    shape: float,
    low: float,
    high: float,
    price: float,
    out: Array,
) -> None:
    for i in range(start, stop):
        out[i] = _common_rate(kind, change_rate[i], importance[i], shape, low, high, price)


@jit
def common_fill(
    kind: int,
    start: int,
    stop: int,
    change_rate: Array,
    importance: Array,
    shape: float,
    low: float,
    high: float,
    price: float,
    out: Array,
) -> None:
    """Rates where all pages have one kind, cost and limits."""
    args = (start, stop, change_rate, importance, shape, low, high, price, out)
    if kind == RANDOM:
        _common_fill_of(RANDOM, *args)
    elif kind == HARMONIC_RANDOM:
        _common_fill_of(HARMONIC_RANDOM, *args)
    else:
        _common_fill_of(kind, *args)


@inline
def main_of_two(
    start: int, stop: int, kind: Kinds, shape: Array, cost: Array, low: Array, high: Array, skip_below: Array
) -> int:
    """RANDOM or HARMONIC_RANDOM where these rows have no other kinds than it and that of complete signals; else −1."""
    if kind.size == 1 or high.size == 1 or not shape.size == cost.size == low.size == skip_below.size == 1:
        return -1
    random = harmonic = complete = complete_harmonic = 0
    for i in range(start, stop):
        random += kind[i] == RANDOM
        harmonic += kind[i] == HARMONIC_RANDOM
        complete += kind[i] == COMPLETE
        complete_harmonic += kind[i] == COMPLETE_HARMONIC
    if random + complete == stop - start:
        return RANDOM
    return HARMONIC_RANDOM if harmonic + complete_harmonic == stop - start else -1


@inline
def _rate_of_two(
    main: int,
    complete: int,
    kind: Kinds,
    change_rate: Array,
    importance: Array,
    low: float,
    high: Array,
    i: int,
    price: float,
) -> float:
    """The rate of row i, of one of two kinds: both are computed, so that the loop has no branch."""
    one = _common_rate(main, change_rate[i], importance[i], math.inf, low, high[i], price)
    other = _common_rate(complete, change_rate[i], importance[i], math.inf, low, high[i], price)
    return one if kind[i] == main else other


@inline_sum
def _totals_of_two(
    main: int,
    complete: int,
    start: int,
    stop: int,
    kind: Kinds,
    change_rate: Array,
    importance: Array,
    low: float,
    high: Array,
    price: float,
) -> float:
    crawls = 0.0
    for i in range(start, stop):
        crawls += _rate_of_two(main, complete, kind, change_rate, importance, low, high, i, price)
    return crawls


@jit_sum
def two_totals(
    main: int,
    start: int,
    stop: int,
    kind: Kinds,
    change_rate: Array,
    importance: Array,
    low: float,
    high: Array,
    price: float,
) -> float:
    """Σ rate where all pages have one of two kinds, one cost and one floor."""
    args = (start, stop, kind, change_rate, importance, low, high, price)
    if main == RANDOM:
        return _totals_of_two(RANDOM, COMPLETE, *args)
    return _totals_of_two(HARMONIC_RANDOM, COMPLETE_HARMONIC, *args)


@jit
def two_fill(
    main: int,
    start: int,
    stop: int,
    kind: Kinds,
    change_rate: Array,
    importance: Array,
    low: float,
    high: Array,
    price: float,
    out: Array,
) -> None:
    """Rates where all pages have one of two kinds, one cost and one floor."""
    args = (kind, change_rate, importance, low, high)
    if main == RANDOM:
        for i in range(start, stop):
            out[i] = _rate_of_two(RANDOM, COMPLETE, *args, i, price)
    else:
        for i in range(start, stop):
            out[i] = _rate_of_two(HARMONIC_RANDOM, COMPLETE_HARMONIC, *args, i, price)
