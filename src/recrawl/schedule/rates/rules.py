"""Crawl rates that are not the optimum of a budget but a rule: equal, or in proportion to something."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.model.pages import Pages
from recrawl.schedule.table import column_of
from recrawl.solver.plan import Plan
from recrawl.solver.solving import solve

Array = NDArray[np.float64]
Rule = Literal["uniform", "change-weighted", "click-weighted", "impression-weighted", "lambda", "fixed"]
RULES: tuple[str, ...] = get_args(Rule)


def proportional_rates(weight: ArrayLike, budget: float, ceiling: ArrayLike | None = None) -> Array:
    """Rates min(m·weight, ceiling) that add up to the budget; what a page at its ceiling leaves goes to the others.

    The multiplier m is exact: pages reach their ceiling in the order of ceiling/weight, so one sort finds which do.
    Where all pages with a weight reach it, the rest of the budget is not used; a weight of 0 gets no crawls. (The
    proportional strategies of Han et al. 2020, with the clip at one crawl a step that the paper leaves out.)

    Of a budget of 3 the first page may take 1; the other two share what is left as 1 : 3:

    >>> proportional_rates([8.0, 1.0, 3.0], budget=3.0, ceiling=[1.0, 2.0, 2.0]).tolist()
    [1.0, 0.5, 1.5]
    """
    share = _column("weight", weight)
    if not (np.isfinite(budget) and budget >= 0):
        raise ParameterError(f"budget is {budget}: must be finite and at least 0")
    if not np.isfinite(share).all():
        raise ParameterError(f"weight, row {int(np.argmin(np.isfinite(share)))}: must be finite")
    top = np.broadcast_to(np.inf if ceiling is None else _column("ceiling", ceiling), share.shape)
    most = share.max(initial=0.0)
    if most == 0 or budget == 0:
        return np.zeros(share.shape)
    used = share > 0
    share, top = share[used] / most, top[used]
    rate = np.zeros(used.shape)
    rate[used] = np.minimum(_multiplier(share, top, float(budget)) * share, top)
    return rate


def _multiplier(share: Array, top: Array, budget: float) -> float:
    """m with Σ min(m·share, top) = budget, or the largest number where even the ceilings cost less."""
    with np.errstate(over="ignore"):
        ratio = top / share
    order = np.argsort(ratio, kind="stable")
    n_finite = int(np.searchsorted(ratio[order], np.inf))
    clipped = np.concatenate([[0.0], np.cumsum(top[order[:n_finite]])])
    free = np.concatenate([np.cumsum(share[order][::-1])[::-1], [0.0]])[: n_finite + 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        candidate = (budget - clipped) / free
    fits = (candidate <= np.concatenate([ratio[order[:n_finite]], [np.inf]])) & (free > 0)
    return float(candidate[np.argmax(fits)]) if fits.any() else float(np.finfo(np.float64).max)


def rule_rates(rule: str, columns: dict[str, Array], budget: float, ceiling: float | None) -> Array:
    """Crawl rates of a rule from the columns change_rate, importance, impression and crawl_rate.

    >>> rule_rates("change-weighted", {"change_rate": np.array([1.0, 3.0])}, budget=2.0, ceiling=None).tolist()
    [0.5, 1.5]
    """
    n = len(columns["change_rate"])
    if rule == "fixed":
        rate = columns["crawl_rate"]
        known = ~np.isnan(rate)
        return np.where(known, rate, rate[known].mean() if known.any() else 0.0)
    if rule == "lambda":
        return _step_rates(columns["change_rate"], columns["importance"], budget, 1.0 if ceiling is None else ceiling)
    weight = {
        "uniform": np.ones(n),
        "change-weighted": columns["change_rate"],
        "click-weighted": columns.get("importance"),
        "impression-weighted": columns.get("impression"),
    }[rule]
    assert weight is not None
    return proportional_rates(weight, budget, ceiling)


def _step_rates(change_rate: Array, importance: Array, budget: float, ceiling: float) -> Array:
    """The optimum of a crawl with some probability in each step of length 1/ceiling."""
    if budget == 0 or not (change_rate * importance > 0).any():
        return np.zeros(len(change_rate))
    per_step = Pages(change_rate / ceiling, importance)
    return np.array(solve(per_step, budget / ceiling, spacing="steps").crawl_rate * ceiling)


def check_rule(rule: str, change_rate: Array, ceiling: float | None) -> None:
    """Raise where a rule cannot use these pages."""
    step = 1.0 if ceiling is None else 1.0 / ceiling
    if rule == "lambda" and (change_rate * step > 1).any():
        row = int(np.argmax(change_rate * step > 1))
        raise ParameterError(f"change_rate, row {row}: at most 1 per step, and a step is 1/ceiling = {step:g}")


def rule_of(rates: Any) -> tuple[str, ArrayLike | None]:
    """The name of a rule, or "fixed" with the rates of a plan or an array."""
    if isinstance(rates, str):
        if rates not in RULES or rates == "fixed":
            raise ParameterError(f"rates {rates!r} is not one of {', '.join(RULES[:-1])}, nor a plan, nor an array")
        return rates, None
    return "fixed", rates.crawl_rate if isinstance(rates, Plan) else _column("rates", rates)


def own_columns(n: int, impression: ArrayLike | None, crawl_rate: ArrayLike | None) -> dict[str, Array]:
    """The columns that rules need beyond those of ``Pages``; a rate that is not given is NaN."""
    shown = column_of("impression", impression, n, 0.0)
    rate = column_of("crawl_rate", crawl_rate, n, np.nan)
    for name, column in (("impression", shown), ("crawl_rate", rate)):
        if (column < 0).any() or np.isinf(column).any():
            raise ParameterError(f"{name} must be finite and at least 0")
    return {"impression": shown, "crawl_rate": rate}


def _column(name: str, value: ArrayLike) -> Array:
    try:
        column = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is not an array of numbers") from None
    if not (column >= 0).all():
        raise ParameterError(f"{name}, row {int(np.argmin(column >= 0))}: must be at least 0")
    return column
