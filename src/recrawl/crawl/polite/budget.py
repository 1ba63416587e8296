"""Budget: every request of a crawl waits for it, also across restarts.

Before requests are made, the store is given the time up to which the budget counts as spent (the mark). A run that was
killed has made no request after that time, so that the next run continues from there and no window of W seconds sees
more than the budget allows.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, Self

from recrawl.crawl.polite.hours import Hours, rates
from recrawl.schedule.pacer import Pacer

MARK = "paced_until"  # the name of the note that holds the mark
_AHEAD = 1.0  # seconds between two marks
_EARLY = 0.5  # seconds before a mark is reached that the next is written, so that no request waits for it

SaveNotes = Callable[[Mapping[str, Any]], Awaitable[None]]


class Loop(Protocol):
    """What a budget needs of the loop that starts requests."""

    def wake(self) -> None:
        """End the loop's sleep."""
        ...

    def watch(self, task: asyncio.Task[Any]) -> None:
        """End the loop's sleep when a task ends, and raise what it raised."""
        ...


def catch_up_for(rate: float) -> float:
    """Seconds of lost time that may be made up for, so that a window of W seconds sees at most rate·(W + 1) requests.

    >>> catch_up_for(0.2), catch_up_for(4.0)
    (0.0, 0.375)
    """
    return max(0.0, 0.5 * (1.0 - 1.0 / rate)) if rate > 0 else 0.0


