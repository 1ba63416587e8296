"""Which pages are likely enough to have changed, and worth their price: the last step of a pick, after the order.

A page whose chance is under ``min_change_probability``, or whose value is under ``price``, is withdrawn from the
scheduler until it reaches that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.beliefs.staleness_kernels import fill_doubted_at
from recrawl.engine.eligibility.likely_kernels import all_likely
from recrawl.engine.policies.price import worth_at
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.engine.core import Core

Ids = NDArray[np.int64]
Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

_ENOUGH = 10  # crawls after which a page's own belief counts, before the prior was fitted
_PATIENCE = 0.1  # unlikely pages are examined again after so many crawls: a share of these pages


def likely_at(engine: Core, rows: Ids, now: float) -> Array:
    """From when on pages are likely enough to have changed to be picked; now at the earliest.

    That is where the calibrated chance reaches ``min_change_probability``, or a floor its time. No page is held
    back without a copy, or of which too little is known: before the prior was fitted, pages with few crawls.
    """
    begin, floor = access.last_fetched(engine.scheduler, rows), access.floors(engine.scheduler, rows)
    out = chance_at(engine, rows, now, engine.settings.min_change_probability)
    free = (begin <= engine.no_copy_at) | ~known_enough(engine, rows)
    with np.errstate(divide="ignore"):
        out = np.minimum(out, np.where(floor > 0, begin + 1.0 / floor, np.inf))
    return np.asarray(np.where(free, now, np.maximum(out, now)))


def chance_at(engine: Core, rows: Ids, now: float, probability: float) -> Array:
    """From when on pages have changed with a (calibrated) probability, now at the earliest; infinity: never."""
    out, knots = np.empty(len(rows)), engine.calibration.knots
    exponent = -math.log1p(-min(float(np.interp(probability, knots[:, 1], knots[:, 0])), 1.0 - 1e-12))
    fill_doubted_at(access.header(engine.scheduler), engine.beliefs.belief, rows, now, exponent, out)
    return out


def known_enough(engine: Core, rows: Ids) -> Flags:
    """Of which pages enough is known to hold them back: all once the prior was fitted, else those crawled often."""
    belief = engine.beliefs.belief
    if engine.beliefs.fits > 0:
        return np.ones(len(rows), np.bool_)
    return np.asarray(belief.fixed_rate[rows] | (belief.n_crawls[rows] >= _ENOUGH))


def ready_at(engine: Core, rows: Ids, now: float) -> Array:
    """From when on pages may be picked: likely enough to have changed, and worth the price of a crawl.

    A copy that may have been stale for ``very_stale`` with the probability ``very_stale_share`` is worth any price.
    """
    settings = engine.settings
    if settings.price <= 0.0 and settings.very_stale_share <= 0.0 and settings.min_change_probability > 0.0:
        return likely_at(engine, rows, now)
    worth = worth_at(engine, rows, now)
    if settings.very_stale_share > 0.0:
        bound = chance_at(engine, rows, now - settings.very_stale, settings.very_stale_share) + settings.very_stale
        worth = np.minimum(worth, np.maximum(bound, now))
    worth = np.where(known_enough(engine, rows), worth, now)
    return np.maximum(likely_at(engine, rows, now), worth) if settings.min_change_probability > 0.0 else worth


def _ready_from(engine: Core, page: int) -> float | None:
    """From which importance on all pages of a page's cohort may be picked now; None: the page itself may not."""
    row = np.array([page])
    if ready_at(engine, row, engine.now)[0] > engine.now:
        return None
    if engine.settings.price <= 0.0 or not known_enough(engine, row)[0]:
        return 0.0
    value = float(engine.scheduler.value(row, engine.now)[0])
    least = float(access.importance(engine.scheduler, row)[0]) * engine.settings.price
    return (1.0 + 1e-9) * least / value if value > 0.0 else math.inf


def pick_likely(engine: Core, now: float, n: int) -> Ids:
    """At most n pages, best first; pages that are too unlikely to have changed, or worth too little, are withdrawn.

    More and more are picked until none of the first n is unlikely, and those beyond are given back: picks and
    withdrawals together cost no more than a few times the pages involved.
    """
    scheduler, threshold, ask = engine.scheduler, engine.threshold, n
    while True:
        ids = engine.eligibility.cohorts.pick(scheduler, now, ask, lambda page: _ready_from(engine, page))
        if _all_likely(engine, ids):
            break
        until = ready_at(engine, ids, engine.now)
        unlikely = until > engine.now
        if not unlikely[:n].any():
            break
        access.return_picked(scheduler, ids[~unlikely], threshold, withdraw=False)
        engine.eligibility.set_unlikely(ids[unlikely], until[unlikely], threshold)
        ask = min(2 * ask, max(len(scheduler), 1))
    if len(ids) <= n:
        return ids
    least = float(scheduler.value(ids[n - 1 : n], engine.now)[0])
    access.return_picked(scheduler, ids[n:], least, withdraw=False)
    return np.asarray(ids[:n])


def _all_likely(engine: Core, ids: Ids) -> bool:
    """Whether all pages may be picked now, where that is known at once; it is not where a crawl has a price."""
    settings = engine.settings
    if settings.price > 0.0 or settings.very_stale_share > 0.0 or engine.beliefs.fits == 0:
        return False
    limits = access.now(engine.scheduler), settings.min_change_probability, settings.no_copy_at
    return bool(all_likely(access.header(engine.scheduler), engine.packed, ids, limits))


def hasten(engine: Core, now: float) -> None:
    """Pages that were unlikely to have changed may be picked earlier, after a change of what is believed."""
    engine.crawls_since = 0
    numbers, rows, until = engine.eligibility.unlikely_pages()
    if len(rows):
        at = ready_at(engine, rows, now)
        engine.eligibility.hasten(numbers[at < until], at[at < until])


def hasten_if_due(engine: Core, now: float) -> None:
    """The same, when there were enough crawls since the last time: what they found may have raised other chances."""
    if not engine.eligibility.unlikely:
        engine.crawls_since = 0
        return
    due = engine.crawls_since > _PATIENCE * len(engine.eligibility.unlikely)
    if due and not engine.upkeep.takes_unlikely(engine):
        hasten(engine, now)


def in_order(engine: Core, ids: Ids) -> Ids:
    """Picked pages, best first; where there are some without a copy, equal ones in the order of their ids.

    Not where hosts have rules: pages of one host, perhaps a slow one, would come before those of all others.
    """
    if len(ids) < 2 or not engine.added_without_copy or engine.hosts_ruled or engine.copied(ids).all():
        return ids
    return np.asarray(ids[np.lexsort((ids, -engine.scheduler.value(ids, engine.now)))])
