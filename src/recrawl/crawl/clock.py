"""Clocks: what time it is and how to wait, so that a test can replace both."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Clock(Protocol):
    """Seconds since the epoch, and a wait by the same measure."""

    def now(self) -> float:
        """The time in seconds."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after ``seconds`` of this clock; at once when they are not positive."""
        ...


class SystemClock:
    """The machine's clock; it never goes back within a process, even when it is set back."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """The time in seconds since the epoch: the time at the start plus what has passed since."""
        return self._offset + time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait in real time."""
        await asyncio.sleep(max(seconds, 0.0))


class MonotonicClock:
    """Another clock's time plus all that it was set back by: it never goes back while crawling."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = clock.now()
        self.set_back = 0.0  # seconds

    def now(self) -> float:
        """The time; it goes on from its last value when the clock is set back."""
        now = self._clock.now() + self.set_back
        if now < self._last:
            self.set_back += self._last - now
            now = self._last
        self._last = now
        return now

    async def sleep(self, seconds: float) -> None:
        """Wait by the other clock."""
        await self._clock.sleep(seconds)

    def hold(self) -> AbstractContextManager[None]:
        """Keep the other clock where it is, if it can be kept."""
        return hold(self._clock)


async def sleep_unless(clock: Clock, seconds: float, event: asyncio.Event) -> None:
    """Sleep for some seconds of a clock, or until an event is set."""
    timer = asyncio.ensure_future(clock.sleep(seconds))
    over = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({timer, over}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
        over.cancel()


def hold(clock: Clock) -> AbstractContextManager[None]:
    """Keep a manual clock where it is while a thread works; nothing for other clocks."""
    held: AbstractContextManager[None] = getattr(clock, "hold", nullcontext)()
    return held
