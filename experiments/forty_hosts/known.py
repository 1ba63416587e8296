"""An engine that knows: true change rates, and how often the signals of each page tell a change and are right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.engine import Engine
from recrawl.engine.core import own_belief
from recrawl.engine.names.addresses import Urls
from recrawl.engine.signals.arrays import OPEN, OPENED
from recrawl.model import Pages
from recrawl.schedule import Scheduler

Ids = NDArray[np.int64]
Array = NDArray[np.float64]


class KnowingEngine(Engine):
    """The exact scheduler with true parameters, for the live crawler. Outcomes teach it nothing.

    ``row_of`` gives the row of a URL in ``pages``. A signal of a page whose recall is 0 is dropped. ``ignoring``: all
    are, and only the rates are known.
    """

    def __init__(
        self, budget: float, start: float, *, pages: Pages, row_of: Mapping[str, int], ignoring: bool = False
    ) -> None:
        super().__init__(
            budget, start=start, siblings=False, min_change_probability=0.0, host_spacing=0.0, host_concurrency=1
        )
        policy = "no-signals" if ignoring else "signals"
        self.scheduler = Scheduler(budget=budget, policy=policy, start=start, lease=self.settings.lease)
        self.eligibility.scheduler = self.scheduler
        self.beliefs.belief.signals.gate[:, OPEN] = OPENED  # the signals that it does not drop count
        self._true, self._row_of, self._ignoring = pages, row_of, ignoring
        self._rows: Ids = np.zeros(0, np.int64)  # of the true pages, by id

    def _append(self, urls: Urls, weight: Array, fetched: Array, now: float, own: Any) -> Ids:
        rows = np.array([self._row_of[url] for url in urls.packed.texts()])
        true = self._true[rows]
        own = own_belief(true.change_rate, 1e6, len(rows), np.arange(len(rows)), self.beliefs.prior)
        self._rows = np.concatenate([self._rows, rows])
        ids = super()._append(urls, weight, fetched, now, own)
        quality = {} if self._ignoring else {"recall": true.recall, "false_rate": true.false_rate}
        self.scheduler.update(ids, change_rate=true.change_rate, evidence=np.inf, **quality)
        return ids

    def learn_crawls(self, rows: Ids, copies: Array, changed: NDArray[np.bool_], now: float) -> None:
        """Learn nothing."""

    def renew_copies(self, rows: Ids, copies: Array, now: float) -> None:
        """Learn nothing."""

    def signal(
        self,
        ids: ArrayLike,
        now: float,
        *,
        source: int = 0,
        changed_at: ArrayLike | None = None,
        resolution: ArrayLike = 0.0,
    ) -> None:
        """A signal of a page whose signals tell something, about a change after its copy."""
        rows = np.atleast_1d(np.asarray(ids, np.int64))
        about = np.full(len(rows), np.inf) if changed_at is None else np.broadcast_to(changed_at, rows.shape)
        about = np.minimum(about + resolution, now)
        use = (self._true.recall[self._rows[rows]] > 0.0) & (about > self.fetched_at(rows))
        if use.any() and not self._ignoring:
            self.scheduler.signal(rows[use], now)

    def pages(self, ids: ArrayLike | None = None) -> Pages:
        """The true pages."""
        return self._true[self._rows[self.ids() if ids is None else np.asarray(ids, np.int64)]]
