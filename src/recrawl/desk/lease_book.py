"""Lease book: which pages crawlers hold, and which leases have ended."""

from __future__ import annotations

import heapq
import secrets
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from recrawl.store.leases import HELD, Lease

LONGEST = 86400.0  # seconds of a lease
KEPT = 86400.0  # seconds after its end that a lease is known: an outcome that comes later is unknown
_REMEMBERED = 100_000  # ended leases that are known without asking the store


def new_id() -> str:
    """A lease id of 144 random bits."""
    return secrets.token_urlsafe(18)


@dataclass(slots=True)
class Holding:
    """A lease that is held. ``deferred``: the engine keeps its page back by a wait, and not because it was picked."""

    lease: Lease
    deferred: bool = False


class LeaseBook:
    """Leases that are held, by id and by URL; at most one of each page."""

    def __init__(self) -> None:
        self._held: dict[str, Holding] = {}
        self._by_url: dict[str, str] = {}
        self._ends: list[tuple[float, str]] = []
        self._ended: OrderedDict[str, Lease] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, lease: Lease, *, deferred: bool = False) -> None:
        """A page is handed out."""
        assert lease.url not in self._by_url, "a page has one holder"
        self._held[lease.id] = Holding(lease, deferred)
        self._by_url[lease.url] = lease.id
        heapq.heappush(self._ends, (lease.until, lease.id))

    def renew(self, lease: Lease) -> None:
        """What is known of a lease that is held."""
        if lease.id in self._held:
            self._held[lease.id].lease = lease

    def holding(self, url: str) -> Holding | None:
        """Who holds a page."""
        name = self._by_url.get(url)
        return None if name is None else self._held[name]

    def find(self, name: str) -> Lease | None:
        """A lease that is held, or has ended not long ago."""
        held = self._held.get(name)
        return self._ended.get(name) if held is None else held.lease

    def end(self, name: str, state: str) -> tuple[Lease, Holding | None]:
        """A lease ends: the lease as it is then, and how it was held; None: it was lost before."""
        holding = self._held.pop(name, None)
        if holding is not None:
            del self._by_url[holding.lease.url]
        lease = replace(holding.lease if holding is not None else self._ended[name], state=state)
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
            self._ended[lease.id] = lease
            self._ended.move_to_end(lease.id)
        while len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Those ids that only the store may know."""
        return [name for name in dict.fromkeys(names) if name not in self._held and name not in self._ended]
