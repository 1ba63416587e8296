"""Robots: what robots.txt allows (RFC 9309).

A missing file (4xx) allows everything. A file that cannot be reached (5xx, 429, no answer) allows nothing, but a copy
read before is used for up to 30 days. The text of a host's file is in ``cache``, which a driver can keep between runs;
parsed rules are a small cache beside it.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from protego import Protego

from recrawl.crawl.clock import Clock
from recrawl.crawl.http.fetched import Fetched, Fetcher
from recrawl.crawl.http.semantics import redirect_goal
from recrawl.crawl.offload import LARGE, Offload

READ_EVERY = 86400.0  # seconds a copy is used before it is fetched again
USED_FOR = 30 * 86400.0  # seconds a copy is used while the file cannot be reached
READ = 500 << 10  # bytes that are read
_PARSED, _PARSED_BYTES = 2000, 4 << 20  # hosts whose rules are parsed, and the length of their files together
_CHECKED = 20_000  # URLs whose rule is cached: a file may have tens of thousands of lines
_FIRST_RETRY, _LAST_RETRY = 300.0, 86400.0  # seconds between tries of a file that cannot be reached
_LONGEST_DELAY = 3600.0  # a longer crawl-delay counts as this
_SITEMAPS = 1000  # of one host
_AGENT = re.compile(
    r"^([ \t]*user-?agent[ \t]*:[ \t]*[^\s/#]+)[/ \t][^\r\n]*", re.IGNORECASE | re.MULTILINE
)  # its token
_PLAIN_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(?::[0-9]+)?(?=/)")  # of most URLs; urlsplit takes longer
_HOPS = 5  # redirects that are followed
_NOT_THERE = frozenset({"http-4xx", "redirects"})  # failures that mean that there are no rules


Request = Callable[[str], Awaitable[Fetched]]


@dataclass(frozen=True, slots=True)
class RobotsRule:
    """What robots.txt allows for a URL."""

    allowed: bool
    crawl_delay: float | None = None
    sitemaps: tuple[str, ...] = ()
    unreachable: str | None = None  # the failure that kept it from being read, when nothing is allowed for that reason


@dataclass(frozen=True, slots=True)
class CachedRobots:
    """A host's robots.txt as it was last read."""

    text: bytes | None  # compressed by zlib; None: never read, nothing is allowed
    read_at: float
    until: float  # when to read it again
    wait: float = _FIRST_RETRY  # how long to wait after the next failure
    failure: str | None = None  # why it was not read the last time


