"""The price of a crawl: from when on a crawl saves more than it costs (Grimes, refresh cost and risk).

A crawl costs ``price``, in the unit of the crawl value: importance × time of staleness that the crawl avoids. A page of
importance 1 that changes every D and is crawled whenever its value reaches the price is crawled every r·D with the
ratio r of `refresh_ratio(D, price, 1)`. A page whose value never reaches the price is never crawled again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recrawl.model.cost import bounded_ratio
from recrawl.model.pages import Pages
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.engine.core import Core

Ids = NDArray[np.int64]
Array = NDArray[np.float64]

LONGEST = 36500.0  # days: a page that is worth its price later than this never is


def worth_at(engine: Core, rows: Ids, now: float) -> Array:
    """From when on a crawl of pages is worth its price, now at the earliest; infinity: never.

    A page without a copy is worth any price, and one that waits longer than its floor allows.
    """
    price, longest = engine.settings.price, LONGEST * engine.settings.day
    if price <= 0.0:
        return np.full(len(rows), now)
    return np.where(engine.copied(rows), access.reached_at(engine.scheduler, rows, now, price, longest), now)


def bounding_rates(engine: Core, pages: Pages) -> Array:
    """Least crawl rates at which crawls find no larger share of very stale copies than is allowed."""
    hours, share = engine.settings.very_stale, engine.settings.very_stale_share
    if share == 0.0:
        return np.zeros(len(pages))
    out, changing = np.zeros(len(pages)), pages.change_rate > 0
    rate, evidence = pages.change_rate[changing], np.broadcast_to(pages.evidence, len(pages))[changing]
    out[changing] = rate / bounded_ratio(share, 1.0 / rate, hours, evidence)
    return out
