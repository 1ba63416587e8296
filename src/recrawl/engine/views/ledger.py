"""Staleness ledger: how stale the copies were so far, by what the crawls found.

A crawl that finds no change proves that the copy was right since it was fetched. A crawl that finds a change proves
that the copy was stale from some time on: the expected time follows from when the change was probable, and is half of
the interval where changes are rare. The time since the last crawl of each page is as stale as is believed. So the
ledger corrects beliefs of the past: a change that nobody predicted is in it once it has been found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.beliefs.staleness_kernels import open_time
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.engine.questions import Questions

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Ledger:
    """Importance × time of copies (``time``), stale of that; and the part of both that no crawl has judged yet."""

    time: float
    stale: float
    open_time: float
    open_stale: float

    @property
    def staleness(self) -> float:
        """The share of the time in which copies were stale, by importance; 0 before there was any time."""
        return self.stale / self.time if self.time > 0.0 else 0.0


def ledger_of(engine: Questions, rows: Ids, now: float) -> Ledger:
    """The ledger of all crawls until now, with the open time of some pages."""
    belief = engine.beliefs.belief
    last = access.last_fetched(engine.scheduler, rows)
    until = np.full(len(rows), max(now, engine.now))
    open_ = open_time(access.header(engine.scheduler), belief, engine.calibration, rows, last, until)
    judged = belief.ledger
    return Ledger(float(judged[0] + open_[0]), float(judged[1] + open_[1]), *map(float, open_))
