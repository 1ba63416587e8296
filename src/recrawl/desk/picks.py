"""Picks: the pages that are worth most now, as far as budget, hosts and leases allow."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from recrawl.crawl.run.opening.components import Components
from recrawl.desk.lease_book import Holding, LeaseBook
from recrawl.engine.addresses import host_of

_EXAMINED = 10_000  # pages that one pick for some pages looks at


class Wanted(Protocol):
    """Which pages may be picked."""

    def look(self, urls: Sequence[str]) -> None:
        """These pages may be asked for next; nothing is decided by that."""

    def __call__(self, url: str) -> bool | None:
        """Whether a page may be picked; None: no page that is worth less."""


class OnHosts:
    """Pages of some hosts."""

    def __init__(self, hosts: Collection[str]) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)

    def look(self, urls: Sequence[str]) -> None:
        """Nothing is to be done."""

    def __call__(self, url: str) -> bool:
        """Whether a page is on one of them."""
        return host_of(url) in self._hosts


class Picked(NamedTuple):
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
    host: str


class Chooser:
    """Takes pages from the engine."""

    def __init__(self, components: Components, book: LeaseBook) -> None:
        self._components, self._engine, self._book = components, components.engine, book

    def choose(self, now: float, n: int, wanted: Wanted | None) -> list[Pair]:
        """At most n pages, picked in the engine; the budget of their hosts is taken.

        ``wanted`` is asked of each page, best first, while there is room for it.
        """
        taken: list[Pair] = []
        aside: list[int] = []
        examined = 0
        ended = False
        while len(taken) < n and examined < _EXAMINED and not ended:
            want = n - len(taken) if wanted is None or examined == 0 else max(4 * n, 64)
            ids = self._engine.pick(now, want).tolist()
            examined += len(ids)
            urls = self._engine.url(ids)
            if wanted is not None:
                wanted.look(urls)
            for page, url in zip(ids, urls, strict=True):
                if (holding := self._book.holding(url)) is not None:
                    self._keep_back(page, holding, now)
                    continue
                may = not ended and len(taken) < n and (wanted is None or wanted(url))
                ended = ended or may is None
                if not may:
                    aside.append(page)
                elif self._components.limiter.reserve(url, host := host_of(url)):
                    taken.append(Pair(page, url, host))
                else:
                    self._engine.release([page], now)
            if len(ids) < want:
                break
        if aside:
            self._engine.put_back(aside)
        return taken

    def _keep_back(self, page: int, holding: Holding, now: float) -> None:
        """A page that the engine picked is held by somebody: it waits until that lease ends."""
        self._engine.release([page], now)
        self._engine.defer([page], holding.lease.until)
        holding.deferred = True
