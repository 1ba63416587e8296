"""Crawl rates of the long run: what an engine's objective makes of the believed rates and a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.policies.price import bounding_rates
from recrawl.model.pages import Pages
from recrawl.solver.solving import solve

if TYPE_CHECKING:
    from recrawl.engine.core import Core

Array = NDArray[np.float64]


def uses_signals(engine: Core) -> bool:
    """Whether change signals count for the choice of pages."""
    return engine.scheduler.policy != "no-signals"


def as_used(engine: Core, pages: Pages) -> Pages:
    """Pages as the engine's choice sees them: without signals where it ignores them."""
    if uses_signals(engine):
        return pages
    return pages.replace(recall=np.zeros_like(pages.recall), false_rate=np.zeros_like(pages.false_rate))


def planned_rates(engine: Core, pages: Pages, budget: float) -> Array:
    """The crawl rates that are optimal for the engine's objective at a budget, if the believed rates are right.

    With a price, crawls that cost more than they save are left out. The bound on very stale copies is kept as far as
    the budget allows.
    """
    known, objective, price = (
        as_used(engine, pages).replace(evidence=np.inf),
        engine.settings.objective,
        engine.settings.price,
    )
    if price > 0.0:
        priced = solve(known, price=price, objective=objective, floor=bounding_rates(engine, pages))
        if float(known.cost @ priced.crawl_rate) <= budget:
            return priced.crawl_rate
    return solve(known, budget, objective=objective).crawl_rate
