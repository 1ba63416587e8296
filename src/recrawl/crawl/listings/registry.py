"""Registry of listings: which are known, within limits, and which is to be polled next."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np

from recrawl.crawl.formats.sitemaps import ENTRIES
from recrawl.crawl.listings.listing import Listing
from recrawl.crawl.listings.reading import SITEMAP
from recrawl.crawl.listings.worth import DAY, Worth, poll_intervals
from recrawl.store.listings import StoredListing

MOST = 50_000  # listings
MOST_OF_HOST = 1000
ENTRIES_OF_HOST = 2_000_000  # entries in the tables of one host: 32 MB
_SHARES = {"worth": 0.5, "unproven": 0.1, "first": 0.1, "age": 0.01}  # of requests: polls by why they are made
# A share below 1: the value at the margin is known by crawls, so that polls by worth must leave some.
_REFRESH = 600.0 / DAY  # days between two computations of when all polls are due
_SHORTEST = 300.0 / DAY  # days between two polls of a listing


@dataclass(frozen=True, slots=True)
class Pace:
    """What decides when listings are polled: the crawl value at the margin, requests per second, seconds of a day."""

    threshold: float
    rate: float
    day: float = DAY

    @property
    def shortest(self) -> float:
        """Seconds between two polls of a listing at least."""
        return _SHORTEST * self.day


class Registry:
    """The listings by URL; what is not saved yet is in ``pending``. A day has ``day`` seconds."""

    def __init__(self, day: float = DAY) -> None:
        self._day = day  # seconds
        self._listings: dict[str, Listing] = {}
        self._of_host: Counter[str] = Counter()
        self._entries: Counter[str] = Counter()
        self._parts: dict[str, set[str]] = {}  # by the URL of their index
        self._named: dict[str, set[str]] = {}  # by the host whose robots.txt names them
        self._queue = PollQueue()
        self.pending: dict[str, Listing | None] = {}

    def restore(self, stored: Iterable[StoredListing]) -> None:
        """The listings of earlier runs."""
        for one in stored:
            self._put(Listing.restore(one))

    def __len__(self) -> int:
        return len(self._listings)

    def __iter__(self) -> Iterator[Listing]:
        return iter(list(self._listings.values()))

    def get(self, url: str) -> Listing | None:
        """The listing of a URL."""
        return self._listings.get(url)

    def add(self, listing: Listing) -> Listing | None:
        """Add a listing, or find the one that is there; None if there are too many."""
        known = self._listings.get(listing.url)
        if known is not None:
            return known
        if len(self._listings) >= MOST or self._of_host[listing.host] >= MOST_OF_HOST:
            return None
        self._put(listing)
        self.changed(listing)
        return listing

    def _put(self, listing: Listing) -> None:
        if listing.worth == Worth():
            listing.worth = replace(listing.worth, expected_lead=self._day, day=self._day)
        self._listings[listing.url] = listing
        self._of_host[listing.host] += 1
        self._entries[listing.host] += listing.n_entries
        if listing.parent is not None:
            self._parts.setdefault(listing.parent, set()).add(listing.url)
        for host in listing.names:
            self._named.setdefault(host, set()).add(listing.url)
        self._queue.changed(listing.url)

    def parts(self, url: str) -> list[Listing]:
        """The parts of an index."""
        return [self._listings[one] for one in sorted(self._parts.get(url, ()))]

    def named(self, host: str, urls: Sequence[str]) -> None:
        """The robots.txt of a host names these sitemaps, and no others."""
        for url in sorted(self._named.pop(host, set()).difference(urls)):
            listing = self._listings.get(url)
            if listing is not None and host in listing.names:
                listing.names.remove(host)
                self.changed(listing)
                if listing.named_by == "robots" and not listing.names:
                    self.remove(url)
        for url in urls:
            listing = self.add(Listing(url, SITEMAP, "robots"))
            if listing is not None:
                if listing.named(host):
                    self.changed(listing)
                self._named.setdefault(host, set()).add(url)

    def remove(self, url: str) -> None:
        """Poll a listing no more; the parts of an index go with it."""
        listing = self._listings.get(url)
        if listing is None:
            return
        for one in [listing, *self.parts(url)]:
            del self._listings[one.url]
            self._parts.get(one.parent or "", set()).discard(one.url)
            self._queue.changed(one.url)
            self._of_host[one.host] -= 1
            self._entries[one.host] -= one.n_entries
            self.pending[one.url] = None

    def changed(self, listing: Listing) -> None:
        """A listing is to be saved, and may be due at another time."""
        self.pending[listing.url] = listing
        self._queue.changed(listing.url)

    def room(self, listing: Listing) -> int:
        """How many entries a listing may have."""
        return max(min(ENTRIES, ENTRIES_OF_HOST - self._entries[listing.host] + listing.n_entries), 0)

    def counted(self, listing: Listing, n_entries: int) -> None:
        """A listing has so many entries from now on."""
        self._entries[listing.host] += n_entries - listing.n_entries
        listing.n_entries = n_entries

    # --- when ---------------------------------------------------------------------------------------------------------

    def due(self, now: float, pace: Pace) -> Listing | None:
        """The listing that is to be polled now; none of it is due again until it has ended."""
        self._queue.update(self._listings, now, pace)
        url = self._queue.pop(now, pace)
        return None if url is None else self._listings[url]

    def is_polled(self, url: str) -> bool:
        """Whether a poll of a listing runs."""
        return self._queue.is_running(url)

    def ended(self, listing: Listing) -> None:
        """A poll has ended."""
        self._queue.ended(listing.url)
        if listing.url in self._listings:
            self.changed(listing)

    def next_at(self, now: float, pace: Pace) -> float:
        """When a listing is to be polled, as far as is known now."""
        self._queue.update(self._listings, now, pace)
        return self._queue.next_at()


class PollQueue:
    """When listings are due, by why: their worth, their first poll, or their age; each within a share of requests."""

    def __init__(self) -> None:
        self._due: dict[str, dict[str, float]] = {}  # by URL and why
        self._heaps: dict[str, list[tuple[float, str]]] = {why: [] for why in _SHARES}
        self._free_at = dict.fromkeys(_SHARES, -math.inf)  # when the next poll of its kind may be made
        self._dirty: set[str] = set()
        self._running: set[str] = set()
        self._computed_at = -math.inf

    def changed(self, url: str) -> None:
        """When a listing is due is to be computed again."""
        self._dirty.add(url)

    def ended(self, url: str) -> None:
        """A poll has ended."""
        self._running.discard(url)

    def is_running(self, url: str) -> bool:
        """Whether a poll of a listing runs."""
        return url in self._running

    def update(self, listings: Mapping[str, Listing], now: float, pace: Pace) -> None:
        """Compute when listings are due: those that changed, and from time to time all, because the margin moves."""
        if now >= self._computed_at + _REFRESH * pace.day:
            self._dirty.update(listings)
            self._heaps = {why: [] for why in _SHARES}
            self._due.clear()
            self._computed_at = now
        if not self._dirty:
            return
        mine = [listings[url] for url in self._dirty if url in listings and url not in self._running]
        for url in self._dirty:
            self._due.pop(url, None)
        self._dirty = self._dirty & self._running
        for listing, due in zip(mine, due_times(mine, pace), strict=True):
            self._due[listing.url] = due
            for why, at in due.items():
                heappush(self._heaps[why], (at, listing.url))

    def pop(self, now: float, pace: Pace) -> str | None:
        """The URL of a listing that is due; it runs from now on."""
        for why, share in _SHARES.items():
            if self._free_at[why] <= now and (top := self._top(why)) is not None and top[0] <= now:
                heappop(self._heaps[why])
                del self._due[top[1]]
                self._running.add(top[1])
                self._free_at[why] = now + 1.0 / max(share * pace.rate, 1e-9)
                return top[1]
        return None

    def next_at(self) -> float:
        """When a listing is due, as far as is known now."""
        tops = [(why, self._top(why)) for why in _SHARES]
        return min((max(top[0], self._free_at[why]) for why, top in tops if top is not None), default=math.inf)

    def _top(self, why: str) -> tuple[float, str] | None:
        heap = self._heaps[why]
        while heap and self._due.get(heap[0][1], {}).get(why) != heap[0][0]:
            heappop(heap)  # computed again since
        return heap[0] if heap else None


def due_times(listings: Sequence[Listing], pace: Pace) -> list[dict[str, float]]:
    """When each listing is due, by why: the first time and when its index says so at once, later by worth or age.

    >>> due_times([Listing("https://a.example/s.xml")], Pace(1.0, 1.0))
    [{'first': 0.0}]
    """
    intervals = _intervals(listings, pace)
    found = [_due_at(one, interval, pace) for one, interval in zip(listings, intervals, strict=True)]
    return [
        {why: max(at, one.not_before) for why, at in due.items() if at < math.inf}
        for one, due in zip(listings, found, strict=True)
    ]


def _due_at(listing: Listing, interval: float, pace: Pace) -> dict[str, float]:
    polled = listing.polled_at
    if listing.as_page:
        return {}
    if listing.waiting:
        return {"worth": -math.inf}
    if polled is None:
        return {"first": -math.inf}
    if listing.follows_index:
        return {}
    if listing.backlog:
        return {"first": polled + pace.day}
    by_age = polled + max(listing.worth.longest, pace.shortest)
    proven = listing.trusted or listing.worth.found > 0.0
    return {"worth" if proven else "unproven": polled + max(interval, pace.shortest), "age": by_age}


def _intervals(listings: Sequence[Listing], pace: Pace) -> list[float]:
    """The intervals of polls by their worth."""
    if not listings:
        return []
    costs = np.array([max(one.requests, 1.0) for one in listings])
    found: list[float] = poll_intervals([one.worth for one in listings], pace.threshold, costs).tolist()
    return found
