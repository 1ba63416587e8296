"""What is believed of the copies of a crawl: which pages have one, and how fresh all of them are."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from recrawl.crawl.run.pages import NEVER
from recrawl.engine import Engine
from recrawl.engine.views.expected import expected_fresh
from recrawl.schedule.exact import access

Ids = NDArray[np.int64]


def audited_pages(engine: Engine) -> Ids:
    """The pages that audits are about: all that may be crawled."""
    ids = engine.ids()
    return ids[~engine.is_paused(ids)]


def never_crawled(engine: Engine, ids: Ids, now: float) -> NDArray[np.bool_]:
    """Which pages have no copy yet: they count as ones that were fetched a year before they were added."""
    last = access.last_fetched(engine.scheduler, ids)
    return np.asarray((engine.beliefs.belief.n_crawls[ids] == 0) & (last <= now - NEVER + 1.0))


def believed_freshness(engine: Engine, now: float) -> float:
    """The share of copies that are believed to be right now, by importance; pages without a copy are not."""
    ids = audited_pages(engine)
    weight = access.importance(engine.scheduler, ids)
    if not weight.sum() > 0:
        return math.nan
    fresh = np.where(never_crawled(engine, ids, now), 0.0, expected_fresh(engine, ids, now))
    return float(np.average(fresh, weights=weight))
