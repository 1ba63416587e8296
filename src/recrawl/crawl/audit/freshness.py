"""Expected freshness of the copies of a crawl."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from recrawl.engine import Engine
from recrawl.engine.views.expected import expected_fresh
from recrawl.schedule.exact import access

Ids = NDArray[np.int64]


def audited_pages(engine: Engine) -> Ids:
    """The pages that audits draw from: all that are not paused."""
    ids = engine.ids()
    return ids[~engine.is_paused(ids)]


def expected_freshness(engine: Engine, now: float) -> float:
    """The expected share of fresh copies, weighted by importance; a page without a copy is not fresh."""
    ids = audited_pages(engine)
    weight = access.importance(engine.scheduler, ids)
    if not weight.sum() > 0:
        return math.nan
    return float(np.average(expected_fresh(engine, ids, now), weights=weight))