class Budget:
    """How many requests may start, from ``start`` on, at ``rate`` requests per second while the ``hours`` are open.

    A crawl takes its first request when it starts (``take``), waits for each further one (``further``), and is charged
    for requests that a fetcher made without asking (``charge``).

    >>> budget = Budget(2.0, 10.0, catch_up=0.0)
    >>> budget.take(10.0, 5), budget.ready(10.0), budget.next_at(10.0)
    (1, 0, 10.5)
    """

    def __init__(self, rate: float, start: float, *, hours: Hours | None = None, catch_up: float | None = None) -> None:
        self._pacer = Pacer(rate, start, catch_up=catch_up_for(rate) if catch_up is None else catch_up)
        self.rate = rate  # requests per second while open
        self._text: str | None = None
        self._hours = hours
        self._loop: Loop | None = None
        self._save_notes: SaveNotes | None = None
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._covered = -math.inf  # up to here the store knows of all requests
        self._covering: asyncio.Task[None] | None = None
        self.used = self._owed = 0
        self._lapsed_before = 0.0  # by pacers before this one
        self._ended = False

    @classmethod
    def parse(cls, text: str, n_pages: int, start: float, hours: Hours | None = None) -> Self:
        """A budget in words, such as ``2/s`` or ``1/page/day``; `set_pages` changes its rate with the pages."""
        budget = cls(rates(text, n_pages, hours)[0], start, hours=hours)
        budget._text = text
        return budget

    def earn_first(self) -> None:
        """Let the first request wait until it is earned; otherwise it may start at once, even at a rate of 0."""
        self._pacer = Pacer.restore({**self._pacer.state(), "owed": 1.0})

    # --- a run begins and ends ----------------------------------------------------------------------------------------

    def attach(self, loop: Loop, save_notes: SaveNotes) -> None:
        """Connect the budget to the loop that starts requests and to what writes notes to the store."""
        self._loop, self._save_notes = loop, save_notes

    def resume(self, mark: float | None, now: float) -> None:
        """Continue after what an earlier run may have spent: its mark, as far as its clock can have been right."""
        if mark is not None and mark > now and self.rate > 0:
            anchor = min(mark, now + _AHEAD + 1.0 / self.rate)
            self._lapsed_before = self.lapsed
            fresh = Pacer(self._pacer.budget, now, catch_up=self._pacer.catch_up)
            self._pacer = Pacer.restore({**fresh.state(), "anchor": anchor})

    def begin(self, now: float) -> None:
        """A run begins: requests may start. The time before it is not counted as lapsed."""
        before = self.lapsed
        self._pacer.due(now, 0)
        self._lapsed_before -= self.lapsed - before
        self._ended = False

    def end(self) -> None:
        """No further request may start: those that wait are cancelled, and those that come."""
        self._ended = True
        while self._waiters:
            self._waiters.popleft().cancel()

    def last_mark(self, now: float) -> dict[str, float]:
        """The note to write when no further request will be made."""
        at = self._pacer.next_at(now)
        self._covered = -math.inf
        return {MARK: at if at < math.inf else now}

    # --- requests -----------------------------------------------------------------------------------------------------

    def ready(self, now: float) -> int:
        """How many requests may start now, after those that wait were served."""
        self._follow_hours(now)
        if self._hours is not None and not self._hours.open(now):
            return 0  # also what was earned before
        ready = self._pacer.ready(now)
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
        """Start at most n requests now; how many start."""
        taken = self._pacer.due(now, n)
        self.used += taken
        return taken

    def charge(self, n: int) -> None:
        """Count requests that were made without asking: they are paid for before the next ones start."""
        self._owed += n

    async def further(self) -> None:
        """Wait until one further request of a running crawl may start."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._ended:
            waiter.cancel()
        else:
            self._waiters.append(waiter)
        if self._loop is not None:
            self._loop.wake()
        await waiter

    @property
    def lapsed(self) -> float:
        """Requests that the budget allowed and that can no longer be made: nothing asked for them in time."""
        return self._lapsed_before + self._pacer.stats["lapsed"]

    @property
    def owed(self) -> int:
        """Requests that were charged and are not paid for yet."""
        return self._owed

    @property
    def text(self) -> str | None:
        """The budget in words, if it was given so."""
        return self._text

    @property
    def hours(self) -> Hours | None:
        """When requests may start; None: always."""
        return self._hours

    @property
    def n_waiting(self) -> int:
        """How many crawls wait for a further request."""
        return len(self._waiters)

    def next_at(self, now: float) -> float:
        """When the next request may start."""
        at = self._pacer.next_at(now)
        if self._hours is None:
            return at
        change = self._hours.next_change(now)
        return min(at, change) if self._hours.open(now) else change

    # --- the mark -----------------------------------------------------------------------------------------------------

    async def cover(self, now: float) -> None:
        """Write the mark before requests are made beyond the last one; early enough that none waits for it."""
        until = self._next_cover(now)
        if until is not None and self._covering is None and self._save_notes is not None:
            self._covering = asyncio.create_task(self._write_mark(until, self._save_notes))
            if self._loop is not None:
                self._loop.watch(self._covering)
        if self._covering is not None and now > self._covered:
            await asyncio.wait([self._covering])

    async def covered(self) -> None:
        """Wait for a mark that is being written."""
        if self._covering is not None:
            await asyncio.wait([self._covering])

    def _next_cover(self, now: float) -> float | None:
        """Up to when requests are to be covered before any is made after now; None while they are."""
        if now <= self._covered - _EARLY or self._pacer.next_at(now) > now:
            return None
        return max(now, min(self._covered, now + _EARLY)) + _AHEAD

    async def _write_mark(self, until: float, save_notes: SaveNotes) -> None:
        try:
            # The next run may begin when the last request was made at the very end.
            await save_notes({MARK: until + 1.0 / max(self.rate, 1e-9)})
            self._covered = until
        finally:
            self._covering = None

    # --- another rate -------------------------------------------------------------------------------------------------

    def set_rate(self, rate: float, now: float) -> None:
        """Another rate from now on, in requests per second."""
        self.rate = rate
        self._follow_hours(now)

    def set_words(self, text: str, n_pages: int, now: float, hours: Hours | None) -> None:
        """Another budget in words, and other hours, from now on."""
        self._text, self._hours = text, hours
        self.set_share(rates(text, n_pages, hours)[0], now)

    def set_hours(self, hours: Hours | None, now: float) -> None:
        """Other hours at the same rate from now on."""
        self._hours = hours
        self._follow_hours(now)

    def set_share(self, rate: float, now: float) -> None:
        """Another rate from now on, with the time that can be made up for at this rate."""
        self.set_rate(rate, now)
        self._pacer = Pacer.restore({**self._pacer.state(), "catch_up": catch_up_for(self.rate)})

    def catch_up(self, seconds: float) -> None:
        """Make up for this much lost time at any rate, for crawlers that ask now and then for many pages at once."""
        self._pacer = Pacer.restore({**self._pacer.state(), "catch_up": seconds})

    def set_pages(self, n_pages: int, now: float) -> None:
        """The rate for this many pages, where the budget was given in words."""
        if self._text is not None and n_pages:
            self.set_rate(rates(self._text, n_pages, self._hours)[0], now)

    def _follow_hours(self, now: float) -> None:
        rate = self.rate if self._hours is None or self._hours.open(now) else 0.0
        if rate != self._pacer.budget:
            self._pacer.set_budget(rate, now)
