"""The pick among given pages, however little they are worth beside others: all of them are valued."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.eligibility.likely import ready_at
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.engine.core import Core

Ids = NDArray[np.int64]


def pick_among(engine: Core, now: float, n: int, rows: Ids) -> Ids:
    """At most n of some pages, best first, leased; equal ones in the order of their ids.

    A page that waits in a cohort is taken out of it: the pages before it need not be among these.
    """
    scheduler, cohorts = engine.scheduler, engine.eligibility.cohorts
    eligible = access.waiting_of(scheduler, rows, now) | cohorts.waiting(scheduler, rows)
    rows, here = rows[eligible], engine.now
    value = scheduler.value(rows, here)
    order = np.lexsort((rows, -value))
    rows = rows[order[value[order] > 0.0]]
    if engine.settings.selective:
        rows = rows[ready_at(engine, rows, here) <= here]
    paused = set(rows[access.is_paused(scheduler, rows)].tolist())
    ids = access.take(scheduler, rows, n)
    cohorts.taken(scheduler, ids, np.array([page in paused for page in ids.tolist()], np.bool_))
    return ids
