"""Pushed copies: content of a page that came without a request goes the same way as a fetched body."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from recrawl.crawl.clock import Clock
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.run.compare import Comparer, Hop
from recrawl.crawl.run.progress import Counters
from recrawl.crawl.run.recorder import Recorder
from recrawl.store.protocol import Copy, Outcome


class PushedCopies:
    """Compares pushed content with the copy, and records it as an outcome without requests.

    ``wake`` ends the sleep of the crawl's loop, which gives outcomes to the engine and to the store.
    """

    def __init__(
        self, comparer: Comparer, recorder: Recorder, clock: Clock, counters: Counters, wake: Callable[[], None]
    ) -> None:
        self._comparer, self._recorder, self._clock = comparer, recorder, clock
        self._counters, self._wake = counters, wake

    async def copy(self, url: str) -> Copy | None:
        """The newest copy of a page."""
        return (await self._recorder.copies([url])).get(url)

    async def compare(self, url: str, fetched: Fetched, copy: Copy | None) -> Outcome:
        """The outcome of a page whose whole content this is: detector and digest as for a fetched body."""
        return await self._comparer.outcome(Hop(url, url, self._clock.now(), full=True), fetched, copy)

    def record(self, page: int, outcome: Outcome, copy: Copy | None) -> None:
        """Record an outcome as of now: it answers signals up to now."""
        began_at = math.nextafter(self._clock.now(), math.inf)
        self._recorder.ended(page, replace(outcome, began_at=began_at, took=0.0), copy)
        self._counters.pushed += 1
        self._wake()
