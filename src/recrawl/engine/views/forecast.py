"""Forecast: how fresh the copies would be at another budget, as far as that is known."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from recrawl.engine.views.expected import drawn_means, moved_gamma
from recrawl.errors import ParameterError
from recrawl.estimate.gamma import GammaPrior
from recrawl.model.freshness import page_freshness
from recrawl.model.pages import Pages
from recrawl.solver.solving import solve

if TYPE_CHECKING:
    from recrawl.engine.engine import Engine

_DRAWS = 64


@dataclass(frozen=True)
class Forecast:
    """Long-run freshness at a budget: expected, and an interval from what is not known of the change rates."""

    budget: float
    freshness: float
    low: float
    high: float
    level: float


def forecast(engine: Engine, budget: float, level: float, rng: np.random.Generator) -> Forecast:
    """Plan for the believed rates; evaluate that plan under rates drawn from the beliefs."""
    if not 0 < level < 1:
        raise ParameterError(f"level is {level}: must lie between 0 and 1")
    rows = engine.ids()
    if len(rows) == 0:
        raise ParameterError("there are no pages to forecast for")
    pages = engine.pages()
    believed = pages.replace(evidence=np.inf)
    plan = solve(believed, budget)
    means, k = drawn_means(engine, _DRAWS, rng), pages.n_sources
    siblings = engine.effects.sibling_rate(engine.scheduler, rows)
    signalled = pages.recall.reshape(len(rows), -1) * pages.change_rate[:, None]
    found = np.empty(_DRAWS)
    for j in range(_DRAWS):
        gamma = GammaPrior(*moved_gamma(engine, rows, float(means[j])).T)
        missed = np.maximum(rng.gamma(gamma.shape, 1.0 / gamma.rate), 1e-12 * gamma.mean)
        total = missed + siblings + signalled.sum(axis=1)
        recall = signalled / total[:, None]
        drawn = Pages(total, pages.importance, recall[:, 0] if k == 1 else recall, pages.false_rate)
        found[j] = float(np.average(page_freshness(drawn, plan.crawl_rate), weights=pages.importance))
    mean = float(found.mean())
    apart = NormalDist().inv_cdf(0.5 + level / 2) * float(found.std(ddof=1))  # so few draws say little of rare ones
    return Forecast(float(budget), mean, max(mean - apart, 0.0), min(mean + apart, 1.0), level)
