"""Expected freshness of the copies of a crawl, and which pages have a copy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from recrawl.engine import Engine
from recrawl.engine.views.expected import expected_fresh
from recrawl.schedule.exact import access

Ids = NDArray[np.int64]

NEVER = 365.0 * 86400.0  # seconds: a page without a copy counts as one with a copy of this age, certainly not fresh


def audited_pages(engine: Engine) -> Ids:
    """The pages that audits draw from: all that are not paused."""
    ids = engine.ids()
    return ids[~engine.is_paused(ids)]


def never_crawled(engine: Engine, ids: Ids, now: float) -> NDArray[np.bool_]:
    """Which pages have no copy yet: they count as fetched a year before they were added."""
    last = access.last_fetched(engine.scheduler, ids)
    return np.asarray((engine.beliefs.belief.n_crawls[ids] == 0) & (last <= now - NEVER + 1.0))


def expected_freshness(engine: Engine, now: float) -> float:
    """The expected share of fresh copies, weighted by importance; a page without a copy is not fresh."""
    ids = audited_pages(engine)
    weight = access.importance(engine.scheduler, ids)
    if not weight.sum() > 0:
        return math.nan
    fresh = np.where(never_crawled(engine, ids, now), 0.0, expected_fresh(engine, ids, now))
    return float(np.average(fresh, weights=weight))
