"""Onward: a clock's time that never goes back, also when the clock is set back while crawling."""

from __future__ import annotations

from recrawl.crawl.clock import Clock


class Onward:
    """The time of a clock plus all that it was set back by."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._last = clock.now()
        self.set_back = 0.0  # seconds

    def now(self) -> float:
        """The time; it goes on from where it was when the clock is set back."""
        now = self.clock.now() + self.set_back
        if now < self._last:
            self.set_back += self._last - now
            now = self._last
        self._last = now
        return now
