"""Crawl rates of the long run: what objectives, rules and prices make of the believed rates and a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.policies.price import bounding_rates
from recrawl.model.kinds import Spacing
from recrawl.model.pages import Pages
from recrawl.schedule.exact import access
from recrawl.schedule.rates.rules import rule_rates
from recrawl.solver.solving import solve

if TYPE_CHECKING:
    from recrawl.engine.core import Core
    from recrawl.engine.engine import Engine

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

STEPS_A_DAY = 12  # a rule crawls a page at most once in a step (Han et al. 2020: two hours)


def as_used(engine: Core, pages: Pages) -> Pages:
    """Pages as the engine's choice sees them: without signals where it ignores them."""
    if engine.settings.uses_signals:
        return pages
    return pages.replace(recall=np.zeros_like(pages.recall), false_rate=np.zeros_like(pages.false_rate))


def known_pages(engine: Core, rows: Ids) -> Pages:
    """The believed rates of pages, as if they were known, without signals."""
    return as_used(engine, cast("Engine", engine).pages(rows)).replace(evidence=np.inf)


def planned_rates(engine: Core, pages: Pages, budget: float, rows: Ids) -> Array:
    """The crawl rates by which an engine would crawl in the long run at a budget, if the believed rates are right."""
    return engine.choice.rates_at(engine, pages, budget, rows)


def spacing_of(engine: Core) -> Spacing:
    """How the crawls of a page lie in time."""
    return "random" if engine.settings.policy == "poisson" else "even"


def solved_rates(engine: Core, pages: Pages, budget: float, spacing: str) -> Array:
    """The optimal rates for the engine's objective."""
    known = as_used(engine, pages).replace(evidence=np.inf)
    return solve(known, budget, objective=engine.settings.objective, spacing=cast(Spacing, spacing)).crawl_rate


def priced_rates(engine: Core, pages: Pages, budget: float) -> Array:
    """The optimal rates, without crawls that cost more than they save where there is a price.

    The bound on very stale copies is kept as far as the budget allows.
    """
    known, price = as_used(engine, pages).replace(evidence=np.inf), engine.settings.price
    if price > 0.0:
        objective, floor = engine.settings.objective, bounding_rates(engine, pages)
        priced = solve(known, price=price, objective=objective, floor=floor).crawl_rate
        if float(known.cost @ priced) <= budget:
            return priced
    return solved_rates(engine, pages, budget, "even")


def requests_known(engine: Core) -> bool:
    """Whether readers have asked for pages."""
    return engine.requests is not None


def rule_pages_rates(engine: Core, rule: str, pages: Pages, budget: float, rows: Ids) -> Array:
    """The rates of a rule in steps; pages of a sample stand for others by their cost.

    ``click-weighted`` goes by importance and ``impression-weighted`` by readers' requests; while none are known, all
    pages are alike.
    """
    step = engine.settings.day / STEPS_A_DAY
    changes = pages.change_rate * step
    columns = {
        "change_rate": -np.expm1(-changes) if rule == "lambda" else changes,
        "importance": np.asarray(pages.importance / pages.cost),
    }
    if rule == "impression-weighted":
        if engine.requests is None:
            rule = "uniform"
        else:
            columns["impression"] = engine.requests.rate(engine.now, rows)
    columns["change_rate"] = np.where(access.importance(engine.scheduler, rows) > 0, columns["change_rate"], 0.0)
    share = len(pages) / float(np.broadcast_to(pages.cost, len(pages)).sum())
    return np.asarray(rule_rates(rule, columns, budget * share * step, 1.0) / step)
