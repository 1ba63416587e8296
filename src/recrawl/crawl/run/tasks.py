"""Task pool: the crawls that run, and the sleep of the loop that started them, which any of them can end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from recrawl.crawl.clock import Clock

GATHER = 0.01  # seconds that ended crawls wait for others while most slots are taken: the engine records batches
_LEAST = 0.001  # seconds of sleep


class TaskPool:
    """At most ``size`` crawls at a time; the first exception in one of them is raised by ``check``."""

    def __init__(self, clock: Clock, size: int) -> None:
        self._clock, self._size = clock, size
        self._crawls: set[asyncio.Task[bool]] = set()
        self._problem: BaseException | None = None
        self._awake: asyncio.Future[None] | None = None
        self._gathering: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._crawls)

    @property
    def free(self) -> int:
        """How many more crawls may run."""
        return self._size - len(self._crawls)

    def resize(self, size: int) -> None:
        """Another number of crawls at a time; those that run go on."""
        self._size = size

    def begin(self, crawl: Coroutine[Any, Any, bool]) -> asyncio.Task[bool]:
        """Start a crawl."""
        task = asyncio.create_task(crawl)
        self._crawls.add(task)
        task.add_done_callback(self._ended)
        return task

    def watch(self, task: asyncio.Task[Any]) -> None:
        """Wake when another task has ended, and raise what went wrong in it by ``check``."""
        task.add_done_callback(self._done)

    def fail(self, problem: BaseException) -> None:
        """Wake, and raise a problem by ``check``."""
        self._problem = self._problem or problem
        self.wake()

    def check(self) -> None:
        """Raise what went wrong."""
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem

    def wake(self) -> None:
        """End the sleep."""
        if self._awake is not None and not self._awake.done():
            self._awake.set_result(None)

    async def sleep(self, seconds: float) -> None:
        """Sleep for some seconds, or until a task ends."""
        self._awake = asyncio.get_running_loop().create_future()
        timer = asyncio.ensure_future(self._clock.sleep(max(seconds, _LEAST)))
        timer.add_done_callback(lambda done: None if done.cancelled() else self.wake())
        try:
            await self._awake
        finally:
            timer.cancel()
            self._awake = None

    async def end(self, seconds: float) -> None:
        """Give crawls some seconds to end; those that have not ended by then are cancelled."""
        if self._crawls:
            timer = asyncio.ensure_future(self._clock.sleep(seconds))
            ended = asyncio.ensure_future(asyncio.wait(list(self._crawls)))
            await asyncio.wait({timer, ended}, return_when=asyncio.FIRST_COMPLETED)
            timer.cancel()
        for crawl in list(self._crawls):
            crawl.cancel()
        await asyncio.gather(*self._crawls, return_exceptions=True)

    def _ended(self, task: asyncio.Task[bool]) -> None:
        self._crawls.discard(task)
        if self._problem is None and self.free < self._size // 4 and not _failed(task):
            self._wake_soon()
        else:
            self._done(task)

    def _done(self, task: asyncio.Task[Any]) -> None:
        problem = task.exception() if _failed(task) else None
        if problem is None:
            self.wake()
        else:
            self.fail(problem)

    def _wake_soon(self) -> None:
        if self._gathering is None and self._awake is not None:
            self._gathering = asyncio.ensure_future(self._clock.sleep(GATHER))
            self._gathering.add_done_callback(self._gathered)

    def _gathered(self, timer: asyncio.Future[None]) -> None:
        self._gathering = None
        if not timer.cancelled():
            self.wake()


def _failed(task: asyncio.Task[Any]) -> bool:
    return not task.cancelled() and task.exception() is not None
