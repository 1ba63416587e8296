"""e^x and ln x of many numbers at once: loops without a branch, which run in vector registers.

    e^x = 2^k e^r,                x = k·ln 2 + r, |r| ≤ ln 2 / 2, e^r by its series up to r^13
    ln x = k·ln 2 + 2·artanh s,   x = f·2^k, 0.707 < f ≤ 1.414, s = (f − 1)/(f + 1), by its series up to s^21

Both are exact to about 1e-16 relative. The same operations in the same order make the same numbers everywhere, with
the compiler and without.
"""

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.bits import SHIFT, fraction_of, power_of, two_to
from recrawl._compile.jit import inline, jit_lean

Array = NDArray[np.float64]

LEAST_EXPONENT = -700.0  # e^x is 0 below; above −LEAST_EXPONENT it is not computed
_LOG2_E = 1.4426950408889634
_LN2, _LN2_REST = 0.6931471803691238, 1.9082149292705877e-10  # ln 2: the first part has 20 trailing zeros
_ROOT = 1.4142135623730951


@inline
def _exp(x: float) -> float:
    x = min(max(x, LEAST_EXPONENT), -LEAST_EXPONENT)
    shifted = x * _LOG2_E + SHIFT
    k = shifted - SHIFT
    r = (x - k * _LN2) - k * _LN2_REST
    p = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r * r + r
    return float((p + 1.0) * two_to(shifted))


@jit_lean
def exp_all(x: Array) -> None:
    """Replace each number by e^x; by 0 below LEAST_EXPONENT."""
    for j in range(x.size):
        power = _exp(x[j])
        x[j] = power if x[j] >= LEAST_EXPONENT else 0.0


@inline
def _log(x: float) -> float:
    f, k = fraction_of(x), power_of(x)
    half = f > _ROOT
    f = 0.5 * f if half else f
    k = k + 1.0 if half else k
    s = (f - 1.0) / (f + 1.0)
    z = s * s
    p = z * (1.0 / 21.0) + 1.0 / 19.0
    p = p * z + 1.0 / 17.0
    p = p * z + 1.0 / 15.0
    p = p * z + 1.0 / 13.0
    p = p * z + 1.0 / 11.0
    p = p * z + 1.0 / 9.0
    p = p * z + 1.0 / 7.0
    p = p * z + 1.0 / 5.0
    p = p * z + 1.0 / 3.0
    return float(k * _LN2 + (2.0 * s + (2.0 * s * z * p + k * _LN2_REST)))


@jit_lean
def log_all(x: Array) -> None:
    """Replace each number, which must be normal and positive, by its logarithm."""
    for j in range(x.size):
        x[j] = _log(x[j])


# --- sums, in four parts that do not wait for each other: the order of additions is the same in all kernels -----------


@jit_lean
def sum_of(x: Array) -> float:
    """The sum of all numbers."""
    a = b = c = d = 0.0
    whole = x.size - x.size % 4
    for j in range(0, whole, 4):
        a += x[j]
        b += x[j + 1]
        c += x[j + 2]
        d += x[j + 3]
    for j in range(whole, x.size):
        a += x[j]
    return (a + b) + (c + d)


@jit_lean
def sum_of_products(one: Array, other: Array, n: int) -> float:
    """The sum of the first n products."""
    a = b = c = d = 0.0
    whole = n - n % 4
    for j in range(0, whole, 4):
        a += one[j] * other[j]
        b += one[j + 1] * other[j + 1]
        c += one[j + 2] * other[j + 2]
        d += one[j + 3] * other[j + 3]
    for j in range(whole, n):
        a += one[j] * other[j]
    return (a + b) + (c + d)


@jit_lean
def largest(x: Array) -> float:
    """The largest number."""
    a, b, c, d = x[0], x[0], x[0], x[0]
    whole = x.size - x.size % 4
    for j in range(0, whole, 4):
        a = x[j] if x[j] > a else a
        b = x[j + 1] if x[j + 1] > b else b
        c = x[j + 2] if x[j + 2] > c else c
        d = x[j + 3] if x[j + 3] > d else d
    for j in range(whole, x.size):
        a = x[j] if x[j] > a else a
    return float(max(max(a, b), max(c, d)))
