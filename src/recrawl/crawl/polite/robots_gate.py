"""Robots gate: the one place that decides whether a crawl may fetch a URL, and that reads robots.txt for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from recrawl.crawl.clock import Clock, hold
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.polite.budget import Budget, SaveNotes
from recrawl.crawl.polite.host_limiter import HostLimiter
from recrawl.crawl.polite.robots import Robots
from recrawl.engine.names.addresses import host_of

_RECALL = 0.02  # seconds of the machine's time that the start of crawls waits for reads from the store
LONGEST_WAIT = 30.0  # seconds that a redirect may have to wait for its host


class Permission(NamedTuple):
    """Whether a URL may be fetched: the failure if not, and when robots.txt is next read."""

    failure: str | None = None
    read_again_at: float | None = None
    unreachable: bool = False  # nothing is allowed because robots.txt could not be read

    @property
    def allowed(self) -> bool:
        """Whether the URL may be fetched."""
        return self.failure is None


_FREE = Permission()


def _looked_at(task: asyncio.Task[None]) -> None:
    """An error of a read that nobody waits for any more comes again with the next."""
    if not task.cancelled():
        task.exception()


class RobotsGate:
    """Answers for every URL of a crawl: ``robots`` is None where robots.txt is not used.

    Each request for robots.txt waits for the host limiter, and each after the first for the budget. What is learned of
    a host is written by ``save_notes`` before the crawl goes on.
    """

    def __init__(
        self, robots: Robots | None, limiter: HostLimiter, budget: Budget, clock: Clock, save_notes: SaveNotes
    ) -> None:
        self._robots, self._clock, self._save_notes = robots, clock, save_notes
        self.limiter, self.budget = limiter, budget
        self.on_read: Callable[[str, Sequence[str]], None] | None = (
            None  # gets the URL that robots.txt was read for, and its sitemaps
        )
        self._recalling: dict[str, asyncio.Task[None]] = {}  # reads from the store, by host

    async def recall(self, urls: Iterable[str]) -> set[str]:
        """Read the robots.txt of hosts from the store, all at once; the URLs whose host is not there yet.

        A store that is slow for one host does not keep others waiting: the read goes on, and the URL is due again.
        """
        robots = self._robots
        if robots is None:
            return set()
        unread = {host_of(url): url for url in urls if not robots.recalled(url)}
        if not unread:
            return set()
        for host, url in unread.items():
            if host not in self._recalling:
                self._recalling[host] = asyncio.create_task(robots.recall(url))
                self._recalling[host].add_done_callback(_looked_at)
        with hold(self._clock):
            done, _ = await asyncio.wait([self._recalling[host] for host in unread], timeout=_RECALL)
        for host in [host for host, task in self._recalling.items() if task in done]:
            self._recalling.pop(host).result()
        return {url for url in urls if not robots.recalled(url)}

    async def check(self, url: str) -> Permission | None:
        """Whether a URL may be fetched; None where robots.txt must be read first."""
        if self._robots is None:
            return _FREE
        await self._robots.recall(url)
        rule = self._robots.cached_rule(url)
        if rule is None:
            return None
        if rule.allowed:
            return _FREE
        failure = rule.unreachable if rule.unreachable == "forbidden-address" else "robots"
        return Permission(failure, self._robots.read_again_at(url), rule.unreachable is not None)

    async def read(self, url: str) -> int:
        """Read the robots.txt of a URL's host; how many requests that took. The first of them is paid for."""
        if self._robots is None:
            return 0
        robots, n = self._robots, 0

        async def request(at: str) -> Fetched:
            nonlocal n
            host = host_of(at)
            if n:
                await self.budget.further()
            if n and self.limiter.wait(host) > LONGEST_WAIT:
                return Fetched(at, at, 0, self._clock.now(), 0.0, failure="busy")
            if n:
                self.limiter.charge(at)
            async with self.limiter.request(host):
                fetched = await robots.fetch(at)
            n += self.settle(host, fetched)
            return fetched

        rule = await robots.rules(url, request)
        notes = self.limiter.set_crawl_delay(host_of(url), rule.crawl_delay)
        if notes:
            await self._save_notes(notes)
        if n and rule.unreachable is None and self.on_read is not None:
            self.on_read(url, rule.sitemaps)
        return n

    def settle(self, host: str, fetched: Fetched) -> int:
        """Count the requests of one fetch: those after the first are charged, and the host limiter sees the answer."""
        made = max(len(fetched.redirects) + (fetched.failure != "redirects"), 1)
        self.budget.charge(made - 1 + len(fetched.beside))
        self.limiter.charge(fetched.url, made - 1)
        for url in fetched.beside:
            self.limiter.charge(url)
        for asked, n in Counter(map(host_of, fetched.beside)).items():
            self.limiter.rest(asked, n)
        self.limiter.answered(host, fetched)
        for one in fetched.failed_beside:
            self.limiter.answered(host_of(one.final_url), one)
        return made + len(fetched.beside)
