"""Lease book: which pages crawlers hold, and which leases have ended."""

from __future__ import annotations

import base64
import heapq
import secrets
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from recrawl.store.leases import HELD, Lease
from recrawl.store.protocol import Copy

LONGEST = 86400.0  # seconds of a lease
KEPT = 86400.0  # seconds after its end that a lease is known: an outcome that comes later is unknown
_REMEMBERED = 100_000  # ended leases that are known without asking the store


def new_ids(n: int, now: float) -> list[str]:
    """Lease ids, of 32 characters: 8 for the millisecond, then 144 random bits.

    Leases that are written together lie together in the table, and end there together.
    """
    time = base64.urlsafe_b64encode(int(1000.0 * now).to_bytes(6, "big")).decode()
    text = base64.urlsafe_b64encode(secrets.token_bytes(18 * n)).decode()
    return [time + text[first : first + 24] for first in range(0, 24 * n, 24)]


def picked_at(name: str) -> float:
    """When a lease was given, to the millisecond, by its id.

    >>> round(picked_at(new_ids(1, 1.7e9 + 0.0625)[0]) - 1.7e9, 4)
    0.062
    """
    return int.from_bytes(base64.urlsafe_b64decode(name[:8]), "big") / 1000.0


@dataclass(slots=True)
class Holding:
    """A lease that is held, and its page. ``deferred``: the engine keeps the page back by a wait, not as picked.

    ``copy`` is the copy that the page had when it was handed out; ``copy_known``: it is still the newest.
    """

    lease: Lease
    page: int
    host: str
    deferred: bool = False
    copy: Copy | None = None
    copy_known: bool = False
    renewed: bool = False  # a newer copy came since


class LeaseBook:
    """Leases that are held, by id and by URL; at most one of each page."""

    def __init__(self) -> None:
        self._held: dict[str, Holding] = {}
        self._by_url: dict[str, Holding] = {}
        self._ends: list[tuple[float, str]] = []
        self._ended: OrderedDict[str, Lease] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, holding: Holding) -> None:
        """A page is handed out."""
        lease = holding.lease
        assert lease.url not in self._by_url, "a page has one holder"
        self._held[lease.id] = self._by_url[lease.url] = holding
        heapq.heappush(self._ends, (lease.until, lease.id))

    def has_newer_copy(self, url: str) -> None:
        """A page has a newer copy than when it was handed out."""
        holding = self._by_url.get(url)
        if holding is not None:
            holding.copy, holding.copy_known, holding.renewed = None, False, True

    def holding(self, url: str) -> Holding | None:
        """Who holds a page."""
        return self._by_url.get(url)

    def held(self, name: str) -> Holding | None:
        """How a lease is held; None: it is not."""
        return self._held.get(name)

    def find(self, name: str) -> Lease | None:
        """A lease that is held, or has ended not long ago."""
        held = self._held.get(name)
        return self._ended.get(name) if held is None else held.lease

    def end(self, name: str, state: str) -> tuple[Lease, Holding | None]:
        """A lease ends: the lease as it is then, and how it was held; None: it was lost before."""
        holding = self._held.pop(name, None)
        if holding is not None:
            del self._by_url[holding.lease.url]
        before = holding.lease if holding is not None else self._ended[name]
        lease = Lease(name, before.url, before.picked_at, before.until, state, before.conditional)
        self.remember(lease)
        return lease, holding

    def expire(self, now: float) -> list[Holding]:
        """Leases whose time has passed: their pages are free."""
        lost = []
        while self._ends and self._ends[0][0] <= now:
            _, name = heapq.heappop(self._ends)
            if name in self._held:
                holding = self._held[name]
                self.end(name, HELD)
                lost.append(holding)
        return lost

    def next_end(self) -> float | None:
        """When the next lease ends, if none is recorded before."""
        while self._ends and self._ends[0][1] not in self._held:
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else None

    def remember(self, *leases: Lease) -> None:
        """Leases that have ended, as they were read or as they ended here."""
        for lease in leases:
            self._ended.pop(lease.id, None)
            self._ended[lease.id] = lease
        while len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Those ids that only the store may know."""
        return [name for name in dict.fromkeys(names) if name not in self._held and name not in self._ended]
