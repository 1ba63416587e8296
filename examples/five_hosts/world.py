"""The truth of the example: 300 pages on five hosts, and when each of them changes. Everything follows from a seed.

Times are seconds since the start. A page changes as a Poisson process of its own rate, or never.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from dataclasses import dataclass

HORIZON = 3600.0  # seconds for which changes are drawn
OUTAGE = (200.0, 215.0)  # when the host flaky answers 503
FEED_ITEMS = 20
PRIVATE = "/private/"  # what every robots.txt disallows


@dataclass(frozen=True)
class Host:
    """One host: its pages, how they change, and what makes it hard to crawl.

    The mean time between two changes of a page is drawn from ``fastest`` to ``slowest`` seconds, evenly in its
    logarithm. Of the pages, ``static`` never change, and ``odd`` do not answer 200, each for the reason that is given.
    """

    name: str
    n_pages: int
    fastest: float
    slowest: float
    static: int = 0
    odd: tuple[str, ...] = ()
    importance: float = 1.0
    latency: float = 0.0  # seconds that an answer takes at most
    crawl_delay: float = 0.0
    failing: float = 0.0  # share of answers that are 500
    validators: str = ""  # "etag", "date" or none
    feed: bool = False

    @property
    def address(self) -> str:
        """The host's name, which means this machine (RFC 6761)."""
        return f"{self.name}.localhost"


HOSTS = (
    Host("news", 70, 30.0, 600.0, importance=2.0),
    Host("shop", 80, 120.0, 1800.0, static=10, odd=("301",) * 3 + ("moves",) * 2 + ("private",) * 2, validators="etag"),
    Host("docs", 90, 300.0, 3600.0, static=45, validators="etag", feed=True),
    Host("slow", 30, 120.0, 1200.0, latency=2.0, crawl_delay=2.0, validators="date"),
    Host("flaky", 30, 120.0, 1200.0, odd=("404",) * 4 + ("leaves",) * 4 + ("500",) * 3, failing=0.1),
)


@dataclass(frozen=True)
class Page:
    """One page: ``odd`` is why it does not answer 200, from ``odd_at`` on; ``every`` the mean time between changes."""

    host: Host
    path: str
    every: float
    changed_at: tuple[float, ...] = ()
    odd: str = ""
    odd_at: float = math.inf
    latency: float = 0.0

    def version(self, at: float) -> int:
        """How often the page has changed by a time."""
        return bisect_right(self.changed_at, at)

    def state(self, at: float) -> str:
        """What the page is at a time: its version, or why it has none. A copy is fresh while it is of this state."""
        return self.odd if at >= self.odd_at else str(self.version(at))

    def until(self, at: float) -> float:
        """When the page's state at a time ends."""
        version = self.version(at)
        changes = self.changed_at[version] if version < len(self.changed_at) else math.inf
        return min(changes, self.odd_at if at < self.odd_at else math.inf)


class World:
    """All pages of a seed, by host and path."""

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        self.pages = [page for host in HOSTS for page in _pages(host, random.Random(f"{seed} {host.name}"))]
        self._by_place = {(page.host.address, page.path): page for page in self.pages}

    def page(self, address: str, path: str) -> Page | None:
        """The page of a host and path."""
        return self._by_place.get((address, path))

    def feed(self, host: Host, at: float) -> list[tuple[float, Page]]:
        """The newest changes of a host's pages, which are the items of its feed, newest first."""
        pages = [page for page in self.pages if page.host is host and page.path != "/feed.xml"]
        found = [(changed, page) for page in pages for changed in page.changed_at if changed <= at]
        return sorted(found, key=lambda item: -item[0])[:FEED_ITEMS]


def _pages(host: Host, rng: random.Random) -> list[Page]:
    n_plain = host.n_pages - len(host.odd) - host.feed
    pages = [_plain(host, k, rng, static=k >= n_plain - host.static) for k in range(n_plain)]
    for k, odd in enumerate(host.odd):
        path = f"{PRIVATE}{k}" if odd == "private" else f"/odd/{odd}-{k}"
        begins = rng.uniform(60.0, 240.0) if odd in ("moves", "leaves") else 0.0
        pages.append(Page(host, path, math.inf, odd=odd, odd_at=begins))
    if host.feed:
        changed = sorted(at for page in pages for at in page.changed_at)
        pages.append(Page(host, "/feed.xml", HORIZON / max(len(changed), 1), tuple(changed)))
    return pages


def _plain(host: Host, k: int, rng: random.Random, *, static: bool) -> Page:
    every = math.inf if static else host.fastest * (host.slowest / host.fastest) ** rng.random()
    changed, at = [], 0.0
    while every < math.inf and (at := at + rng.expovariate(1.0 / every)) < HORIZON:
        changed.append(at)
    return Page(host, f"/{'abcdefgh'[k // 12]}/{k}", every, tuple(changed), latency=host.latency * rng.random())
