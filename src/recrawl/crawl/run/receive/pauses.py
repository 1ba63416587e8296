"""A pause that can be ended, and a few tasks that end one."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

from recrawl.crawl.clock import Clock, sleep_unless


class Pause:
    """Sleeps by a clock until the time is over or somebody wakes it."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._woken = clock, asyncio.Event()

    def wake(self) -> None:
        """End the sleep, or the next one at once."""
        self._woken.set()

    async def sleep(self, seconds: float) -> None:
        """Sleep for some seconds; infinity: until it is woken."""
        try:
            if seconds == math.inf:
                await self._woken.wait()
            else:
                await sleep_unless(self._clock, max(seconds, 0.0), self._woken)
        finally:
            self._woken.clear()


class FewTasks:
    """At most some tasks at a time, begun by a loop that sleeps until it is woken or a task has ended."""

    def __init__(self, clock: Clock, most: int) -> None:
        self._clock, self._most = clock, most
        self._tasks: set[asyncio.Task[None]] = set()
        self._pause: Pause | None = None  # while the loop runs

    @property
    def free(self) -> int:
        """How many more tasks may be begun."""
        return self._most - len(self._tasks)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Let tasks be begun within the block; those that run at its end are cancelled."""
        self._pause = Pause(self._clock)
        try:
            yield
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._tasks.clear()
            self._pause = None

    def begin(self, work: Coroutine[None, None, None]) -> None:
        """Start a task."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(lambda _: self.wake())

    def wake(self) -> None:
        """End the sleep, if the loop runs."""
        if self._pause is not None:
            self._pause.wake()

    async def sleep(self, seconds: float) -> None:
        """Sleep, without limit while no further task may be begun; then raise what went wrong in tasks that ended."""
        assert self._pause is not None
        await self._pause.sleep(seconds if self.free > 0 else math.inf)
        ended = {task for task in self._tasks if task.done()}
        self._tasks -= ended
        for task in ended:
            task.result()
