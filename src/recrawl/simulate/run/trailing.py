"""Trailing: the greedy choice with the true change rates of the past year, a reference without hindsight."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.model.pages import Pages
from recrawl.schedule.exact import access
from recrawl.schedule.exact.scheduler import Scheduler
from recrawl.simulate.trace import Trace
from recrawl.simulate.worlds.events import Events

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

WINDOW = 365.0  # days that count
EVERY = 3.0  # days from one renewal of the rates to the next
PRIOR = 1.0  # changes that a page is credited with, over the time in which an average page has as many


class Trailing:
    """Crawls the page of largest value by the true number of its changes in the year up to now, found or not.

    A page's rate is (changes + 1) / (time + what an average page takes for one change): a page that was never seen to
    change can still change. The time is a year, or as long as the page is known. Rates are renewed every three days.
    A change that no crawl has found yet raises the rate of its page, and so tells that the copy is stale. With
    ``crawled`` nothing counts that came after a page's last crawl. It exists in simulations only, where the trace is
    known.
    """

    def __init__(self, trace: Trace, budget: float, *, crawled: bool = False) -> None:
        self.scheduler = Scheduler(budget=budget, policy="no-signals", start=trace.start, lease=1e-3 / budget)
        self._importance = trace.importance
        self._window, self._every = WINDOW * trace.day, EVERY * trace.day
        self._crawled = crawled
        self._history = _History(trace)
        self._there = np.zeros(len(trace), np.bool_)
        self._mean = 0.0
        self.renew_at = trace.start + self._every

    def add(self, rows: Ids, now: float) -> Ids:
        """Add pages of the trace, with the rates that they had up to now; their copies are fresh."""
        count, time = self._history.seen(rows, now - self._window, np.full(len(rows), now))
        if not self._there.any():
            self._mean = self._pooled(count, time)
        ids = self.scheduler.add(Pages(self._rates(count, time), self._importance[rows]), now, fetched_at=now)
        self._there[ids] = True
        return ids

    def remove(self, ids: ArrayLike) -> None:
        """Pages that go."""
        self.scheduler.remove(ids)
        self._there[np.asarray(ids)] = False

    def renew(self, now: float) -> None:
        """Set the rates of all pages to those of the year up to now."""
        self.renew_at = now + self._every
        rows = np.flatnonzero(self._there)
        high = access.last_fetched(self.scheduler, rows) if self._crawled else np.full(len(rows), now)
        count, time = self._history.seen(rows, now - self._window, high)
        self._mean = self._pooled(count, time)
        self.scheduler.update(rows, change_rate=self._rates(count, time))

    def _pooled(self, count: Array, time: Array) -> float:
        """Changes per time of an average page."""
        return float((count.sum() + PRIOR) / (time.sum() + self._window))

    def _rates(self, count: Array, time: Array) -> Array:
        rate: Array = (count + PRIOR) / (time + PRIOR / self._mean)
        return rate


class _History:
    """Changes of a trace and its past, to be counted."""

    def __init__(self, trace: Trace) -> None:
        events, self._since = trace.changes, trace.created_at
        if trace.past is not None:
            then, self._since = trace.past.changes, trace.past.since
            page, at = np.concatenate([then.page, events.page]), np.concatenate([then.at, events.at])
            events = Events.of(page, at, len(trace))
        self._times = np.sort(events.at)
        self._width = len(self._times) + 1
        self._key = events.page * self._width + np.searchsorted(self._times, events.at)  # page and rank: sorted

    def seen(self, rows: Ids, low: float, high: Array) -> tuple[Array, Array]:
        """How often each page changed after ``low`` and up to ``high``, and for how much of that time it is known."""
        begin = np.minimum(np.maximum(self._since[rows], low), high)
        return (self._up_to(rows, high) - self._up_to(rows, begin)).astype(np.float64), high - begin

    def _up_to(self, rows: Ids, when: Array) -> Ids:
        rank = np.searchsorted(self._times, when, side="right")
        return np.searchsorted(self._key, rows * self._width + rank)
