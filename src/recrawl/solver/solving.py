"""solve: the rates at which a budget keeps copies freshest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.model.kinds import Objective, Spacing
from recrawl.model.pages import Pages
from recrawl.solver.curves import build_curves
from recrawl.solver.hosts import limited_hosts
from recrawl.solver.multiplier import PriceSearch
from recrawl.solver.plan import Plan
from recrawl.solver.problem import FREE, Problem

Array = NDArray[np.float64]


def solve(
    pages: Pages,
    budget: float | None = None,
    *,
    price: float | None = None,
    target: float | None = None,
    objective: Objective = "freshness",
    spacing: Spacing = "even",
    floor: ArrayLike = 0.0,
    ceiling: ArrayLike | None = None,
    host_limit: Mapping[Any, float] | None = None,
) -> Plan:
    """The crawl rates that maximise freshness (or minimise the harmonic penalty or the age) under a budget.

    Maximises Σ importance·gain(rate) subject to Σ cost·rate ≤ budget, floor ≤ rate ≤ ceiling and, per host, Σ rate ≤
    its limit. Exactly one of ``budget`` (cost per time), ``price`` (of one unit of cost, in importance × time) and
    ``target`` (freshness to reach at least cost) is given. ``spacing`` is how a page's crawls lie in time: evenly
    (Azar et al. 2018, eq. 6; with noisy signals the thresholds of Busa-Fekete et al. 2025, Theorem 1), at random
    (Azar et al. 2018, problem 2; Kolobov et al. 2019), or with a probability in each time step (problem 1; Han et al.
    2020). All rates are per the time unit of ``pages.change_rate``.

    Two equal pages share the budget, each crawled every 1/2 time unit:

    >>> plan = solve(Pages([1.0, 1.0]), budget=4.0)
    >>> [round(float(rate), 9) for rate in plan.crawl_rate], round(plan.freshness, 6)
    ([2.0, 2.0], 0.786939)
    """
    goal = _one_goal(budget, price, target)
    if not pages.importance.any():
        raise ParameterError("importance is 0 on every page: there is nothing to keep fresh")
    problem = _problem(pages, objective, spacing, floor, ceiling, host_limit)
    if budget is not None:
        _check_floor(problem, float(budget))
        found = problem.at_budget(float(budget))
    elif price is not None:
        found = problem.at_price(float(price))
    else:
        found = problem.at_target(goal)
    return problem.plan(found, None if budget is None else float(budget), objective)


def _problem(
    pages: Pages,
    objective: Objective = "freshness",
    spacing: Spacing = "even",
    floor: ArrayLike = 0.0,
    ceiling: ArrayLike | None = None,
    host_limit: Mapping[Any, float] | None = None,
) -> Problem:
    curves = build_curves(pages, objective, spacing, floor, ceiling)
    return Problem(curves, limited_hosts(pages, curves, host_limit))


def budget_curve(pages: Pages, least: float, most: float, points: int, **options: Any) -> tuple[Array, Array]:
    """Budgets from about ``least`` to ``most``, ascending, and the threshold at each; ``options`` are those of `solve`.

    Thresholds fall in equal ratios: only the first and the last are searched for, roughly. If the pages cannot use
    ``most``, the last budget is what they can use, and its threshold is 0.

    >>> budgets, thresholds = budget_curve(Pages([1.0, 4.0]), 0.5, 8.0, 5)
    >>> [bool(abs(solve(Pages([1.0, 4.0]), b).threshold / t - 1) < 1e-6) for b, t in zip(budgets, thresholds)]
    [True, True, True, True, True]
    """
    problem = _problem(pages, **options)
    typical = problem.curves.typical_price(least) or 1.0
    usable = math.inf if problem.unlimited else problem.spent(typical * FREE)
    if usable <= least:
        return np.array([usable]), np.zeros(1)
    ends = (least, most) if usable > most else (least, least + 0.98 * (usable - least))
    high, low = (PriceSearch(problem.spent, budget, close=0.05).run(typical).prices()[1] for budget in ends)
    prices = np.geomspace(high, min(low, high), points)
    budgets = np.array([problem.spent(price) for price in prices.tolist()])
    return (budgets, prices) if usable > most else (np.append(budgets, usable), np.append(prices, 0.0))


def _one_goal(budget: float | None, price: float | None, target: float | None) -> float:
    given = {k: v for k, v in (("budget", budget), ("price", price), ("target", target)) if v is not None}
    if len(given) != 1:
        raise ParameterError(f"exactly one of budget, price and target is needed, not {len(given)}")
    ((name, value),) = given.items()
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is {value!r}: a number is needed") from None
    if not (number > 0 and math.isfinite(number)):
        raise ParameterError(f"{name} is {number}: must be finite and above 0")
    if name == "target" and number >= 1:
        raise ParameterError(f"target is {number}: must lie below 1")
    return number


def _check_floor(problem: Problem, budget: float) -> None:
    least = problem.least
    if least > budget * (1 + 1e-12):
        raise ParameterError(f"floor: keeping to it costs {least:.6g} per time, above the budget of {budget:.6g}")
