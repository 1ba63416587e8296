"""Event loops that know how long they were idle, and how long the steps of a coroutine keep them busy."""

from __future__ import annotations

import asyncio
import selectors
import types
from collections.abc import Callable, Coroutine, Generator
from time import perf_counter
from typing import Any, TypeVar

T = TypeVar("T")


class _TimedSelector(selectors.DefaultSelector):
    """Counts the seconds in which it waited although it was not asked to return at once."""

    idle = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for files that are ready."""
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        began = perf_counter()
        found = super().select(timeout)
        self.idle += perf_counter() - began
        return found


class MeasuredLoop(asyncio.SelectorEventLoop):
    """An event loop that counts for how many seconds nothing was to be done."""

    def __init__(self) -> None:
        self._timed = _TimedSelector()
        super().__init__(self._timed)

    def idle(self) -> float:
        """Seconds since it was made in which it waited."""
        return self._timed.idle


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` in a loop that is measured."""
    with asyncio.Runner(loop_factory=MeasuredLoop) as runner:
        return runner.run(work)


def idle_of_loop() -> Callable[[], float] | None:
    """What gives the idle seconds of the running loop; None if it is not measured."""
    loop = asyncio.get_running_loop()
    return loop.idle if isinstance(loop, MeasuredLoop) else None


@types.coroutine
def stepped(
    work: Coroutine[Any, Any, T], charge: Callable[[float], None], now: Callable[[], float] = perf_counter
) -> Generator[Any, Any, T]:
    """Do work; ``charge`` gets the seconds of each of its steps, between which other work may run."""
    given: Any = None
    problem: BaseException | None = None
    while True:
        began = now()
        try:
            wanted = work.send(given) if problem is None else work.throw(problem)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            charge(now() - began)
        try:
            given, problem = (yield wanted), None
        except GeneratorExit:
            work.close()
            raise
        except BaseException as raised:
            given, problem = None, raised
