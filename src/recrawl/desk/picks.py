"""Picks: the pages that are worth most now, as far as budget, hosts and leases allow."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from recrawl.crawl.run.opening.components import Components
from recrawl.desk.lease_book import LeaseBook
from recrawl.engine.addresses import host_of

_EXAMINED = 10_000  # pages that one pick for some hosts looks at


@dataclass(frozen=True, slots=True)
class Picked:
    """A page to crawl. ``etag`` and ``last_modified`` are to be sent, so that the answer may be "not modified"."""

    lease: str
    url: str
    until: float  # when the lease ends, in seconds since 1970
    etag: str | None = None
    last_modified: str | None = None


class Pair(NamedTuple):
    """A page of the engine."""

    page: int
    url: str


class Chooser:
    """Takes pages from the engine."""

    def __init__(self, components: Components, book: LeaseBook) -> None:
        self._components, self._engine, self._book = components, components.engine, book

    def choose(self, now: float, n: int, hosts: Collection[str] | None) -> list[Pair]:
        """At most n pages, picked in the engine; the budget of their hosts is taken."""
        taken: list[Pair] = []
        aside: list[int] = []
        examined = 0
        while len(taken) < n and examined < _EXAMINED:
            want = n - len(taken) if hosts is None else max(4 * n, 64)
            ids = self._engine.pick(now, want).tolist()
            examined += len(ids)
            for pair in map(Pair, ids, self._engine.url(ids)):
                if not self._is_free(pair, now):
                    continue
                if len(taken) >= n or (hosts is not None and host_of(pair.url) not in hosts):
                    aside.append(pair.page)
                elif self._components.limiter.reserve(pair.url):
                    taken.append(pair)
                else:
                    self._engine.release([pair.page], now)
            if len(ids) < want:
                break
        if aside:
            self._engine.put_back(aside)
        return taken

    def _is_free(self, pair: Pair, now: float) -> bool:
        """Whether nobody holds a page that the engine picked; one that is held waits until its lease ends."""
        holding = self._book.holding(pair.url)
        if holding is None:
            return True
        self._engine.release([pair.page], now)
        self._engine.defer([pair.page], holding.lease.until)
        holding.deferred = True
        return False
