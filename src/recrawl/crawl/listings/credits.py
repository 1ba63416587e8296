"""Credits: which listing signalled a page first, and what that was worth when the page was crawled."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from recrawl.crawl.listings.worth import Forecast, anyway
from recrawl.model.pages import Pages

Ids = NDArray[np.int64]

MOST = 100_000  # pages that wait for their crawl
NOTE = "listing_credits"  # the note of those that wait when a run ends
_NOTED = 10_000  # of them, the newest


class Beliefs(Protocol):
    """What credits need to know of pages: an engine, or a table of what is true."""

    def copied(self, rows: Ids) -> NDArray[np.bool_]:
        """Which pages have a copy."""

    def fetched_at(self, rows: Ids) -> NDArray[np.float64]:
        """When the copies were fetched."""

    def pages(self, ids: Ids) -> Pages:
        """The beliefs about pages."""


class Signalled(NamedTuple):
    """A signal whose page was not crawled yet."""

    listing: str
    at: float
    anyway_at: float  # when the page would be crawled without it
    probability: float  # that it has changed by then
    importance: float
    copied_at: float = -math.inf

    def expected(self, at: float) -> float:
        """The probability of a change by the crawl that was made: more than p where it came later than foreseen."""
        if at <= self.anyway_at or math.isinf(self.copied_at):
            return self.probability
        share = (at - self.copied_at) / (self.anyway_at - self.copied_at)
        return 1.0 - float((1.0 - self.probability) ** share)


class Credit(NamedTuple):
    """What a signal was worth: importance·(changed − p), and by how long it came before the crawl made anyway."""

    listing: str
    gain: float
    lead: float


class Credits:
    """The first signal of each page since its last crawl, of at most 100,000 pages; others are forgotten."""

    def __init__(self, engine: Beliefs) -> None:
        self._engine = engine
        self._waiting: OrderedDict[int, Signalled] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def signalled(self, listing: str, pages: Sequence[int], at: float, threshold: float) -> int:
        """A listing signals pages; ``at`` is when the news are thought to have appeared in it. How many wait for it."""
        ids = np.array([page for page in pages if page not in self._waiting], np.int64)
        ids = ids[self._engine.copied(ids)]
        if not len(ids) or not 0 < threshold < np.inf:
            return 0
        forecast = self.forecast(ids, threshold)
        copied_at = self._engine.fetched_at(ids)
        due = copied_at + forecast.interval
        importance = self._engine.pages(ids).importance
        waits = np.flatnonzero(np.isfinite(due)).tolist()
        for k in waits:
            found = float(due[k]), float(forecast.probability[k]), float(importance[k]), float(copied_at[k])
            self._waiting[int(ids[k])] = Signalled(listing, at, *found)
        while len(self._waiting) > MOST:
            self._waiting.popitem(last=False)
        return len(waits)

    def note(self, urls: Callable[[list[int]], list[str]]) -> dict[str, Any]:
        """As it is noted in the store: the newest signals, by the URLs of their pages."""
        some = list(self._waiting.items())[-_NOTED:]
        return {NOTE: [[url, *one] for url, (_, one) in zip(urls([page for page, _ in some]), some, strict=True)]}

    def restore(self, notes: Mapping[str, Any], known: Callable[[list[str]], Ids]) -> None:
        """Take up what an earlier run noted, of pages that are still there."""
        rows = notes.get(NOTE, [])
        for page, row in zip(known([row[0] for row in rows]).tolist(), rows, strict=True):
            if page >= 0:
                self._waiting.setdefault(page, Signalled(*row[1:]))

    def forecast(self, ids: Ids, threshold: float) -> Forecast:
        """When pages would be crawled anyway."""
        return anyway(self._engine.pages(ids), threshold)

    def crawled(self, page: int, *, changed: bool, at: float = -math.inf) -> Credit | None:
        """A page was compared with its copy, or found gone, by a crawl at a time: what the signal before was worth.

        A crawl that comes later than was foreseen, because the margin has risen or the signal did not count, is the one
        that was made anyway: it finds more changes without any signal.
        """
        signal = self._waiting.pop(page, None)
        if signal is None:
            return None
        gain = signal.importance * (float(changed) - signal.expected(at))
        return Credit(signal.listing, gain, max(max(signal.anyway_at, at) - signal.at, 0.0))
