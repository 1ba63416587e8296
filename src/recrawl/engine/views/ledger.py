"""Account: how stale the copies have been so far, by what the crawls have found.

A crawl that finds no change tells that the copy was right all the time since it was fetched. One that finds a change
tells that it was stale from some time on, which is the later the more of the doubt came late; half of the time on
average where changes are rare. What no crawl has told of yet, since each copy was fetched, is as stale as is believed.
So the account corrects what was believed at the time: a change that nobody foresaw is in it once it has been found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.beliefs.kernels import kept_time
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.engine.engine import Engine

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Account:
    """Importance × time that copies were kept (``time``), stale of that, and of which no crawl has told yet."""

    time: float
    stale: float
    open_time: float
    open_stale: float

    @property
    def staleness(self) -> float:
        """The share of the time in which copies were stale, by importance; 0 before there was any."""
        return self.stale / self.time if self.time > 0.0 else 0.0


def account(engine: Engine, rows: Ids, now: float) -> Account:
    """The account of all crawls until now, and of the copies of some pages since."""
    belief = engine.beliefs.belief
    last = access.last_fetched(engine.scheduler, rows)
    until = np.full(len(rows), max(now, engine.now))
    open_ = kept_time(access.header(engine.scheduler), belief, engine.parts.arrays, rows, last, until)
    told = belief.account
    return Account(float(told[0] + open_[0]), float(told[1] + open_[1]), *map(float, open_))
