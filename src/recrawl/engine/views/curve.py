"""The threshold of an engine at several budgets, from what it believes: what a shard says when a budget is divided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.policies.plan import as_used, spacing_of
from recrawl.engine.policies.price import bounding_rates
from recrawl.errors import ParameterError
from recrawl.estimate.sampling import draw
from recrawl.model.pages import Pages
from recrawl.schedule.exact import access
from recrawl.solver.solving import budget_curve, solve

if TYPE_CHECKING:
    from recrawl.engine.questions import Questions

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

MOST_PAGES = 5_000  # that a curve is computed from; of more, a sample
_MOST_HOSTS = 200  # whose delays are taken into account, those that exceed it most
_POINTS = 17


def threshold_curve(engine: Questions, least: float, most: float, now: float, horizon: float) -> tuple[Array, Array]:
    """Budgets from about ``least`` to ``most``, ascending, and the threshold at each.

    A plan of the long run at the beliefs. Pages that are worth more than a threshold already are behind that plan; to
    crawl them within ``horizon`` costs more, and the budgets returned contain it.
    """
    if not (0 < least <= most < np.inf and horizon > 0):
        raise ParameterError("threshold_curve: 0 < least <= most is needed, and a horizon above 0")
    rows, weight = _sample(engine)
    if not access.importance(engine.scheduler, rows).any():  # no page, or none that counts
        return np.array([least]), np.zeros(1)
    pages = _weighted(engine, engine.pages(rows), weight)
    limits = _limits(engine, pages, rows)
    kept = 1.001 * float(np.sum(limits["floor"] * pages.cost))  # floors come first, whatever else is worth
    if engine.hosts_ruled:
        pages, limits = _with_hosts(engine, pages, rows, limits, kept + most)
    budgets, thresholds = budget_curve(pages, kept + least, kept + most, _POINTS, **limits)
    if engine.settings.price > 0.0:
        thresholds = np.where(thresholds < engine.settings.price, 0.0, thresholds)
    behind = _behind(engine, rows, weight, now, thresholds) / horizon
    return _ascending(budgets + np.where(thresholds > 0, behind, 0.0)), thresholds


def _ascending(budgets: Array) -> Array:
    """The same numbers, each a little above the one before it at least."""
    return np.asarray(np.maximum.accumulate(budgets) * (1.0 + 1e-9 * np.arange(len(budgets))))


def _weighted(engine: Questions, pages: Pages, weight: Array) -> Pages:
    """Pages as the engine's choice sees them, each as many as it stands for; uncertain rates where plans take them."""
    used = as_used(engine, pages)
    uncertain = engine.settings.objective == "freshness" and spacing_of(engine) == "even"
    evidence = used.evidence if uncertain else np.inf
    return used.replace(importance=used.importance * weight, cost=used.cost * weight, evidence=evidence)


def _sample(engine: Questions) -> tuple[Ids, Array]:
    """Pages that may be crawled, at most `MOST_PAGES`, and how many each stands for."""
    ids = engine.ids()
    sample = draw(access.importance(engine.scheduler, ids), MOST_PAGES, np.random.default_rng(0))
    rows, weight = ids[sample.rows], sample.stands_for
    waiting = engine.eligibility
    kept = ~waiting.is_paused(rows)
    kept &= np.array([not waiting.times_gone(page) for page in rows.tolist()], np.bool_)
    return rows[kept], weight[kept]


def _limits(engine: Questions, pages: Pages, rows: Ids) -> dict[str, Any]:
    """What bounds the rates of pages beside the budget: objective, floors, too small chances of a change."""
    limits: dict[str, Any] = {"objective": engine.settings.objective, "spacing": spacing_of(engine)}
    limits["floor"] = np.maximum(access.floors(engine.scheduler, rows), bounding_rates(engine, pages))
    chance = engine.settings.min_change_probability
    if chance > 0.0:
        shape = np.minimum(np.broadcast_to(pages.evidence, len(pages)), 1e9)
        with np.errstate(over="ignore"):
            ceiling = pages.change_rate / (shape * np.expm1(-np.log1p(-chance) / shape))
        limits["ceiling"] = np.maximum(ceiling, np.maximum(limits["floor"], 1e-300))
    return limits


def _with_hosts(
    engine: Questions, pages: Pages, rows: Ids, limits: dict[str, Any], most: float
) -> tuple[Pages, dict[str, Any]]:
    """The same with the hosts whose delay can bind: those that would get more at the largest budget."""
    number = access.host_numbers(engine.scheduler, rows)
    stands_for = pages.cost / access.cost(engine.scheduler, rows)
    rate = solve(pages, most, **limits).crawl_rate
    crawls = np.bincount(number + 1, rate * stands_for)
    count, all_ = np.bincount(number + 1), np.bincount(number + 1, stands_for)
    bound: list[tuple[float, int, float]] = []
    for k, spacing in enumerate(access.host_spacings(engine.scheduler)[: len(crawls) - 1], 1):
        if spacing > 0.0 and crawls[k] * spacing > 1.0:
            bound.append((-float(crawls[k] * spacing), k - 1, float(count[k] / all_[k] / spacing)))
    found = {host: limit for _, host, limit in sorted(bound)[:_MOST_HOSTS]}
    if not found:
        return pages, limits
    floor = np.where(np.isin(number, list(found)), 0.0, limits["floor"])
    return pages.replace(host=number), {**limits, "floor": floor, "host_limit": found}


def _behind(engine: Questions, rows: Ids, weight: Array, now: float, thresholds: Array) -> Array:
    """How many pages are worth more than each threshold now."""
    if engine.settings.policy != "value":
        return np.zeros(len(thresholds))
    value = engine.scheduler.value(rows, max(now, engine.now))
    order = np.argsort(value)
    above = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)
    return np.asarray(above[np.searchsorted(value[order], thresholds, side="right")])
