"""Planners by the names of Kolobov et al. 2019: believed pages and a budget in, crawl rates out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.model.freshness import page_cost
from recrawl.model.kinds import Objective
from recrawl.model.pages import Pages
from recrawl.schedule.rates.rules import proportional_rates
from recrawl.solver.solving import solve

Array = NDArray[np.float64]

FLOOR_SHARE = 0.4  # BLC_ε: every page gets at least this share of the mean rate


@dataclass(frozen=True)
class Planner:
    """Crawl rates from what is believed; where signals are not used, pages are planned and judged without them."""

    name: str
    rates: Callable[[Pages, float], Array]
    uses_signals: bool = False

    def sees(self, pages: Pages) -> Pages:
        """The pages as this planner knows them."""
        return pages if self.uses_signals else pages.replace(recall=0.0, false_rate=0.0)

    def cost(self, pages: Pages, crawl_rate: Array, objective: Objective) -> float:
        """Mean cost per page of crawling at these rates, at random times: harmonic J_h, or freshness for binary J_b."""
        cost = page_cost(self.sees(pages), crawl_rate, objective, spacing="random")
        return float(np.mean(pages.importance * cost))


def is_complete(pages: Pages) -> NDArray[np.bool_]:
    """Which pages have signals for all changes and for nothing else."""
    return np.asarray((pages.recall == 1) & (pages.false_rate == 0))


def _harmonic(pages: Pages, budget: float) -> Array:
    return solve(pages, budget, objective="harmonic", spacing="random").crawl_rate


def _by_importance(pages: Pages, budget: float) -> Array:
    """Proposition 9: as if all pages without signals had the same importance per change rate, so rates ∝ importance."""
    plain = ~is_complete(pages)
    rate = pages.change_rate.copy()
    if plain.any():
        rate[plain] = pages.importance[plain] * (rate[plain].sum() / pages.importance[plain].sum())
    return _harmonic(pages.replace(change_rate=rate), budget)


def _binary(pages: Pages, budget: float) -> Array:
    return solve(pages, budget, spacing="random").crawl_rate


def _binary_with_floor(pages: Pages, budget: float) -> Array:
    return solve(pages, budget, spacing="random", floor=FLOOR_SHARE * budget / len(pages)).crawl_rate


PLANNERS: dict[str, Planner] = {
    planner.name: planner
    for planner in (
        Planner("LC", _harmonic, uses_signals=True),
        Planner("LCA", _by_importance, uses_signals=True),
        Planner("LC-IO", _harmonic),
        Planner("BLC-eps", _binary_with_floor),
        Planner("BLC", _binary),
        Planner("CC", lambda pages, budget: proportional_rates(pages.change_rate, budget)),
        Planner("UC", lambda pages, budget: np.full(len(pages), budget / len(pages))),
    )
}
