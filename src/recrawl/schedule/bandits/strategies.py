"""Strategies: the crawl probabilities per step that a bandit chooses among, from rates per day."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError, unknown
from recrawl.schedule.rates.rules import rule_rates

Array = NDArray[np.float64]
Strategy = Literal["uniform", "change-weighted", "click-weighted", "impression-weighted", "lambda"]
STRATEGIES: tuple[str, ...] = get_args(Strategy)

# The bandits of Han et al. 2020, section 5.4.4, by name.
PRESETS: dict[str, tuple[str, ...]] = {
    "kab2": ("click-weighted", "change-weighted"),
    "kab3": ("click-weighted", "change-weighted", "uniform"),
    "kab4": ("click-weighted", "change-weighted", "uniform", "impression-weighted"),
    "kab5": ("click-weighted", "change-weighted", "uniform", "impression-weighted", "lambda"),
}


def step_change(change: ArrayLike, steps: int) -> Array:
    """The probability of a change in a step, from that in a day of so many steps: 1 − (1 − Δ)^(1/steps).

    >>> step_change([0.75, 1.0], steps=2).tolist()
    [0.5, 1.0]
    """
    daily = _probabilities(change)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(np.log1p(-daily) / _count(steps)))


def strategy_rates(
    strategy: str,
    budget: float,
    *,
    change: ArrayLike,
    click: ArrayLike,
    impression: ArrayLike | None = None,
    steps: int = 12,
) -> Array:
    """The probability with which a strategy crawls each page in one step (Han et al. 2020, table 2, repaired).

    ``budget`` is crawls per day and a day has ``steps`` steps; ``change`` is the probability of a change in a day,
    ``click`` and ``impression`` are rates in any unit. The proportional strategies are kept to one crawl a step and
    hand on what is left; ``lambda`` is (√(μΔ/λ) − Δ)/(1 − Δ) kept between 0 and 1, with the λ that spends the budget:
    pages that never change get nothing, those that change in every step all or nothing (a tie is split). Budget that no
    page with a weight can use is not spent.

    Three crawls a day in two steps; the first page gets one a step, the second what is left:

    >>> strategy_rates("click-weighted", 3.0, change=[0.1, 0.1], click=[9.0, 1.0], steps=2).tolist()
    [1.0, 0.5]
    """
    if strategy not in STRATEGIES:
        raise unknown("strategy", strategy, STRATEGIES)
    if not (np.isfinite(budget) and budget >= 0):
        raise ParameterError(f"budget is {budget}: must be finite and at least 0")
    if strategy == "impression-weighted" and impression is None:
        raise ParameterError("impression: the strategy impression-weighted needs it")
    daily, clicks = _probabilities(change), np.asarray(click, np.float64)
    columns = {"change_rate": daily, "importance": np.broadcast_to(clicks, daily.shape)}
    if impression is not None:
        columns["impression"] = np.broadcast_to(np.asarray(impression, np.float64), daily.shape)
    if strategy == "lambda":
        columns["change_rate"] = step_change(daily, steps)
    return rule_rates(strategy, columns, budget / _count(steps), 1.0)


def arms_of(arms: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """The strategies of a preset (kab2 … kab5), or a list of them as it is.

    >>> arms_of("kab2")
    ('click-weighted', 'change-weighted')
    """
    if isinstance(arms, str):
        if arms not in PRESETS:
            raise unknown("bandit", arms, list(PRESETS))
        return PRESETS[arms]
    for name in arms:
        if name not in STRATEGIES:
            raise unknown("strategy", name, STRATEGIES)
    if not arms or len(set(arms)) < len(arms):
        raise ParameterError("arms: at least one strategy, each once")
    return tuple(arms)


def _probabilities(change: ArrayLike) -> Array:
    daily = np.asarray(change, np.float64)
    bad = ~((daily >= 0) & (daily <= 1))
    if bad.any():
        raise ParameterError(f"change, row {int(np.argmax(bad))}: is a probability, from 0 to 1")
    return daily


def _count(steps: int) -> int:
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise ParameterError(f"steps is {steps!r}: a whole number of at least 1 is needed")
    return int(steps)
