"""The posterior of a change rate under a gamma prior, integrated exactly enough to invert it.

Over θ = ln rate the posterior density is e^{aθ − B·rate}·∏(1 − e^{−rate·t})^w: log-concave, so it has one peak and
can be cut into panels on both sides until it has fallen by e^{−34}. Each panel is ten Gauss–Legendre points; the
polynomial through them is integrated in closed form, so moments, quantiles and draws need no further evaluation.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit
from recrawl.estimate.rates.kernels import MAX_EXPONENT, expm1_small, gather, longest_log, pad, score_sums

Array = NDArray[np.float64]

N_NODES = 10
MAX_PANELS = 160
FALL = 34.0
NODES, WEIGHTS = np.polynomial.legendre.leggauss(N_NODES)
# Row k: from values at the nodes to the k-th Legendre coefficient.
TO_LEGENDRE = (
    np.polynomial.legendre.legvander(NODES, N_NODES - 1).T * WEIGHTS * (np.arange(N_NODES)[:, None] + 0.5)
).copy()


@inline
def log_seen(t: Array, w: Array, n: int, rate: float, buffer: Array) -> float:
    """Σ w·ln(1 − e^{−rate·t}) over the first n entries (n a multiple of 8)."""
    scale = rate * (1.0 / 256.0)
    for i in range(n):
        m = expm1_small(min(t[i] * scale, MAX_EXPONENT / 256.0))
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        m = m * (m + 2.0)
        buffer[0, i] = max(m, 1e-300) / (m + 1.0)
    total = 0.0
    product = 1.0
    for i in range(n):
        if w[i] == 1.0:
            product *= buffer[0, i]
            if product < 1e-150:
                total += math.log(product) if product > 0.0 else math.log(buffer[0, i])
                product = 1.0
        elif w[i] > 0.0:
            total += w[i] * math.log(buffer[0, i])
    return total + math.log(product)


@jit
def find_peak(t: Array, w: Array, n: int, a: float, b: float, n_changed: float, buffer: Array) -> tuple[float, float]:
    """θ at the peak of the posterior over ln rate, and the curvature there (positive)."""
    u = math.log((a + n_changed) / b)
    low, high = -math.inf, u + 1e-9
    curve = 1.0
    for _ in range(200):
        rate = math.exp(u)
        q, d, _ = score_sums(t, w, n, rate, buffer)
        slope = a + rate * q - b * rate
        curve = b * rate - rate * q + rate * rate * d
        if slope > 0.0:
            low = u
        else:
            high = u
        moved = u + max(-3.0, min(3.0, slope / curve))
        if not low < moved < high:
            moved = 0.5 * (low + high) if low > -math.inf else u - 1.0
        if abs(moved - u) < 1e-6 * (1.0 + abs(u)) or high - low < 1e-12:
            return moved, curve
        u = moved
    return u, curve


@inline
def fill_panel(
    t: Array,
    w: Array,
    n: int,
    a: float,
    b: float,
    left: float,
    width: float,
    peak: float,
    value: Array,
    buffer: Array,
) -> None:
    """Log density at a panel's nodes, relative to the peak."""
    for j in range(N_NODES):
        u = left + 0.5 * width * (NODES[j] + 1.0)
        rate = math.exp(u)
        value[j] = a * u - b * rate + log_seen(t, w, n, rate, buffer) - peak


@jit
def cut_panels(
    t: Array, w: Array, n: int, a: float, b: float, n_changed: float, edge: Array, value: Array, buffer: Array
) -> tuple[int, float, float]:
    """Panels over the posterior: left ends and widths in ``edge``, densities in ``value``; their number, peak, its
    height."""
    peak, curve = find_peak(t, w, n, a, b, n_changed, buffer)
    rate = math.exp(peak)
    height = a * peak - b * rate + log_seen(t, w, n, rate, buffer)
    count = 0
    for side in (-1.0, 1.0):
        u = peak
        width = min(1.0, 1.0 / math.sqrt(curve))
        while count < MAX_PANELS // 2 + (MAX_PANELS // 2) * (side > 0.0):
            left = u if side > 0.0 else u - width
            fill_panel(t, w, n, a, b, left, width, height, value[count], buffer)
            edge[count, 0], edge[count, 1] = left, width
            count += 1
            u += side * width
            q, _, _ = score_sums(t, w, n, math.exp(u), buffer)
            slope = abs(a + math.exp(u) * (q - b))
            fallen = value[count - 1, N_NODES - 1 if side > 0.0 else 0]
            if fallen < -FALL or u < -700.0:
                break
            width = min(width * (1.3 if side < 0.0 else 1.0), 3.0 / slope)
    for k in range(count):
        for j in range(N_NODES):
            value[k, j] = math.exp(value[k, j])
    return count, peak, height


