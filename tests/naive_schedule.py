"""Slow, plain twins of what the schedule part computes; they import nothing from the package."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def proportional(weight: Sequence[float], budget: float, ceiling: Sequence[float]) -> list[float]:
    """Rates in proportion to weight, by repeated passes: who would exceed the ceiling gets it, the rest go on."""
    rate = [0.0] * len(weight)
    open_pages = [i for i, w in enumerate(weight) if w > 0]
    left = budget
    while open_pages:
        total = sum(weight[i] for i in open_pages)
        over = [i for i in open_pages if left * weight[i] / total >= ceiling[i]]
        if not over:
            for i in open_pages:
                rate[i] = left * weight[i] / total
            break
        for i in over:
            rate[i] = ceiling[i]
            left -= ceiling[i]
        open_pages = [i for i in open_pages if i not in over]
        if left <= 0:
            break
    return rate


def deadline_schedule(rates: Sequence[Fraction], slots: Sequence[Fraction]) -> list[int | None]:
    """Which page each slot goes to: of the crawls released by then, the one due first (lowest page)."""
    done = [0] * len(rates)
    order: list[int | None] = []
    for now in slots:
        released = [k for k, rate in enumerate(rates) if rate > 0 and done[k] / rate <= now]
        best = min(released, key=lambda k: ((done[k] + 1) / rates[k], k), default=None)
        if best is not None:
            done[best] += 1
        order.append(best)
    return order


def integral(times: Sequence[Fraction], budgets: Sequence[Fraction], first: Fraction, last: Fraction) -> Fraction:
    """∫ budget dt from first to last, where budgets[i] holds from times[i] on."""
    total = Fraction(0)
    for i, budget in enumerate(budgets):
        begin = max(first, times[i])
        end = min(last, times[i + 1]) if i + 1 < len(times) else last
        if end > begin:
            total += budget * (end - begin)
    return total


def worst_window(
    starts: Sequence[Fraction],
    times: Sequence[Fraction],
    budgets: Sequence[Fraction],
    catch_up: Fraction = Fraction(0),
) -> Fraction:
    """The largest excess, over all windows, of starts over the budget's integral + catch_up·(its maximum there)."""
    worst = Fraction(-1)
    for i, first in enumerate(starts):
        for j in range(i, len(starts)):
            last = starts[j]
            inside = [
                b for k, b in enumerate(budgets) if times[k] <= last and (k + 1 == len(times) or times[k + 1] >= first)
            ]
            allowed = integral(times, budgets, first, last) + catch_up * max(inside)
            worst = max(worst, j - i + 1 - allowed)
    return worst


def equal_slope_split(curves: Sequence[tuple[float, float]], budget: float) -> list[float]:
    """Budgets b_i = (a_i/Λ)^(1/p_i) of thresholds Λ = a_i·b_i^(−p_i) that are equal and add up, by bisection."""
    low, high = 1e-30, 1e30
    for _ in range(400):
        middle = (low * high) ** 0.5
        if sum((a / middle) ** (1 / p) for a, p in curves) > budget:
            low = middle
        else:
            high = middle
    return [(a / high) ** (1 / p) for a, p in curves]
