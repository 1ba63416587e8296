"""Joint maximum likelihood of what changes a page and what its signals are worth, for many pages or groups at once.

P(changed) = 1 − e^{−s}, s = base + Σ_j p_j·x_j, p ≥ 0: the log likelihood is concave in p. A prior is a pair of
fractional pseudo-observations per parameter, which keeps that form. Newton's method with the bounds as an active
set.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit

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
def solve_free(h: Array, g: Array, free: NDArray[np.bool_], damping: float, step: Array) -> bool:
    """step = (h + damping·diag h)⁻¹g over the free parameters, 0 elsewhere; False unless it leads upwards."""
    d = len(g)
    m = np.empty((d, d + 1))
    for j in range(d):
        for k in range(d):
            m[j, k] = h[j, k] if free[j] and free[k] else 0.0
        m[j, d] = g[j] if free[j] else 0.0
        m[j, j] = h[j, j] * (1.0 + damping) + 1e-300 if free[j] else 1.0
    for j in range(d):
        for i in range(j + 1, d):
            f = m[i, j] / m[j, j]
            for k in range(j, d + 1):
                m[i, k] -= f * m[j, k]
    upwards = 0.0
    for j in range(d - 1, -1, -1):
        total = m[j, d]
        for k in range(j + 1, d):
            total -= m[j, k] * step[k]
        if not m[j, j] > 0.0:
            return False
        step[j] = min(max(total / m[j, j], -1e200), 1e200)
        upwards += step[j] * g[j]
    return upwards >= 0.0


@inline
def mark_free(p: Array, g: Array, upper: Array, free: NDArray[np.bool_]) -> None:
    for j in range(len(p)):
        free[j] = not ((p[j] <= 0.0 and g[j] <= 0.0) or (p[j] >= upper[j] and g[j] >= 0.0))


@inline
def try_step(
    x: Array,
    base: Array,
    w: Array,
    n: int,
    unchanged: Array,
    upper: Array,
    p: Array,
    step: Array,
    tried: Array,
    value: float,
    g: Array,
    h: Array,
) -> float:
    """Go along the step, cut at the bounds, halved until the likelihood does not fall; relative move, or −1."""
    size = 1.0
    for _ in range(40):
        moved = 0.0
        for j in range(len(p)):
            tried[j] = min(upper[j], max(0.0, p[j] + size * step[j]))
            moved = max(moved, abs(tried[j] - p[j]) / (abs(p[j]) + 1e-300))
        if value_and_slopes(x, base, w, n, unchanged, tried, g, h, False) - value >= -1e-13 * abs(value):
            return moved
        size *= 0.5
    return -1.0


@jit
def climb(x: Array, base: Array, w: Array, n: int, unchanged: Array, upper: Array, p: Array, h: Array) -> None:
    """From a start p inside the bounds to the maximum; leaves the negative Hessian there in h.

    If parameters cannot be distinguished (every signal came with the same interval), the Hessian is singular: damping.
    """
    d = len(p)
    g, step, tried = np.empty(d), np.zeros(d), np.empty(d)
    free = np.empty(d, np.bool_)
    damping = 1e-14
    value = value_and_slopes(x, base, w, n, unchanged, p, g, h, True)
    for _ in range(300):
        mark_free(p, g, upper, free)
        moved = -1.0
        if solve_free(h, g, free, damping, step):
            moved = try_step(x, base, w, n, unchanged, upper, p, step, tried, value, g, h)
        if moved < 0.0:
            damping = max(damping * 100.0, 1e-10)
            if damping > 1e6:
                break
            continue
        p[:] = tried
        value = value_and_slopes(x, base, w, n, unchanged, p, g, h, True)
        damping = max(damping * 0.01, 1e-14)
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
