"""Robots: what robots.txt allows, by RFC 9309."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from protego import Protego

from recrawl.crawl.clock import Clock
from recrawl.crawl.fetched import Fetched, Fetcher

KEPT_FOR = 86400.0  # seconds a copy is used before it is fetched again
USED_FOR = 30 * 86400.0  # seconds a copy is used while the file cannot be reached
PARSED = 500 << 10  # bytes that are parsed
HOSTS = 20_000  # hosts whose rules are in memory
_FIRST_RETRY, _LAST_RETRY = 300.0, 86400.0  # seconds between tries of a file that cannot be reached
_LONGEST_DELAY = 3600.0  # a crawl-delay beyond this counts as this


@dataclass(frozen=True, slots=True)
class Rule:
    """What robots.txt says about a URL."""

    allowed: bool
    crawl_delay: float | None = None
    sitemaps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Copy:
    rules: Protego | None  # None: nothing is known, nothing allowed
    read_at: float  # when the rules were read
    until: float  # when to ask again
    wait: float = _FIRST_RETRY  # how long after the next failure


class Robots:
    """The rules of hosts, fetched when first asked for and kept for a day; one fetch per host at a time."""

    def __init__(self, fetcher: Fetcher, user_agent: str, clock: Clock) -> None:
        self._fetcher = fetcher
        self._token = product_token(user_agent)
        self._clock = clock
        self._copies: OrderedDict[str, _Copy] = OrderedDict()
        self._running: dict[str, asyncio.Task[_Copy]] = {}

    def known(self, url: str) -> bool:
        """Whether ``rules(url)`` answers without a fetch."""
        copy = self._copies.get(_origin(url))
        return copy is not None and self._clock.now() < copy.until

    async def rules(self, url: str) -> Rule:
        """What robots.txt of the URL's host says about it."""
        origin = _origin(url)
        copy = self._copies.get(origin)
        if copy is None or self._clock.now() >= copy.until:
            copy = await self._renewed(origin)
        else:
            self._copies.move_to_end(origin)
        return self._rule(copy, url)

    def said(self, url: str) -> Rule | None:
        """What ``rules(url)`` answers, where it needs no fetch."""
        return self._rule(self._copies[_origin(url)], url) if self.known(url) else None

    def ask_again_at(self, url: str) -> float:
        """When robots.txt of the URL's host is next worth asking: now, where nothing is known of it."""
        copy = self._copies.get(_origin(url))
        return self._clock.now() if copy is None else copy.until

    def _rule(self, copy: _Copy, url: str) -> Rule:
        if copy.rules is None:
            return Rule(allowed=False)
        delay = copy.rules.crawl_delay(self._token)
        bounded = None if delay is None or not delay >= 0 else min(float(delay), _LONGEST_DELAY)
        return Rule(copy.rules.can_fetch(url, self._token), bounded, tuple(copy.rules.sitemaps))

    async def _renewed(self, origin: str) -> _Copy:
        task = self._running.get(origin)
        if task is None:
            task = asyncio.create_task(self._fetch(origin))
            self._running[origin] = task
            task.add_done_callback(lambda _: self._running.pop(origin, None))
        return await asyncio.shield(task)

    async def _fetch(self, origin: str) -> _Copy:
        fetched = await self._fetcher.fetch(f"{origin}/robots.txt")
        copy = _copy(fetched, self._copies.get(origin), self._clock.now())
        self._copies[origin] = copy
        self._copies.move_to_end(origin)
        while len(self._copies) > HOSTS:
            self._copies.popitem(last=False)
        return copy


def _copy(fetched: Fetched, before: _Copy | None, now: float) -> _Copy:
    if fetched.failure is None:
        text = fetched.body[:PARSED].decode("utf-8", "replace")
        return _Copy(Protego.parse(text), now, now + KEPT_FOR)
    if fetched.failure in ("http-4xx", "redirects"):
        return _Copy(Protego.parse(""), now, now + KEPT_FOR)
    wait = before.wait if before is not None else _FIRST_RETRY
    until = now + max(wait, fetched.retry_after or 0.0)
    longer = min(2 * wait, _LAST_RETRY)
    if before is not None and now - before.read_at < USED_FOR:
        return replace(before, until=until, wait=longer)
    return _Copy(None, now, until, longer)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def product_token(user_agent: str) -> str:
    """The name by which robots.txt calls a crawler.

    >>> product_token("recrawl/0.1 (+https://example.org/bot)")
    'recrawl'
    """
    return user_agent.split("/")[0].split()[0] if user_agent.strip(" /") else "*"
