"""Worker: one thread that runs blocking calls in order, awaited from any event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

P = ParamSpec("P")
T = TypeVar("T")

_calls: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()


def n_calls(loop: asyncio.AbstractEventLoop) -> int:
    """How many calls to workers a loop awaits: a manual clock stands still meanwhile."""
    return _calls.get(loop, 0)


class Worker:
    """A thread of its own. A call that was made runs to its end, also when its caller is cancelled meanwhile."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, name)

    async def call(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Run work in the thread, after all calls made before."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def run() -> None:
            try:
                found = work(*args, **options)
            except BaseException as problem:
                _answer(loop, done, done.set_exception, problem)
            else:
                _answer(loop, done, done.set_result, found)

        self._thread.submit(run)
        _calls[loop] = n_calls(loop) + 1
        try:
            return await done
        finally:
            _calls[loop] -= 1

    def wait(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Run work in the thread, after all calls made before, and block until it is done."""
        return self._thread.submit(work, *args, **options).result()

    def close(self, *, wait: bool = False) -> None:
        """End the thread once it has run all calls, and wait for that; further calls are refused."""
        self._thread.shutdown(wait=wait)


def _answer(
    loop: asyncio.AbstractEventLoop, done: asyncio.Future[Any], settle: Callable[[Any], None], value: object
) -> None:
    """Settle a future of a loop from another thread, unless its caller was cancelled or its loop has ended."""

    def answer() -> None:
        if not done.done():
            settle(value)

    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(answer)
