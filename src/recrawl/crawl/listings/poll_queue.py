"""When listings are polled: by their worth, their first poll or their age, within shares of the requests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from recrawl.crawl.listings.listing import Listing
from recrawl.crawl.listings.worth import DAY, poll_intervals

_SHARES = {"worth": 0.5, "unproven": 0.1, "first": 0.1, "age": 0.01}  # of requests: polls by why they are made
# A share below 1: the value at the margin is known by crawls, so that polls by worth must leave some.
_REFRESH = 600.0 / DAY  # days between two computations of when all polls are due
_SHORTEST = 300.0 / DAY  # days between two polls of a listing


@dataclass(frozen=True, slots=True)
class PollTerms:
    """What decides when listings are polled: the crawl value at the margin, requests per second, seconds of a day."""

    threshold: float
    rate: float
    day: float = DAY

    @property
    def shortest(self) -> float:
        """Seconds between two polls of a listing at least."""
        return _SHORTEST * self.day


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

    def update(self, listings: Mapping[str, Listing], now: float, terms: PollTerms) -> None:
        """Compute when listings are due: those that changed, and from time to time all, because the margin moves."""
        if now >= self._computed_at + _REFRESH * terms.day:
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
        for listing, due in zip(mine, due_times(mine, terms), strict=True):
            self._due[listing.url] = due
            for why, at in due.items():
                heappush(self._heaps[why], (at, listing.url))

    def pop(self, now: float, terms: PollTerms) -> str | None:
        """The URL of a listing that is due; it runs from now on."""
        for why, share in _SHARES.items():
            if self._free_at[why] <= now and (top := self._top(why)) is not None and top[0] <= now:
                heappop(self._heaps[why])
                del self._due[top[1]]
                self._running.add(top[1])
                self._free_at[why] = now + 1.0 / max(share * terms.rate, 1e-9)
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


def due_times(listings: Sequence[Listing], terms: PollTerms) -> list[dict[str, float]]:
    """When each listing is due, by why: the first time and when its index says so at once, later by worth or age.

    >>> due_times([Listing("https://a.example/s.xml")], PollTerms(1.0, 1.0))
    [{'first': 0.0}]
    """
    intervals = _intervals(listings, terms)
    found = [_due_at(one, interval, terms) for one, interval in zip(listings, intervals, strict=True)]
    return [
        {why: max(at, one.not_before) for why, at in due.items() if at < math.inf}
        for one, due in zip(listings, found, strict=True)
    ]


def _due_at(listing: Listing, interval: float, terms: PollTerms) -> dict[str, float]:
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
        return {"first": polled + terms.day}
    by_age = polled + max(listing.worth.longest, terms.shortest)
    proven = listing.trusted or listing.worth.found > 0.0
    return {"worth" if proven else "unproven": polled + max(interval, terms.shortest), "age": by_age}


def _intervals(listings: Sequence[Listing], terms: PollTerms) -> list[float]:
    """The intervals of polls by their worth."""
    if not listings:
        return []
    costs = np.array([max(one.requests, 1.0) for one in listings])
    found: list[float] = poll_intervals([one.worth for one in listings], terms.threshold, costs).tolist()
    return found
