"""Apart: work on large pages in a thread of its own, so that one host's pages do not hold up the others' answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TypeVar

from recrawl.crawl.clock import Clock

T = TypeVar("T")

LARGE = 32 << 10  # bytes beyond which work is done apart; less is done sooner than a thread is woken


class Apart:
    """One thread, so that all large pages together take at most half of the interpreter's time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._thread: ThreadPoolExecutor | None = None

    async def call(self, work: Callable[[], T], size: int) -> T:
        """Do work on something of this many bytes, the clock standing still where it is moved by hand."""
        if size <= LARGE:
            return work()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "recrawl-large")
        with getattr(self._clock, "hold", nullcontext)():
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """End the thread; what waits for it is dropped."""
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)
