"""Offload: work on large pages in a thread, so that the pages of one host do not delay the answers of others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from recrawl.crawl.clock import Clock, hold

T = TypeVar("T")

LARGE = 32 << 10  # bytes beyond which work goes to the thread; less is done sooner than a thread is woken


class Offload:
    """One thread, so that all large pages together take at most half of the interpreter's time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._thread: ThreadPoolExecutor | None = None

    async def call(self, work: Callable[[], T], size: int) -> T:
        """Run ``work`` on something of ``size`` bytes; a manual clock stands still meanwhile."""
        if size <= LARGE:
            return work()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "recrawl-large")
        with hold(self._clock):
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """End the thread; work that waits for it is dropped."""
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)
