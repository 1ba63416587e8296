"""Pace: every request waits for the budget, also across restarts.

Before requests are made, the store is told up to when the budget counts as spent. A run that was killed has asked for
nothing after that time, so that the next run goes on from there and no window sees more than the budget allows.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque

from recrawl.crawl.polite.hours import Hours
from recrawl.schedule.pacer import Pacer

MARK = "paced_until"  # the note that is kept
_AHEAD = 1.0  # seconds between two notes
_EARLY = 0.5  # seconds before one runs out that the next is written, so that no request waits for it


def catch_up_for(budget: float) -> float:
    """How much lost time may be made up for, so that a window of W seconds sees at most budget·(W + 1) requests.

    >>> catch_up_for(0.2), catch_up_for(4.0)
    (0.0, 0.375)
    """
    return max(0.0, 0.5 * (1.0 - 1.0 / budget)) if budget > 0 else 0.0


def pacer_from(budget: float, now: float, mark: float | None = None) -> Pacer:
    """A pacer that goes on after what an earlier run may have spent (its mark), were the clock right."""
    pacer = Pacer(budget, now, catch_up=catch_up_for(budget))
    if mark is None or mark <= now:
        return pacer
    return Pacer.restore({**pacer.state(), "anchor": min(mark, now + _AHEAD + 1.0 / budget)})


class Pace:
    """A pacer with opening hours, and those who wait for a further request of a crawl that has begun."""

    def __init__(self, pacer: Pacer, hours: Hours | None = None) -> None:
        self.pacer = pacer
        self.rate = pacer.budget  # while open
        self._hours = hours
        self._waiters: deque[asyncio.Future[None]] = deque()
        self.covered = -math.inf  # up to here the store knows of all requests
        self.used = self._owed = 0
        self.over = False

    def ready(self, now: float) -> int:
        """How many requests may start now, after those that wait were served."""
        self._keep_hours(now)
        ready = self.pacer.ready(now)
        if self._owed:
            paid = self.take(now, self._owed)
            self._owed -= paid
            ready -= paid
        while ready and self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                ready -= self.take(now, 1)
                waiter.set_result(None)
        return ready

    def take(self, now: float, n: int) -> int:
        """Requests that start now."""
        taken = self.pacer.due(now, n)
        self.used += taken
        return taken

    def charge(self, n: int) -> None:
        """Requests that were made without asking: they count before the next ones may start."""
        self._owed += n

    def turn(self) -> asyncio.Future[None]:
        """What is done when one further request may start."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.over:
            waiter.cancel()
        else:
            self._waiters.append(waiter)
        return waiter

    def end(self) -> None:
        """No further request may start: those that wait are cancelled, and those that come."""
        self.over = True
        while self._waiters:
            self._waiters.popleft().cancel()

    @property
    def n_waiting(self) -> int:
        """How many wait."""
        return len(self._waiters)

    def next_at(self, now: float) -> float:
        """When the next request may start."""
        at = self.pacer.next_at(now)
        return min(at, math.inf if self._hours is None else self._hours.next_change(now))

    def next_cover(self, now: float) -> float | None:
        """Up to when requests are to be covered before any is made after now; None while they are."""
        if now <= self.covered - _EARLY or self.pacer.next_at(now) > now:
            return None
        return max(now, min(self.covered, now + _EARLY)) + _AHEAD

    def mark(self, cover: float) -> float:
        """What to note for that: when the next run may begin, were the last request made at the very end."""
        return cover + 1.0 / max(self.rate, 1e-9)

    def last_mark(self, now: float) -> float:
        """What to note when no further request will be made."""
        at = self.pacer.next_at(now)
        return at if at < math.inf else now

    def set_rate(self, rate: float, now: float) -> None:
        """Another budget from now on."""
        self.rate = rate
        self._keep_hours(now)

    def _keep_hours(self, now: float) -> None:
        rate = self.rate if self._hours is None or self._hours.open(now) else 0.0
        if rate != self.pacer.budget:
            self.pacer.set_budget(rate, now)
