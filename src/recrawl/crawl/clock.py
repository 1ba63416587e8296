"""Clock: what time it is and how to wait, so that a test can stand in for both."""

from __future__ import annotations

import asyncio
import time
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
    """The machine's clock; it never goes back within a process, also when it is set back."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """The time in seconds since the epoch, as it was at the start plus what has passed since."""
        return self._offset + time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait in real time."""
        await asyncio.sleep(max(seconds, 0.0))