@inline
def integrate(edge: Array, value: Array, count: int, peak: float, area: Array) -> tuple[float, float, float, float]:
    """Area of each panel; total area, mean rate, its variance and the mean of ln rate."""
    total = first = log_first = 0.0
    for k in range(count):
        area[k] = 0.0
        for j in range(N_NODES):
            share = 0.5 * edge[k, 1] * WEIGHTS[j] * value[k, j]
            u = edge[k, 0] + 0.5 * edge[k, 1] * (NODES[j] + 1.0) - peak
            area[k] += share
            first += share * math.exp(u)
            log_first += share * u
        total += area[k]
    mean = first / total
    spread = 0.0
    for k in range(count):
        for j in range(N_NODES):
            u = edge[k, 0] + 0.5 * edge[k, 1] * (NODES[j] + 1.0) - peak
            spread += 0.5 * edge[k, 1] * WEIGHTS[j] * value[k, j] * (math.exp(u) - mean) ** 2
    rate = math.exp(peak)
    return total, mean * rate, spread / total * rate * rate, log_first / total + peak


@jit
def invert_panel(value: Array, left: float, width: float, wanted: float, area: float) -> float:
    """θ within a panel up to which its polynomial holds the wanted area."""
    coefficient = np.zeros(N_NODES)
    for k in range(N_NODES):
        for j in range(N_NODES):
            coefficient[k] += TO_LEGENDRE[k, j] * value[j]
    target = 2.0 * wanted / width
    low, high = -1.0, 1.0
    x = -1.0 + 2.0 * min(1.0, max(0.0, wanted / area))
    for _ in range(60):
        before, p = 1.0, x
        held = coefficient[0] * (x + 1.0)
        density = coefficient[0] + coefficient[1] * x
        for k in range(1, N_NODES):
            after = ((2 * k + 1) * x * p - k * before) / (k + 1)
            held += coefficient[k] * (after - before) / (2 * k + 1)
            if k + 1 < N_NODES:
                density += coefficient[k + 1] * after
            before, p = p, after
        gap = target - held
        if gap > 0.0:
            low = x
        else:
            high = x
        moved = x + gap / density if density > 0.0 else low - 1.0
        if not low <= moved <= high:
            moved = 0.5 * (low + high)
        if abs(moved - x) < 1e-14:
            break
        x = moved
    return left + 0.5 * width * (x + 1.0)


@jit
def quantile(edge: Array, value: Array, order: NDArray[np.int64], area: Array, total: float, p: float) -> float:
    """The rate below which a share p of the posterior lies."""
    wanted = p * total
    for k in order:
        if wanted <= area[k] or k == order[-1]:
            return math.exp(invert_panel(value[k], edge[k, 0], edge[k, 1], min(wanted, area[k]), area[k]))
        wanted -= area[k]
    return 0.0


@jit
def panel_order(edge: Array, count: int) -> NDArray[np.int64]:
    """Panels from left to right: those left of the peak were cut outwards."""
    n_left = 1
    while n_left < count and edge[n_left, 0] < edge[n_left - 1, 0]:
        n_left += 1
    order = np.arange(count)
    order[:n_left] = order[:n_left][::-1].copy()
    return order


@jit
def posteriors(
    offset: NDArray[np.int64],
    interval: Array,
    changed: NDArray[np.bool_],
    unit: float,
    shape: Array,
    rate: Array,
    probability: Array,
    moments: Array,
    quantiles: Array,
) -> None:
    """Per page: ln evidence, mean, variance, mean of ln rate; and the rates at the given probabilities (one row or
    one per page)."""
    longest = longest_log(offset, len(shape), 16)
    t, w, buffer = np.empty(longest), np.empty(longest), np.empty((3, longest))
    edge, value, area = np.empty((MAX_PANELS, 2)), np.empty((MAX_PANELS, N_NODES)), np.empty(MAX_PANELS)
    for page in range(len(shape)):
        n, unchanged = gather(interval, changed, offset[page], offset[page + 1], unit, t, w)
        a, b = shape[page], rate[page] + unchanged
        n_changed = w[:n].sum()
        count, peak, height = cut_panels(t, w, pad(t, w, n), a, b, n_changed, edge, value, buffer)
        total, mean, variance, log_mean = integrate(edge, value, count, peak, area)
        moments[page, 0] = height + math.log(total) + a * math.log(rate[page]) - math.lgamma(a)
        moments[page, 1], moments[page, 2], moments[page, 3] = mean, variance, log_mean
        order = panel_order(edge, count)
        row = probability[page if len(probability) > 1 else 0]
        for j in range(len(row)):
            quantiles[page, j] = quantile(edge, value, order, area, total, row[j])
