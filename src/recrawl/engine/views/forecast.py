"""Forecast: how fresh the copies would be at another budget, as far as that is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._html import interval, table
from recrawl.engine.policies.plan import as_used, planned_rates, spacing_of
from recrawl.engine.views.population import drawn_missed
from recrawl.engine.views.window import Window, window_freshness
from recrawl.errors import ParameterError
from recrawl.model.freshness import page_freshness
from recrawl.model.pages import Pages
from recrawl.schedule.exact import access
from recrawl.schedule.table import positive

if TYPE_CHECKING:
    from recrawl.engine.questions import Questions

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_DRAWS = 64


@dataclass(frozen=True)
class Forecast:
    """Freshness at a budget: expected, and an interval.

    With ``duration`` the forecast is of the time from ``start`` to ``start + duration``; the interval contains what is
    not known of the change rates and the randomness of that time. Without it the forecast is of the long run at the
    believed rates, and the interval contains what is not known of the rates alone.
    """

    budget: float
    freshness: float
    low: float
    high: float
    level: float
    start: float | None = None
    duration: float | None = None

    def _repr_html_(self) -> str:
        """The figures, and the interval on a line from 0 to 1, for notebooks."""
        rows = [
            ("budget", f"{self.budget:.6g} crawls per time"),
            ("freshness", f"{self.freshness:.4f}"),
            (f"{100 * self.level:g}% interval", f"{self.low:.4f} to {self.high:.4f}"),
        ]
        return table("Forecast", rows) + interval(self.low, self.freshness, self.high)


class Question(NamedTuple):
    """What a forecast is asked for: budget, level of the interval, pages that count, and the time (None: long run)."""

    budget: float
    level: float
    rows: Ids
    window: Window | None


def forecast(engine: Questions, question: Question, rng: np.random.Generator) -> Forecast:
    """The forecast of a window, or of the long run."""
    budget, level, rows, window = question
    if not 0 < level < 1:
        raise ParameterError(f"level is {level}: must lie between 0 and 1")
    if len(rows) == 0:
        raise ParameterError("there are no pages to forecast for")
    if not access.importance(engine.scheduler, rows).sum() > 0:
        raise ParameterError("importance is 0 on every page: there is nothing to forecast")
    if window is None:
        return _interval(budget, _long_run(engine, budget, rows, rng), level)
    if not (window.start >= engine.now and 0 < window.duration < np.inf):
        raise ParameterError("the time to forecast must not begin before the last known time, and last longer than 0")
    found = window_freshness(engine, positive("budget", budget), window, rows, rng)
    return replace(_interval(budget, found, level), start=window.start, duration=window.duration)


def _interval(budget: float, found: Array, level: float) -> Forecast:
    """Mean and interval of draws; so few of them say little of rare ones, hence the normal quantile."""
    mean = float(found.mean())
    apart = NormalDist().inv_cdf(0.5 + level / 2) * float(found.std(ddof=1))
    return Forecast(float(budget), mean, max(mean - apart, 0.0), min(mean + apart, 1.0), level)


def _long_run(engine: Questions, budget: float, rows: Ids, rng: np.random.Generator) -> Array:
    """Plan for the believed rates of all pages; evaluate that plan on some under rates drawn from the beliefs."""
    ids = engine.ids()
    crawl_rate = planned_rates(engine, engine.pages(), budget, ids)[np.isin(ids, rows)]
    rows = np.unique(rows)
    pages, gamma = engine.pages(rows), engine.beliefs.gamma(rows)
    k, population = pages.n_sources, _population_draws(engine, rng)
    tied = np.minimum(float(engine.beliefs.prior.shape) / gamma.shape, 1.0)  # as far as its own crawls do not tell it
    signalled = pages.recall.reshape(len(rows), -1) * pages.change_rate[:, None]
    components = access.components_of(engine.scheduler, rows)
    mixed = components[:, :, 0].any(axis=1)
    found = np.empty(_DRAWS)
    for j in range(_DRAWS):
        own = np.maximum(rng.gamma(gamma.shape, population[j] ** tied / gamma.rate), 1e-12 * gamma.mean)
        own[mixed] = drawn_missed(components[mixed], 1, rng)[0]
        total = own + signalled.sum(axis=1)
        recall = signalled / total[:, None]
        drawn = as_used(engine, Pages(total, pages.importance, recall[:, 0] if k == 1 else recall, pages.false_rate))
        found[j] = float(
            np.average(page_freshness(drawn, crawl_rate, spacing=spacing_of(engine)), weights=pages.importance)
        )
    return found


def _population_draws(engine: Questions, rng: np.random.Generator) -> Array:
    """Draws of the mean rate of all pages over the believed one: as well as the pages that were crawled tell it."""
    belief, rows = engine.beliefs.belief, engine.ids()
    seen = rows[belief.n_crawls[rows] > 0]
    counts = np.ones(len(seen)) if engine.stands_for is None else engine.stands_for[seen]
    known = float(belief.prior[0]) * float(counts.sum())
    return np.asarray(rng.gamma(known, size=_DRAWS) / known) if known > 0.0 else np.ones(_DRAWS)
