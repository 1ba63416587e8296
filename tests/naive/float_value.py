"""Crawl values by the printed formulas in ordinary floats: fast enough to value every page at every step of a test."""

from __future__ import annotations

import math

from scipy import integrate, special

OVERDUE = 1e250


def _series(x: float, coefficient) -> float:
    return math.fsum(coefficient(k) * x**k for k in range(2, 40))


def plain(objective: str, change_rate: float, evidence: float, elapsed: float) -> float:
    """Value per importance without signals: freshness (also with a gamma posterior behind the rate), harmonic, age."""
    x = change_rate * elapsed
    if objective == "freshness":
        return (special.gammainc(2, x) if math.isinf(evidence) else _posterior(x, evidence)) / change_rate
    if objective == "harmonic":
        if x < 1:
            return _series(x, lambda k: (-1) ** k / math.factorial(k)) / change_rate
        return (x - 1 + math.exp(-x)) / change_rate
    if x < 1:  # ∫ u(1 − e^{−u}) du, term by term
        series = _series(x, lambda k: 0.0 if k == 2 else (-1) ** (k + 1) / (math.factorial(k - 2) * k))
        return series / change_rate**2
    return (x * x / 2 - special.gammainc(2, x)) / change_rate**2


def _posterior(x: float, shape: float) -> float:
    """∫₀ˣ u (1 + u/a)^{−a−1} du = a² ∫₀^l (e^v − 1) e^{−av} dv, l = log(1 + x/a)."""
    length = math.log1p(x / shape)
    end = min(length, 60 / shape) if shape > 2 else length
    inside = integrate.quad(lambda v: math.expm1(v) * math.exp(-shape * v), 0, end, epsrel=1e-12, epsabs=0, limit=200)
    return shape * shape * inside[0]


def noisy(
    alpha: float, gamma: float, kappa: float, change_rate: float, offset: float, heard: float, terms: float
) -> float:
    """V(s) = (1/γ) Σ_{iκ<s} e^{−iκ} G_i per importance, s = offset + heard; alpha 0: (1/γ) Σ (e^{−iκ} − e^{−s})."""
    s = offset + heard
    if math.isinf(heard) and (math.isinf(kappa) or math.isinf(terms)):
        return 1 / change_rate
    if s <= 0:
        return 0.0
    if math.isinf(s):
        return sum(math.exp(-i * kappa) * (gamma / (alpha + gamma)) ** (i + 1) for i in range(int(terms))) / gamma
    if s > 45 and math.isinf(terms):
        return 1 / change_rate
    total = []
    i = 0
    while i < terms:
        rest = s - (i * kappa if i else 0.0)
        if rest <= 1e-14 * s:
            break
        if alpha == 0:
            part = -math.exp(-i * kappa if i else 0.0) * math.expm1(-rest)
        else:
            part = math.exp(-i * kappa if i else 0.0) * _after_within(i + 1, rest, alpha, gamma)
        total.append(part)
        if part < 1e-18 * total[0] or math.isinf(kappa):
            break
        i += 1
    return math.fsum(total) / gamma


def _after_within(a: int, rest: float, alpha: float, gamma: float) -> float:
    """G: the chance that an exponential(α) time comes within rest/α but after a signals at rate γ."""
    share = gamma / (alpha + gamma)
    x = gamma * rest / alpha
    y = x * (1 + alpha / gamma)
    if rest > 0.05:
        first = share**a * special.gammainc(a, y)
        second = math.exp(-rest) * special.gammainc(a, x)
        if first - second > 1e-4 * first:
            return float(first - second)
    total, m = [], 1
    while True:  # g^a Σ_m Poisson(a + m; y)(1 − g^m)
        j = a + m
        total.append(math.exp(j * math.log(y) - y - math.lgamma(j + 1)) * -math.expm1(m * math.log(share)))
        if j > y and total[-1] <= 1e-18 * max(total):
            return share**a * math.fsum(total)
        m += 1
        if m > 20_000:
            return share**a * math.fsum(total)
