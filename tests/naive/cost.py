"""Slow, plain twins of the costs without signals: quadrature of the definitions with mpmath.

N(u) is Poisson(Δu), the number of changes a copy of age u has missed, T the time of the first one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from mpmath import inf, mp, mpf

DIGITS = 50


def _doubling(first: mpf, last: mpf) -> list[mpf]:
    """0, first, 2·first, … up to last: panels that an integrand with one scale is smooth on."""
    cuts = [mpf(0)]
    while first < last:
        cuts.append(first)
        first *= 2
    return [*cuts, last]


def _area(integrand: Callable[[mpf], mpf], scale: mpf, last: mpf) -> mpf:
    """∫₀^last, on panels that double from half the smallest scale of the integrand."""
    cuts = _doubling(min(scale, last) / 2, last)
    return mp.fsum(mp.quad(integrand, [a, b], method="gauss-legendre") for a, b in pairwise(cuts))


def expected_harmonic(change_rate: float, elapsed: float) -> float:
    """c(u) = E[H(N(u))] = Σ_n H(n) e^{−x} x^n/n!, x = Δu, summed from the definition."""
    with mp.workdps(DIGITS):
        x = mpf(change_rate) * elapsed
        weight, harmonic, total, n = mp.exp(-x), mpf(0), mpf(0), 0
        while n < 2 * x + 20 or weight * harmonic > total * mpf(10) ** -DIGITS:
            n += 1
            weight *= x / n
            harmonic += mpf(1) / n
            total += weight * harmonic
        return float(total)


def _harmonic_slope(change: mpf, u: mpf) -> mpf:
    """c′(u) = Δ E[H(N+1) − H(N)] = Δ Σ e^{−x} x^n/(n+1)! = Δ(1 − e^{−x})/x, x = Δu."""
    return change if u == 0 else -mp.expm1(-change * u) / u


def _age_slope(change: mpf, u: mpf) -> mpf:
    """c′(u) = P(T < u) = 1 − e^{−Δu}."""
    return -mp.expm1(-change * u)


Slope = Callable[[mpf, mpf], mpf]


def _index(slope: Slope, change_rate: float, importance: float, elapsed: float) -> float:
    """V(τ) = μ ∫₀^τ u c′(u) du."""
    if change_rate == 0 or importance == 0 or elapsed == 0:
        return 0.0
    with mp.workdps(DIGITS):
        change = mpf(change_rate)
        return float(importance * _area(lambda u: u * slope(change, u), 1 / change, mpf(elapsed)))


def value_harmonic(change_rate: float, importance: float, elapsed: float) -> float:
    """V(τ) = μ ∫₀^τ u c′(u) du with c(u) = E[H(N(u))]."""
    return _index(_harmonic_slope, change_rate, importance, elapsed)


def value_age(change_rate: float, importance: float, elapsed: float) -> float:
    """V(τ) = μ ∫₀^τ u c′(u) du with c(u) = E[(u − T)⁺]."""
    return _index(_age_slope, change_rate, importance, elapsed)


def value_posterior(change_rate: float, importance: float, evidence: float, elapsed: float) -> float:
    """V(τ) = μ ∫₀^τ u (−P′(u)) du with P(u) = (1 + Δu/a)^{−a}, or e^{−Δu} for a = inf."""
    if change_rate == 0 or importance == 0 or elapsed == 0:
        return 0.0
    with mp.workdps(DIGITS + 20):
        change, a = mpf(change_rate), mpf(evidence)
        scale = 1 / change if a == inf else min(mpf(1), a) / change

        def falling(u: mpf) -> mpf:
            x = change * u
            return change * mp.exp(-x if a == inf else -(a + 1) * mp.log1p(x / a))

        return float(importance * _area(lambda u: u * falling(u), scale, mpf(elapsed)))


def _freshness(change: mpf, rate: mpf, spacing: str) -> mpf:
    if spacing == "random":
        return rate / (rate + change)  # ∫ ρe^{−ρu} e^{−Δu} du
    if spacing == "even":
        return -mp.expm1(-change / rate) * rate / change  # ρ ∫₀^{1/ρ} e^{−Δu} du
    if spacing == "steps":
        return rate / (1 - (1 - rate) * (1 - change))
    raise ValueError(spacing)


def freshness(change_rate: float, crawl_rate: float, spacing: str) -> float:
    """Fraction of time a copy is fresh: E[e^{−Δ·age}] over the ages of an even, random or stepped crawl.

    Steps: a crawl with probability p, a change with probability Δ in each: Σ_k p(1−p)^k (1−Δ)^k.
    A page that never changes is fresh even if it is never crawled.
    """
    if change_rate == 0:
        return 1.0
    if crawl_rate == 0:
        return 0.0
    with mp.workdps(DIGITS):
        return float(_freshness(mpf(change_rate), mpf(crawl_rate), spacing))


def freshness_slope(change_rate: float, crawl_rate: float, spacing: str) -> float:
    """∂freshness/∂ρ at ρ > 0 by a central difference."""
    if change_rate == 0:
        return 0.0
    with mp.workdps(2 * DIGITS):
        return float(_diff(lambda rate: _freshness(mpf(change_rate), rate, spacing), mpf(crawl_rate)))


def _diff(function: Callable[[mpf], mpf], x: mpf) -> mpf:
    """f′(x) by the central difference (f(x+h) − f(x−h))/2h, h = x·1e-15: error of order 1e-30."""
    h = x * mpf(10) ** -15
    return (function(x + h) - function(x - h)) / (2 * h)


def _cost(slope: Slope, change_rate: float, rate: mpf, spacing: str) -> mpf:
    """E[c(age)]: ρ∫₀^{1/ρ} c du = ∫₀^{1/ρ} (1 − ρu) c′(u) du, or ∫ ρe^{−ρu} c(u) du = ∫ e^{−ρu} c′(u) du."""
    change = mpf(change_rate)
    scale = 1 / (rate + change)
    if spacing == "even":
        return _area(lambda u: (1 - rate * u) * slope(change, u), scale, 1 / rate)
    if spacing == "random":
        return _area(lambda u: mp.exp(-rate * u) * slope(change, u), scale, 200 / rate)  # e^{−200} is cut off
    raise ValueError(spacing)


def _rounded(slope: Slope, change_rate: float, crawl_rate: float, spacing: str, order: int) -> float:
    """The cost (order 0) or its derivative in the crawl rate (order 1)."""
    if change_rate == 0:
        return 0.0
    if crawl_rate == 0:
        return -math.inf if order else math.inf
    with mp.workdps(DIGITS + 20):

        def cost(rate: mpf) -> mpf:
            return _cost(slope, change_rate, rate, spacing)

        return float(_diff(cost, mpf(crawl_rate)) if order else cost(mpf(crawl_rate)))


def harmonic_cost(change_rate: float, crawl_rate: float, spacing: str) -> float:
    """E[H(changes missed)] of a copy at a random time (μ = 1)."""
    return _rounded(_harmonic_slope, change_rate, crawl_rate, spacing, 0)


def harmonic_cost_slope(change_rate: float, crawl_rate: float, spacing: str) -> float:
    """∂harmonic_cost/∂ρ."""
    return _rounded(_harmonic_slope, change_rate, crawl_rate, spacing, 1)


def age_cost(change_rate: float, crawl_rate: float, spacing: str) -> float:
    """E[time since the first change that was missed] of a copy at a random time (μ = 1)."""
    return _rounded(_age_slope, change_rate, crawl_rate, spacing, 0)


def age_cost_slope(change_rate: float, crawl_rate: float, spacing: str) -> float:
    """∂age_cost/∂ρ."""
    return _rounded(_age_slope, change_rate, crawl_rate, spacing, 1)


def refresh_ratio(crawl_cost: float, stale_cost: float, change_rate: float) -> float:
    """r = tΔ that minimises C_s(1 − (1−e^{−r})/r) + C_cΔ/r: 1 − e^{−r}(1+r) = C_cΔ/C_s, or inf."""
    with mp.workdps(DIGITS):
        ratio = mpf(crawl_cost) * change_rate / stale_cost
        if ratio >= 1:
            return math.inf
        low, high = mpf(0), mpf(1)
        while 1 - mp.exp(-high) * (1 + high) < ratio:
            high *= 2
        while high - low > mpf(2) ** -70 * high:
            mid = (low + high) / 2
            low, high = (mid, high) if 1 - mp.exp(-mid) * (1 + mid) < ratio else (low, mid)
        return float(high)
