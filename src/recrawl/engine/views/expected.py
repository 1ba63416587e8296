"""Expected freshness and rates as they are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.engine.beliefs.beliefs import pages_of
from recrawl.engine.beliefs.staleness_kernels import fill_fresh
from recrawl.model.pages import Pages
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.engine.engine import Engine

Array = NDArray[np.float64]
Ids = NDArray[np.int64]


def expected_fresh(engine: Engine, ids: ArrayLike, now: float) -> Array:
    """The probability that each page's copy is fresh, as computed; 0 without a copy."""
    rows = access.check_ids(engine.scheduler, ids)
    out = np.empty(len(rows))
    belief = engine.beliefs.belief
    fill_fresh(access.header(engine.scheduler), belief, rows, belief.gamma[rows, 0], now, out)
    return np.where(engine.copied(rows), out, 0.0)


def expected_pages(engine: Engine, rows: Ids, now: float) -> Pages:
    """Pages with the rates that are reported: what signals explain included.

    ``evidence`` is the shape of the belief about a page's missed rate. Rates of pages with signals count as known,
    because plans with signals take them so.
    """
    elapsed = np.maximum(now - access.last_fetched(engine.scheduler, rows), 0.0)
    columns = engine.beliefs.columns(rows, elapsed) | access.cost_column(engine.scheduler, rows)
    return pages_of(columns, access.importance(engine.scheduler, rows))
