"""Robots: what robots.txt allows, by RFC 9309.

A file that is not there (4xx) allows everything; one that cannot be reached (5xx, 429, no answer) allows nothing, but a
copy read before is used for up to 30 days. What is remembered of a host is its text, in ``kept``, which a driver
can keep between runs; parsed rules are a small cache beside it.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple
from urllib.parse import urlsplit

from protego import Protego

from recrawl.crawl.clock import Clock
from recrawl.crawl.http.fetched import Fetched, Fetcher
from recrawl.crawl.http.semantics import redirect_goal
from recrawl.crawl.run.offload import LARGE, Apart

KEPT_FOR = 86400.0  # seconds a copy is used before it is fetched again
USED_FOR = 30 * 86400.0  # seconds a copy is used while the file cannot be reached
READ = 500 << 10  # bytes that are read
_PARSED, _PARSED_BYTES = 2000, 4 << 20  # hosts whose rules are parsed, and the length of their files together
_SAID = 20_000  # URLs whose rule is remembered: a file may have tens of thousands of lines to go through
_FIRST_RETRY, _LAST_RETRY = 300.0, 86400.0  # seconds between tries of a file that cannot be reached
_LONGEST_DELAY = 3600.0  # a longer crawl-delay counts as this
_SITEMAPS = 1000  # of one host
_AGENT = re.compile(
    r"^([ \t]*user-?agent[ \t]*:[ \t]*[^\s/#]+)[/ \t][^\r\n]*", re.IGNORECASE | re.MULTILINE
)  # its token
_HOPS = 5  # redirects that are followed
_NOT_THERE = frozenset({"http-4xx", "redirects"})  # failures that mean that there are no rules


Ask = Callable[[str], Awaitable[Fetched]]


@dataclass(frozen=True, slots=True)
class Rule:
    """What robots.txt says about a URL."""

    allowed: bool
    crawl_delay: float | None = None
    sitemaps: tuple[str, ...] = ()
    unreachable: str | None = None  # the failure that kept it from being read, when nothing is allowed for that reason


@dataclass(frozen=True, slots=True)
class Kept:
    """What is remembered of a host's robots.txt."""

    text: bytes | None  # compressed by zlib; None: never read, nothing is allowed
    read_at: float
    until: float  # when to ask again
    wait: float = _FIRST_RETRY  # how long to wait after the next failure
    failure: str | None = None  # why it was not read the last time


class Robots:
    """The rules of hosts, fetched when first asked for and kept for a day; one fetch per host at a time."""

    def __init__(
        self, fetcher: Fetcher, user_agent: str, clock: Clock, kept: MutableMapping[str, Kept] | None = None
    ) -> None:
        self._fetcher = fetcher
        self._token = product_token(user_agent)
        self._clock = clock
        self._kept: MutableMapping[str, Kept] = {} if kept is None else kept
        self._parsed: OrderedDict[str, _Parsed] = OrderedDict()
        self._parsed_bytes = 0
        self._said: OrderedDict[str, tuple[float, Rule]] = OrderedDict()
        self._apart = Apart(clock)
        self._running: dict[str, asyncio.Task[Kept]] = {}

    def known(self, url: str) -> bool:
        """Whether ``rules(url)`` answers without a fetch."""
        kept = self._kept.get(_origin(url))
        return kept is not None and self._clock.now() < kept.until

    async def fetch(self, url: str) -> Fetched:
        """Fetch by the fetcher that robots.txt is read with."""
        return await self._fetcher.fetch(url)

    async def rules(self, url: str, ask: Ask | None = None) -> Rule:
        """What robots.txt of the URL's host says about it; ``ask`` makes the requests where one is needed, redirects
        one by one (default: ``fetch``).
        """
        origin = _origin(url)
        kept = self._kept.get(origin)
        if kept is None or self._clock.now() >= kept.until:
            kept = await self._renewed(origin, ask or self.fetch)
        return self._rule(url, origin, kept)

    def said(self, url: str) -> Rule | None:
        """What ``rules(url)`` answers, where it needs no fetch."""
        origin = _origin(url)
        kept = self._kept.get(origin)
        return None if kept is None or self._clock.now() >= kept.until else self._rule(url, origin, kept)

    def ask_again_at(self, url: str) -> float:
        """When robots.txt of the URL's host is next worth asking: now, where nothing is known of it."""
        kept = self._kept.get(_origin(url))
        return self._clock.now() if kept is None else kept.until

    def forget(self) -> None:
        """Drop all that is remembered."""
        self._kept.clear()
        self._parsed.clear()
        self._said.clear()
        self._parsed_bytes = 0

    def _rule(self, url: str, origin: str, kept: Kept) -> Rule:
        if kept.text is None:
            return Rule(allowed=False, unreachable=kept.failure)
        said = self._said.get(url)
        if said is None or said[0] != kept.read_at:
            parsed = self._rules(origin, kept.text, kept.read_at)
            rule = Rule(parsed.rules.can_fetch(url, self._token), parsed.delay, parsed.sitemaps)
            said = self._said[url] = kept.read_at, rule
            if len(self._said) > _SAID:
                self._said.popitem(last=False)
        return said[1]

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

    async def _renewed(self, origin: str, ask: Ask) -> Kept:
        task = self._running.get(origin)
        if task is None:
            task = self._running[origin] = asyncio.create_task(self._read(origin, ask))
            task.add_done_callback(lambda _: self._running.pop(origin, None))
        return await asyncio.shield(task)

    async def _read(self, origin: str, ask: Ask) -> Kept:
        goal: str | None = f"{origin}/robots.txt"
        passed: list[str] = []
        while goal is not None and goal not in passed and len(passed) <= _HOPS:
            fetched = await ask(goal)
            passed.append(goal)
            goal = redirect_goal(goal, fetched)
        kept = self._kept[origin] = _kept(fetched, self._kept.get(origin), self._clock.now())
        if kept.text is not None and len(fetched.body) > LARGE:
            text, read_at = kept.text, kept.read_at
            parsed = await self._apart.call(lambda: _parsed(text, read_at, self._token), len(fetched.body))
            self._keep_parsed(origin, parsed)
        return kept


def _kept(fetched: Fetched, before: Kept | None, now: float) -> Kept:
    if fetched.failure is None or fetched.failure in _NOT_THERE:
        return Kept(zlib.compress(_cut(fetched.body), 1), now, now + KEPT_FOR)
    wait = _FIRST_RETRY if before is None else before.wait
    until = now + max(wait, fetched.retry_after or 0.0)
    longer = min(2 * wait, _LAST_RETRY)
    if before is not None and before.text is not None and now - before.read_at < USED_FOR:
        return replace(before, until=min(until, before.read_at + USED_FOR), wait=longer, failure=fetched.failure)
    return Kept(None, now, until, longer, fetched.failure)


def _cut(body: bytes) -> bytes:
    """The part that is read, in whole lines: half a line could allow more than the whole."""
    return body if len(body) <= READ else body[: body.rfind(b"\n", 0, READ) + 1]


class _Parsed(NamedTuple):
    """What a file says, ready to be asked."""

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
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def product_token(user_agent: str) -> str:
    """The name by which robots.txt calls a crawler.

    >>> product_token("recrawl/0.1 (+https://example.org/bot)")
    'recrawl'
    """
    return (user_agent.split("/")[0].split() or ["*"])[0]
