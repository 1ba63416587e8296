"""Slow, plain twin of the noisy-signal optimum (Theorem 1): bisection on the threshold, for a few pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from mpmath import inf, mp, mpf
from scipy import optimize

from naive.crawl_value import Source, fresh_time, interval, unit_value_at
from naive.gamma import steady


class Page(NamedTuple):
    """One page with one source of signals."""

    change_rate: float
    importance: float
    recall: float
    false_rate: float


class SignalPlan(NamedTuple):
    """Rates meet the budget; exponents are those at the threshold (inf = never, or only on proof)."""

    rates: list[float]
    exponents: list[float]
    threshold: float
    freshness: float
    page_freshness: list[float]


def value_at(page: Page, exponent: float) -> float:
    """V(s) = μ ∫₀^s e^{−u} ψ(u) du as a function of the staleness exponent, for recall < 1."""

    def figure() -> tuple[mpf, mpf]:
        source = Source(page.change_rate, page.recall, page.false_rate)
        return unit_value_at(source, mpf(exponent), 0, None)

    return float(page.importance * steady(figure, 40))


def _signals_needed(page: Page, threshold: float) -> int:
    """Recall 1: the smallest n ≥ 1 with μ(w − q^n ψ) ≥ threshold, w = (1−q^n)/Δ, ψ = n/γ, q = ν/γ."""
    with mp.workdps(60):
        signal = mpf(page.change_rate) + page.false_rate
        rest = page.false_rate / signal
        low, high = 0, 1

        def below(n: int) -> bool:
            return (1 - rest**n) / page.change_rate - rest**n * n / signal < mpf(threshold) / page.importance

        while below(high):
            low, high = high, 2 * high
        while high - low > 1:
            mid = (low + high) // 2
            low, high = (mid, high) if below(mid) else (low, mid)
        return high


def operate(page: Page, threshold: float) -> tuple[float, float, float]:
    """The exponent ι with V(ι) = threshold > 0, the crawl rate 1/ψ(ι) and the freshness w(ι)/ψ(ι) there.

    Where no exponent has that value (threshold ≥ μ/Δ) the page is never crawled: inf, 0, 0.
    """
    if page.change_rate == 0:
        return math.inf, 0.0, 1.0
    if page.importance <= threshold * page.change_rate:
        return math.inf, 0.0, 0.0
    rates = (page.change_rate, page.recall, page.false_rate)
    if page.recall == 1:
        n = _signals_needed(page, threshold)
        psi, fresh = interval(*rates, 0.0, signals=n), fresh_time(*rates, 0.0, signals=n)
        weight = Source(*rates).weight
        return (math.inf if weight == inf else float(n * weight)), 1 / psi, fresh / psi

    def excess(log_exponent: float) -> float:
        reached = value_at(page, math.exp(log_exponent))
        return math.log(reached / threshold) if reached > 0 else -math.inf

    low, high = -1.0, 0.0
    while excess(low) > 0:
        low, high = 2 * low, low
    while excess(high) < 0:
        low, high = high, high + 1
        if high > 7:  # e^7: the threshold is the limit μ/Δ up to rounding
            break
    else:
        high = optimize.brentq(excess, low, high, xtol=1e-15, rtol=1e-15)
    exponent = math.exp(high)
    psi = interval(*rates, exponent)
    return exponent, 1 / psi, fresh_time(*rates, exponent) / psi


def solve_signals(
    change_rate: Sequence[float],
    importance: Sequence[float],
    recall: Sequence[float],
    false_rate: Sequence[float],
    budget: float,
    cost: Sequence[float] | None = None,
) -> SignalPlan:
    """V_i(ι_i) = c_i Λ (or ι_i = inf) with Σ c_i/ψ_i(ι_i) = budget, by bisection on Λ to 1e-14.

    Where a rate jumps at Λ (recall 1: γ/n to γ/(n+1); proof signals: γ to 0) the ends of the last bracket are
    mixed: rate and freshness of a mixture of two thresholds lie on the straight line between theirs. When the
    pages cannot use the budget (recall 1 everywhere) Λ is 0 and every signal is followed.
    """
    pages = [Page(*map(float, row)) for row in zip(change_rate, importance, recall, false_rate, strict=True)]
    costs = [1.0] * len(pages) if cost is None else [float(c) for c in cost]

    def at(threshold: float) -> list[tuple[float, float, float]]:
        return [operate(page, threshold * c) for page, c in zip(pages, costs, strict=True)]

    def spent(points: list[tuple[float, float, float]]) -> float:
        return math.fsum(c * rate for c, (_, rate, _) in zip(costs, points, strict=True))

    top = max(p.importance / (p.change_rate * c) for p, c in zip(pages, costs, strict=True) if p.change_rate)
    low, high = top / 2, top
    more, less = at(low), at(high)
    while spent(more) < budget and low > 1e-60 * top:
        low, high, less = low / 2, low, more
        more = at(low)
    if spent(more) < budget:
        low, high, less = 0.0, 0.0, more
    while high - low > 1e-14 * high:
        mid = (low + high) / 2
        points = at(mid)
        if spent(points) < budget:
            high, less = mid, points
        else:
            low, more = mid, points
    gap = spent(more) - spent(less)
    share = (budget - spent(less)) / gap if gap > 0 else 0.0
    rates = [b[1] + share * (a[1] - b[1]) for a, b in zip(more, less, strict=True)]
    fresh = [b[2] + share * (a[2] - b[2]) for a, b in zip(more, less, strict=True)]
    total = math.fsum(p.importance * f for p, f in zip(pages, fresh, strict=True))
    freshness = total / math.fsum(p.importance for p in pages)
    return SignalPlan(rates, [point[0] for point in less], high, freshness, fresh)
