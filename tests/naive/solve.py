"""Slow, plain twins of the solvers without noisy signals: bisection on the multiplier, and a convex solver.

Every kind minimises Σ cost_of(ρ_i) subject to Σ c_i ρ_i ≤ budget, floor ≤ ρ_i ≤ ceiling. Kinds:
  random, even, steps        1 − freshness
  harmonic-random            ln((ρ+Δ)/ρ), with complete signals −ln(ρ/Δ), ρ ≤ Δ
  harmonic-even              ρ∫₀^{1/ρ} E[H(N(u))] du
  age-random, age-even       expected age of the copy
  binary-complete-random     Δ/(ρ+Δ), with complete signals 1 − ρ/Δ, ρ ≤ Δ
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, optimize, special

KINDS = (
    "random",
    "even",
    "steps",
    "harmonic-random",
    "harmonic-even",
    "age-random",
    "age-even",
    "binary-complete-random",
)
Floats = Sequence[float] | NDArray[np.float64]


def page_cost(kind: str, change: float, rate: float, complete: bool = False) -> float:
    """The cost of one page of importance 1 at a crawl rate (for steps: a probability), Δ > 0."""
    if complete and kind == "harmonic-random":
        return math.inf if rate == 0 else -math.log(min(1.0, rate / change))
    if complete and kind == "binary-complete-random":
        return 1 - min(1.0, rate / change)
    if kind in ("random", "binary-complete-random"):
        return change / (rate + change)
    if kind == "steps":
        return 1 - rate / (rate + change - rate * change)
    if rate == 0:
        return 1.0 if kind == "even" else math.inf
    y = change / rate
    if kind == "even":
        return 1 + math.expm1(-y) / y
    if kind == "harmonic-random":
        return math.log1p(y)
    if kind == "age-random":
        return change / (rate * (rate + change))
    if kind == "harmonic-even":
        return integrate.quad(
            lambda t: (1 - t) * (y if t == 0 else -math.expm1(-y * t) / t),
            0,
            1,
            epsabs=0,
            epsrel=1e-13,
            limit=200,
        )[0]
    if kind == "age-even":  # ρ∫₀^{1/ρ} (u − (1 − e^{−Δu})/Δ) du = ∫₀¹ (1 − t)(1 − e^{−yt}) dt / ρ
        return integrate.quad(lambda t: (1 - t) * -math.expm1(-y * t), 0, 1, epsabs=0, epsrel=1e-13)[0] / rate
    raise ValueError(kind)


def _alternating(y: float, first: int) -> float:
    """Σ_{k≥first} (−1)^{k−first} y^k/k! for 0 < y ≤ 1."""
    term = y**first / math.factorial(first)
    total, k = term, first
    while abs(term) > 1e-18 * abs(total):
        k += 1
        term *= -y / k
        total += term
    return total


def _age_index(y: float) -> float:
    """∫₀^y x(1 − e^{−x}) dx = y²/2 − P(2, y) = Σ_{k≥1} (−1)^{k+1} y^{k+2}/(k!(k+2))."""
    if y > 1:
        return y * y / 2 - float(special.gammainc(2, y))
    return math.fsum((-1) ** (k + 1) * y ** (k + 2) / (math.factorial(k) * (k + 2)) for k in range(1, 25))


def marginal(kind: str, change: float, rate: float) -> float:
    """−d(page_cost)/dρ without complete signals, at ρ > 0; falls from its limit at 0 to 0."""
    y = change / rate
    if kind in ("random", "binary-complete-random"):
        return change / (rate + change) ** 2
    if kind == "steps":
        return change / (rate + change - rate * change) ** 2
    if kind == "harmonic-random":
        return change / (rate * (rate + change))
    if kind == "age-random":
        return change * (2 * rate + change) / (rate * (rate + change)) ** 2
    # even spacing: the index V at τ = 1/ρ
    if kind == "even":
        return float(special.gammainc(2, y)) / change
    if kind == "harmonic-even":
        return (y + math.expm1(-y) if y > 1 else _alternating(y, 2)) / change
    if kind == "age-even":
        return _age_index(y) / change**2
    raise ValueError(kind)


def page_rate(kind: str, change: float, importance: float, price: float, complete: bool = False) -> float:
    """The rate ≥ 0 at which μ·marginal = price, 0 where it is below the price everywhere."""
    if change == 0 or importance == 0:
        return 0.0
    gain = importance / price
    if complete and kind == "harmonic-random":
        return min(change, gain)
    if complete and kind == "binary-complete-random":
        return change if gain > change else 0.0
    if kind in ("random", "binary-complete-random"):
        return max(0.0, math.sqrt(gain * change) - change)
    if kind == "steps":
        if change == 1:
            return 1.0 if gain > 1 else 0.0
        return min(1.0, max(0.0, (math.sqrt(gain * change) - change) / (1 - change)))
    if kind == "harmonic-random":
        return 2 * gain / (1 + math.sqrt(1 + 4 * gain / change))
    if kind == "even" and gain <= change:
        return 0.0
    low = high = change
    while gain * marginal(kind, change, high) > 1:
        low, high = high, 2 * high
    while gain * marginal(kind, change, low) < 1:
        low, high = low / 2, low
    while high - low > 4e-16 * high:
        mid = (low + high) / 2
        if mid in (low, high):
            break
        low, high = (mid, high) if gain * marginal(kind, change, mid) > 1 else (low, mid)
    return (low + high) / 2


def _tops(kind: str, change_rate: Floats, ceiling: float | Floats, flags: Sequence[bool]) -> list[float]:
    """The ceilings, at most one crawl a step, and at most Δ for pages with complete signals."""
    tops = np.broadcast_to(ceiling, len(change_rate)).tolist()
    if kind == "steps":
        tops = [min(1.0, top) for top in tops]
    return [min(d, top) if flag else top for d, top, flag in zip(change_rate, tops, flags, strict=True)]


def solve_bisect(
    kind: str,
    change_rate: Floats,
    importance: Floats,
    budget: float,
    cost: Floats | None = None,
    floor: float | Floats = 0.0,
    ceiling: float | Floats = math.inf,
    complete: Sequence[bool] | None = None,
) -> tuple[list[float], float]:
    """Optimal rates and the price λ of a unit of budget: bisection on λ, a closed form or bisection per page.

    Where rates jump at λ (linear costs) the ends of the last bracket are mixed to meet the budget. When
    the pages cannot use the whole budget the rates are the largest useful ones and the price is 0.
    """
    n = len(change_rate)
    costs = [1.0] * n if cost is None else [float(c) for c in cost]
    flags = [False] * n if complete is None else list(complete)
    tops = _tops(kind, change_rate, ceiling, flags)
    floors = [min(f, top) for f, top in zip(np.broadcast_to(floor, n).tolist(), tops, strict=True)]

    def rates_at(price: float) -> list[float]:
        rates = []
        for i in range(n):
            rate = page_rate(kind, float(change_rate[i]), float(importance[i]), price * costs[i], flags[i])
            rates.append(min(max(rate, floors[i]), tops[i]))
        return rates

    def spent(rates: list[float]) -> float:
        return math.fsum(c * rate for c, rate in zip(costs, rates, strict=True))

    if spent(floors) > budget:
        raise ValueError("the floor needs more than the budget")
    scale = max(importance) / (max(change_rate) * max(costs))
    low = high = scale
    while spent(rates_at(high)) > budget:
        high *= 4
        if high > 1e200 * scale:  # the floor takes everything
            return rates_at(high), high
    while spent(rates_at(low)) < budget:
        low /= 4
        if low < 1e-200 * scale:
            return rates_at(low), 0.0
    while high - low > 1e-15 * high:
        mid = math.sqrt(low * high)
        if not low < mid < high:
            break
        low, high = (low, mid) if spent(rates_at(mid)) < budget else (mid, high)
    more, less = rates_at(low), rates_at(high)
    gap = spent(more) - spent(less)
    share = (budget - spent(less)) / gap if gap > 0 else 0.0
    return [b + share * (a - b) for a, b in zip(more, less, strict=True)], high


def objective(
    kind: str,
    change_rate: Floats,
    importance: Floats,
    rates: Floats,
    complete: Sequence[bool] | None = None,
) -> float:
    """Σ μ·page_cost over the pages that change and matter."""
    flags = [False] * len(change_rate) if complete is None else complete
    return math.fsum(
        m * page_cost(kind, d, r, f)
        for d, m, r, f in zip(change_rate, importance, rates, flags, strict=True)
        if d > 0 and m > 0
    )


def solve_convex(
    kind: str,
    change_rate: Floats,
    importance: Floats,
    budget: float,
    cost: Floats | None = None,
    floor: float | Floats = 0.0,
    ceiling: float | Floats = math.inf,
    complete: Sequence[bool] | None = None,
) -> tuple[list[float], float]:
    """Rates and Σ μ·page_cost by SLSQP on the primal with numerical gradients, for a few pages with Δ, μ > 0.

    Variables are shares of the budget, kept above 1e-9. On small cases of every kind the objective was within
    1e-9 relative of the optimum and the rates within 1e-7; ask for no more than 1e-7 and 1e-5. It knows
    nothing of multipliers.
    """
    n = len(change_rate)
    costs = np.ones(n) if cost is None else np.asarray(cost, float)
    flags = [False] * n if complete is None else list(complete)
    weight = np.asarray(importance, float) / np.sum(importance)
    upper = np.minimum(np.array(_tops(kind, change_rate, ceiling, flags)) * costs / budget, 1.0)
    lower = np.minimum(np.maximum(np.broadcast_to(floor, n) * costs / budget, 1e-9), upper)
    usable = min(1.0, upper.sum())

    def total(share: NDArray[np.float64]) -> float:
        return objective(kind, change_rate, weight, np.clip(share, lower, upper) * budget / costs, flags)

    def gradient(share: NDArray[np.float64]) -> NDArray[np.float64]:
        slopes = np.empty(n)
        for i in range(n):
            step = 1e-5 * max(share[i], 1e-4)
            a, b = share.copy(), share.copy()
            a[i], b[i] = min(share[i] + step, upper[i]), max(share[i] - step, lower[i])
            slopes[i] = (total(a) - total(b)) / (a[i] - b[i])
        return slopes

    share = lower + (upper - lower) * (usable - lower.sum()) / max((upper - lower).sum(), 1e-300)
    best = share
    for _ in range(6):
        found = optimize.minimize(
            total,
            share,
            jac=gradient,
            method="SLSQP",
            bounds=list(zip(lower, upper, strict=True)),
            constraints={"type": "ineq", "fun": lambda x: usable - x.sum(), "jac": lambda x: -np.ones(n)},
            options={"ftol": 1e-15, "maxiter": 500},
        )
        share = np.clip(found.x, lower, upper)
        share *= min(1.0, usable / share.sum())
        if total(share) < total(best):
            best = share
    rates = best * budget / costs
    return [float(r) for r in rates], objective(kind, change_rate, importance, rates, flags)
