"""A pause that can be ended."""

from __future__ import annotations

import asyncio
import math

from recrawl.crawl.clock import Clock


class Pause:
    """Sleeps by a clock until the time is over or somebody wakes it."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._woken = clock, asyncio.Event()

    def wake(self) -> None:
        """End the sleep, or the next one at once."""
        self._woken.set()

    async def sleep(self, seconds: float) -> None:
        """Sleep for some seconds; infinity: until it is woken."""
        if seconds == math.inf:
            await self._woken.wait()
            self._woken.clear()
            return
        timer = asyncio.ensure_future(self._clock.sleep(max(seconds, 0.0)))
        woken = asyncio.ensure_future(self._woken.wait())
        try:
            await asyncio.wait({timer, woken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            woken.cancel()
            self._woken.clear()
