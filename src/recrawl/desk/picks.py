"""Picks: the pages that are worth most now, as far as budget, hosts and leases allow."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from recrawl.crawl.run.opening.components import Components
from recrawl.desk.lease_book import Holding, LeaseBook
from recrawl.engine.names.addresses import Addresses, host_of

Ids = NDArray[np.int64]
_EXAMINED = 10_000  # best pages of all that one pick looks at
_EXAMINED_FIRST = 1000  # the same, if the pages that are wanted are few


class Wanted(Protocol):
    """Which pages may be picked. ``keeps``: it commits their leases itself, and knows them after a restart."""

    keeps: bool

    @property
    def few(self) -> bool:
        """Whether `pages` are soon valued, and all that it may want."""

    def pages(self, addresses: Addresses) -> Ids:
        """Pages that it may want, to be valued by themselves."""

    def look(self, urls: Sequence[str]) -> None:
        """These pages may be asked for next; nothing is decided by that."""

    def __call__(self, url: str) -> bool | None:
        """Whether a page may be picked; None: no page that is worth less."""

    def leased(self, pages: Sequence[Picked]) -> None:
        """These pages are handed out; where it ``keeps`` leases, it has committed them when this returns."""


class OnHosts:
    """Pages of some hosts."""

    keeps, few = False, True

    def __init__(self, hosts: Collection[str]) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)

    def look(self, urls: Sequence[str]) -> None:
        """Nothing is to be done."""

    def leased(self, pages: Sequence[Picked]) -> None:
        """Nothing is to be done."""

    def __call__(self, url: str) -> bool:
        """Whether a page is on one of them."""
        return host_of(url) in self._hosts

    def pages(self, addresses: Addresses) -> Ids:
        """All pages of them."""
        return np.concatenate([np.zeros(0, np.int64), *map(addresses.on_host, sorted(self._hosts))])


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

        ``wanted`` is asked of each page, best first, while there is room for it. If too few are found among the best
        pages of all, its own pages are valued by themselves: better pages of others starve nobody.
        """
        turn = _Turn(now, n, wanted)
        most = _EXAMINED_FIRST if wanted is not None and wanted.few else _EXAMINED
        while turn.goes_on and turn.examined < most:
            want = turn.wants if wanted is None or turn.examined == 0 else max(4 * n, 64)
            self._take(turn, self._engine.pick(now, want).tolist(), want)
        if wanted is not None and turn.goes_on:
            among, want = wanted.pages(self._engine.addresses), turn.wants
            while turn.goes_on:  # a page may be held, the budget of its host be spent, or its queue have no room
                self._take(turn, self._engine.pick(now, want, among=among).tolist(), want)
                want = max(4 * want, 64)
        if turn.aside:
            self._engine.put_back(turn.aside)
        return turn.taken

    def _take(self, turn: _Turn, ids: list[int], asked: int) -> None:
        """Take pages that the engine has picked, as far as they may be; fewer than asked for are the last ones."""
        turn.examined += len(ids)
        urls = self._engine.url(ids)
        if turn.wanted is not None:
            turn.wanted.look(urls)
        for page, url in zip(ids, urls, strict=True):
            if (holding := self._book.holding(url)) is not None:
                self._keep_back(page, holding, turn.now)
            elif not turn.may(url):
                turn.aside.append(page)
            elif self._components.limiter.reserve(url, host := host_of(url)):
                turn.taken.append(Pair(page, url, host))
            else:
                self._engine.release([page], turn.now)
        turn.ended = turn.ended or len(ids) < asked

    def _keep_back(self, page: int, holding: Holding, now: float) -> None:
        """A page that the engine picked is held by somebody: it waits until that lease ends."""
        self._engine.release([page], now)
        self._engine.defer([page], holding.lease.until)
        holding.deferred = True


@dataclass
class _Turn:
    """One pick while it is made."""

    now: float
    n: int
    wanted: Wanted | None
    taken: list[Pair] = field(default_factory=list)
    aside: list[int] = field(default_factory=list)  # pages that are not wanted: to be put back
    examined: int = 0
    ended: bool = False  # no other page is to be found

    @property
    def wants(self) -> int:
        """How many more pages there is room for."""
        return self.n - len(self.taken)

    @property
    def goes_on(self) -> bool:
        """Whether further pages are to be found for which there is room."""
        return self.wants > 0 and not self.ended

    def may(self, url: str) -> bool:
        """Whether a page is taken."""
        may = not self.ended and self.wants > 0 and (self.wanted is None or self.wanted(url))
        self.ended = self.ended or may is None
        return bool(may)
