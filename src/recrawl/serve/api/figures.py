"""Figures about all pages: computed from the database in a thread, so that no pick or record waits for them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from recrawl.serve.crawls.view import Questions
from recrawl.serve.problems import ProblemError

_MOST = 8  # questions that wait
_KEPT = 5.0  # seconds that an answer is given again

T = TypeVar("T")


class Figures:
    """Answers one question at a time; the same question within some seconds gets the same answer."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions
        self._thread = ThreadPoolExecutor(1, "recrawl-figures")
        self._asked: dict[str, tuple[float, asyncio.Future[Any]]] = {}
        self._n_waiting = 0

    async def status(self) -> dict[str, Any]:
        """What ``recrawl status --json`` prints."""
        return await self._ask("status", lambda asked: asked.status(time.time()))

    async def sources(self) -> dict[str, Any]:
        """What ``recrawl signals --json`` prints."""
        return await self._ask("sources", lambda asked: asked.sources(time.time()))

    async def forecast(self, budget: str | None) -> dict[str, Any]:
        """How fresh the copies are, and how fresh they will be at a budget."""

        def work(asked: Questions) -> dict[str, Any]:
            found = asked.status(time.time(), budget)
            return {name: found[name] for name in ("now", "budget", "freshness", "forecast", "sample")}

        return await self._ask(f"forecast {budget}", work)

    async def hosts(self) -> Counter[str]:
        """The number of pages of each host."""
        return await self._ask("hosts", lambda asked: asked.hosts())

    async def _ask(self, name: str, work: Callable[[Questions], T]) -> T:
        now = time.monotonic()
        self._asked = {key: one for key, one in self._asked.items() if not one[1].done() or now - one[0] < _KEPT}
        if name not in self._asked:
            if self._n_waiting >= _MOST:
                raise ProblemError.limited(f"{_MOST} questions about all pages wait already", 1.0)
            self._n_waiting += 1
            future = asyncio.get_running_loop().run_in_executor(self._thread, work, self._questions)
            future.add_done_callback(self._answered)
            self._asked[name] = now, future
        found: T = await asyncio.shield(self._asked[name][1])
        return found

    def _answered(self, future: asyncio.Future[Any]) -> None:
        self._n_waiting -= 1
        if not future.cancelled():
            future.exception()  # whoever asked may be gone

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)