class Robots:
    """The robots.txt of hosts, fetched on first use and cached for a day; one fetch per host at a time."""

    def __init__(
        self, fetcher: Fetcher, user_agent: str, clock: Clock, cache: MutableMapping[str, CachedRobots] | None = None
    ) -> None:
        self._fetcher = fetcher
        self._token = product_token(user_agent)
        self._clock = clock
        self._cache: MutableMapping[str, CachedRobots] = {} if cache is None else cache
        self._parsed: OrderedDict[str, _Parsed] = OrderedDict()
        self._parsed_bytes = 0
        self._checked: OrderedDict[str, tuple[float, RobotsRule]] = OrderedDict()
        self._offload = Offload(clock)
        self._running: dict[str, asyncio.Task[CachedRobots]] = {}

    async def recall(self, url: str) -> None:
        """Read the robots.txt of the URL's host from the store, where the cache is kept in one."""
        recall: Callable[[str], Awaitable[None]] | None = getattr(self._cache, "recall", None)
        if recall is not None:
            await recall(_origin(url))

    def recalled(self, url: str) -> bool:
        """Whether ``recall`` needs no read."""
        recalled: Callable[[str], bool] | None = getattr(self._cache, "recalled", None)
        return recalled is None or recalled(_origin(url))

    def known(self, url: str) -> bool:
        """Whether ``rules(url)`` answers without a fetch."""
        cached = self._cache.get(_origin(url))
        return cached is not None and self._clock.now() < cached.until

    async def fetch(self, url: str) -> Fetched:
        """Fetch by the fetcher that robots.txt is read with."""
        return await self._fetcher.fetch(url)

    async def rules(self, url: str, request: Request | None = None) -> RobotsRule:
        """What the robots.txt of the URL's host allows; ``request`` makes the requests where one is needed, one per
        redirect (default: ``fetch``).
        """
        await self.recall(url)
        origin = _origin(url)
        cached = self._cache.get(origin)
        if cached is None or self._clock.now() >= cached.until:
            cached = await self._renewed(origin, request or self.fetch)
        return self._rule(url, origin, cached)

    def cached_rule(self, url: str) -> RobotsRule | None:
        """What ``rules(url)`` answers where it needs no fetch; None where it does."""
        origin = _origin(url)
        cached = self._cache.get(origin)
        return None if cached is None or self._clock.now() >= cached.until else self._rule(url, origin, cached)

    def read_again_at(self, url: str) -> float:
        """When the robots.txt of the URL's host is read again: now where it was not read yet."""
        cached = self._cache.get(_origin(url))
        return self._clock.now() if cached is None else cached.until

    def pending_notes(self) -> dict[str, Any]:
        """Notes of what was read since the last call, where the cache is kept in a store."""
        pending: Callable[[], dict[str, Any]] = getattr(self._cache, "pending_notes", dict)
        return pending()

    def forget(self) -> None:
        """Empty the caches."""
        self._cache.clear()
        self._parsed.clear()
        self._checked.clear()
        self._parsed_bytes = 0

    def _rule(self, url: str, origin: str, cached: CachedRobots) -> RobotsRule:
        if cached.text is None:
            return RobotsRule(allowed=False, unreachable=cached.failure)
        checked = self._checked.get(url)
        if checked is None or checked[0] != cached.read_at:
            parsed = self._rules(origin, cached.text, cached.read_at)
            rule = RobotsRule(parsed.rules.can_fetch(url, self._token), parsed.delay, parsed.sitemaps)
            checked = self._checked[url] = cached.read_at, rule
            if len(self._checked) > _CHECKED:
                self._checked.popitem(last=False)
        return checked[1]

    def _rules(self, origin: str, text: bytes, read_at: float) -> _Parsed:
        known = self._parsed.get(origin)
        if known is None or known.read_at != read_at:
            known = self._keep_parsed(origin, _parsed(text, read_at, self._token))
        self._parsed.move_to_end(origin)
        return known

    def _keep_parsed(self, origin: str, new: _Parsed) -> _Parsed:
        before = self._parsed.pop(origin, None)
        self._parsed[origin] = new
        self._parsed_bytes += new.size - (before.size if before is not None else 0)
        while len(self._parsed) > 1 and (len(self._parsed) > _PARSED or self._parsed_bytes > _PARSED_BYTES):
            self._parsed_bytes -= self._parsed.popitem(last=False)[1].size
        return new

    async def _renewed(self, origin: str, request: Request) -> CachedRobots:
        task = self._running.get(origin)
        if task is None:
            task = self._running[origin] = asyncio.create_task(self._read(origin, request))
            task.add_done_callback(lambda _: self._running.pop(origin, None))
        return await asyncio.shield(task)

    async def _read(self, origin: str, request: Request) -> CachedRobots:
        goal: str | None = f"{origin}/robots.txt"
        passed: list[str] = []
        while goal is not None and goal not in passed and len(passed) <= _HOPS:
            fetched = await request(goal)
            passed.append(goal)
            goal = redirect_goal(goal, fetched)
        cached = self._cache[origin] = _cached(fetched, self._cache.get(origin), self._clock.now())
        if cached.text is not None and len(fetched.body) > LARGE:
            text, read_at = cached.text, cached.read_at
            parsed = await self._offload.call(lambda: _parsed(text, read_at, self._token), len(fetched.body))
            self._keep_parsed(origin, parsed)
        return cached


def _cached(fetched: Fetched, before: CachedRobots | None, now: float) -> CachedRobots:
    if fetched.failure is None or fetched.failure in _NOT_THERE:
        return CachedRobots(zlib.compress(_cut(fetched.body), 1), now, now + READ_EVERY)
    wait = _FIRST_RETRY if before is None else before.wait
    until = now + max(wait, fetched.retry_after or 0.0)
    longer = min(2 * wait, _LAST_RETRY)
    if before is not None and before.text is not None and now - before.read_at < USED_FOR:
        return replace(before, until=min(until, before.read_at + USED_FOR), wait=longer, failure=fetched.failure)
    return CachedRobots(None, now, until, longer, fetched.failure)


def _cut(body: bytes) -> bytes:
    """The part that is read, in whole lines: half a line could allow more than the whole."""
    return body if len(body) <= READ else body[: body.rfind(b"\n", 0, READ) + 1]


class _Parsed(NamedTuple):
    """A parsed file."""

    read_at: float
    rules: Protego
    delay: float | None
    sitemaps: tuple[str, ...]
    size: int


def _parsed(packed: bytes, read_at: float, token: str) -> _Parsed:
    text = _AGENT.sub(r"\1", zlib.decompress(packed).decode("utf-8-sig", "replace"))
    rules = Protego.parse(text)
    sitemaps = tuple(islice(rules.sitemaps, _SITEMAPS))
    return _Parsed(read_at, rules, _delay(rules, token), sitemaps, len(text))


def _delay(rules: Protego, token: str) -> float | None:
    delay = rules.crawl_delay(token)
    return None if delay is None or not delay >= 0 else min(float(delay), _LONGEST_DELAY)


def _origin(url: str) -> str:
    plain = _PLAIN_ORIGIN.match(url)
    if plain is not None:
        return plain[0]
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def product_token(user_agent: str) -> str:
    """The name by which robots.txt calls a crawler.

    >>> product_token("recrawl/0.1 (+https://example.org/bot)")
    'recrawl'
    """
    return (user_agent.split("/")[0].split() or ["*"])[0]
