"""Joint maximum likelihood of what changes a page and what its signals are worth, for many pages or groups at once.

P(changed) = 1 − e^{−s}, s = base + Σ_j p_j·x_j, p ≥ 0: the log likelihood is concave in p. A prior is a pair of
fractional pseudo-observations per parameter, which keeps that form. Newton's method with the bounds as an active
set.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import inline, jit

Array = NDArray[np.float64]

MAX_WEIGHT = 36.0  # e^{−36} is the chance of an outcome that doubles can no longer tell from impossible


@jit
def value_and_slopes(
    x: Array, base: Array, w: Array, n: int, unchanged: Array, p: Array, g: Array, h: Array, slopes: bool
) -> float:
    """Log likelihood of the changed rows x and of the summed unchanged ones; gradient and negative Hessian on
    request."""
    d = len(p)
    value = 0.0
    for j in range(d):
        value -= unchanged[j] * p[j]
    if slopes:
        g[:] = -unchanged
        h[:] = 0.0
    for i in range(n):
        s = base[i]
        for j in range(d):
            s += p[j] * x[i, j]
        if s <= 0.0:
            return -math.inf
        value += w[i] * math.log(-math.expm1(-s))
        if slopes:
            q = 1.0 / math.expm1(min(s, 700.0))
            for j in range(d):
                g[j] += w[i] * q * x[i, j]
                for k in range(j + 1):
                    h[j, k] += w[i] * q * (1.0 + q) * x[i, j] * x[i, k]
    if slopes:
        for j in range(d):
            for k in range(j):
                h[k, j] = h[j, k]
    return value


@jit
def solve_free(h: Array, g: Array, free: NDArray[np.bool_], step: Array) -> None:
    """step = h⁻¹g over the free parameters (0 elsewhere), by elimination with a ridge far below rounding of the
    answer."""
    d = len(g)
    m = np.empty((d, d + 1))
    for j in range(d):
        for k in range(d):
            m[j, k] = h[j, k] if free[j] and free[k] else 0.0
        m[j, d] = g[j] if free[j] else 0.0
        m[j, j] = h[j, j] * (1.0 + 1e-14) + 1e-300 if free[j] else 1.0
    for j in range(d):
        for i in range(j + 1, d):
            f = m[i, j] / m[j, j]
            for k in range(j, d + 1):
                m[i, k] -= f * m[j, k]
    for j in range(d - 1, -1, -1):
        total = m[j, d]
        for k in range(j + 1, d):
            total -= m[j, k] * step[k]
        step[j] = total / m[j, j] if m[j, j] > 0.0 else 0.0


@inline
def mark_free(p: Array, g: Array, upper: Array, free: NDArray[np.bool_]) -> None:
    for j in range(len(p)):
        free[j] = not ((p[j] <= 0.0 and g[j] <= 0.0) or (p[j] >= upper[j] and g[j] >= 0.0))


@jit
def climb(x: Array, base: Array, w: Array, n: int, unchanged: Array, upper: Array, p: Array, h: Array) -> None:
    """From a start p inside the bounds to the maximum; leaves the negative Hessian there in h."""
    d = len(p)
    g, step, tried = np.empty(d), np.zeros(d), np.empty(d)
    free = np.empty(d, np.bool_)
    value = value_and_slopes(x, base, w, n, unchanged, p, g, h, True)
    for _ in range(300):
        mark_free(p, g, upper, free)
        solve_free(h, g, free, step)
        size, moved, gain = 1.0, 0.0, -math.inf
        while size > 1e-12:
            moved = 0.0
            for j in range(d):
                tried[j] = min(upper[j], max(0.0, p[j] + size * step[j]))
                moved = max(moved, abs(tried[j] - p[j]) / (abs(p[j]) + 1e-300))
            gain = value_and_slopes(x, base, w, n, unchanged, tried, g, h, False) - value
            if gain >= -1e-13 * abs(value):
                break
            size *= 0.5
        if size <= 1e-12:
            break
        p[:] = tried
        value = value_and_slopes(x, base, w, n, unchanged, p, g, h, True)
        if moved < 1e-11:
            break


@jit
def fit_weights(
    offset: NDArray[np.int64],
    amount: Array,
    base: Array,
    changed: NDArray[np.bool_],
    pseudo: Array,
    upper: Array,
    out: Array,
    information: Array,
) -> None:
    """Fit every page: ``pseudo[i, j]`` = (amount, changed weight, unchanged weight) of parameter j; ``out`` holds
    the starts."""
    d = amount.shape[1]
    longest = 0
    for page in range(len(out)):
        longest = max(longest, offset[page + 1] - offset[page])
    x, b, w = np.empty((longest + d, d)), np.empty(longest + d), np.empty(longest + d)
    unchanged = np.empty(d)
    for page in range(len(out)):
        unchanged[:] = 0.0
        n = 0
        for i in range(offset[page], offset[page + 1]):
            if changed[i]:
                x[n], b[n], w[n] = amount[i], base[i], 1.0
                n += 1 if b[n] + x[n].sum() > 0.0 else 0
            else:
                unchanged += amount[i]
        for j in range(d):
            if pseudo[page, j, 1] > 0.0:
                x[n] = 0.0
                x[n, j], b[n], w[n] = pseudo[page, j, 0], 0.0, pseudo[page, j, 1]
                n += 1
            unchanged[j] += pseudo[page, j, 0] * pseudo[page, j, 2]
        climb(x, b, w, n, unchanged, upper[page], out[page], information[page])
