"""The web in memory and a manual clock: a day of crawling in a second."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from recrawl._system.worker import n_calls
from recrawl.crawl.clock import Clock
from recrawl.crawl.http.encoding import TooLarge
from recrawl.crawl.http.exchange import Exchange
from recrawl.crawl.http.failures import BadRedirect, BadUrl, failure_name
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.http.semantics import REDIRECTS

T = TypeVar("T")

_HEADERS = 64 << 10  # bytes of headers


@dataclass(frozen=True, slots=True)
class Answer:
    """What a page in memory answers; ``failure`` is one of FAILURES, where there is no answer."""

    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    took: float = 0.0
    failure: str | None = None


Page = Callable[[str, float], Answer | bytes | str | None]  # of URL and now; None: not found


class MemoryWeb:
    """A fetcher whose pages are functions of URL and time.

    ``pages`` maps URLs to pages, or is one page for all URLs. What is not there is 404, robots.txt too.

    >>> clock = ManualClock()
    >>> web = MemoryWeb({"http://a.example/": lambda url, now: f"it is {now}"}, clock)
    >>> asyncio.run(web.fetch("http://a.example/")).body
    b'it is 0.0'
    """

    def __init__(self, pages: Mapping[str, Page] | Page, clock: Clock, *, max_redirects: int = 5) -> None:
        self._page: Page = pages if callable(pages) else _of_mapping(pages)
        self._clock = clock
        self._max_redirects = max_redirects
        self.requests: list[tuple[float, str]] = []  # when and what, every hop

    async def fetch(
        self,
        url: str,
        *,
        etag: str | None = None,
        last_modified: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Fetched:
        """Ask the page of a URL, following redirects."""
        exchange = Exchange(self._clock, url, headers or {}, etag, last_modified)
        try:
            return await self._follow(exchange)
        except (BadUrl, BadRedirect, TooLarge) as error:
            return exchange.done(b"", failure_name(error))

    async def _follow(self, exchange: Exchange) -> Fetched:
        exchange.begin()
        while True:
            answer = await self._ask(exchange.at)
            if answer.failure is not None:
                return exchange.done(b"", answer.failure)
            is_same = answer.status == 200 and _matches(answer.headers, exchange.sent)
            exchange.answered(304 if is_same else answer.status, answer.headers.items(), _HEADERS)
            goal = exchange.headers.get("location") if exchange.status in REDIRECTS else None
            if goal is None:
                body = b"" if is_same else answer.body
                return exchange.done(body.encode() if isinstance(body, str) else body, exchange.verdict())
            exchange.hop(goal, self._max_redirects)

    async def _ask(self, url: str) -> Answer:
        now = self._clock.now()
        self.requests.append((now, url))
        given = self._page(url, now)
        if given is None:
            given = Answer(status=404)
        if not isinstance(given, Answer):
            given = Answer(given, headers={"content-type": "text/html; charset=utf-8"})
        if given.took > 0:
            await self._clock.sleep(given.took)
        return given

    async def close(self) -> None:
        """Nothing to give back."""


def _of_mapping(pages: Mapping[str, Page]) -> Page:
    def page(url: str, now: float) -> Answer | bytes | str | None:
        return pages[url](url, now) if url in pages else None

    return page


def _matches(headers: Mapping[str, str], sent: Mapping[str, str]) -> bool:
    """Whether an answer has the validators that were sent; where both have an ETag, dates do not count."""
    has = {name.lower(): value for name, value in headers.items()}
    etag, date = sent.get("If-None-Match"), sent.get("If-Modified-Since")
    if etag is not None and "etag" in has:
        return has["etag"].removeprefix("W/") == etag.removeprefix("W/")
    return date is not None and has.get("last-modified") == date


class ManualClock:
    """A clock that stands still until it is moved: ``advance`` by some seconds, or ``drive`` to the next sleeper."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()
        self._holds = 0

    def now(self) -> float:
        """The time it was moved to."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Return when the clock has been moved by ``seconds``."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), future))
        await future

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep the clock where it is while something outside the loop (a thread, a socket) is at work."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1

    async def advance(self, seconds: float) -> None:
        """Move the clock, waking sleepers in order, each at its instant and settled before the next wakes."""
        end = self._now + seconds
        await self._settle()
        while (at := self._next()) is not None and at <= end:
            await self._wake(at)
        self._now = max(self._now, end)

    async def drive(self, main: Coroutine[Any, Any, T]) -> T:
        """Run ``main`` to its end, moving the clock to the next sleeper whenever all wait."""
        task = asyncio.ensure_future(main)
        try:
            await self._settle()
            while not task.done():
                at = self._next()
                if at is None:
                    await asyncio.wait([task], timeout=0.001)  # something outside the loop
                    await self._settle()
                else:
                    await self._wake(at)
            return await task
        finally:
            task.cancel()

    def _next(self) -> float | None:
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)  # cancelled
        return self._sleepers[0][0] if self._sleepers else None

    async def _wake(self, at: float) -> None:
        self._now = max(self._now, at)
        while self._sleepers and self._sleepers[0][0] <= self._now:
            future = heapq.heappop(self._sleepers)[2]
            if not future.done():
                future.set_result(None)
        await self._settle()

    async def _settle(self) -> None:
        """Let every task run until all wait."""
        loop = asyncio.get_running_loop()
        ready = getattr(loop, "_ready", None)  # asyncio's own loop; others get rounds
        rounds = 0
        await asyncio.sleep(0)
        while (held := self._holds + n_calls(loop)) or (rounds < 50 if ready is None else len(ready) > 0):
            await asyncio.sleep(0.0002 if held else 0)
            rounds += 1
