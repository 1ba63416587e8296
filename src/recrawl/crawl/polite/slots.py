"""Slots: hosts that are slow, or not yet known to be quick, share half of the slots for crawls.

Otherwise hosts that never answer would in the end hold all slots, each for as long as a fetch may take.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from recrawl.engine.names.addresses import host_of

Pair = tuple[int, str]

QUICK = 2.0  # seconds within which a host answers that is not slow
PATIENCE = 5.0  # seconds that a slow crawl has while others wait for its slot
_FEWEST = 8  # slots, below which they are not divided
_REMEMBERED = 100_000  # quick hosts


class Slots:
    """Which hosts may start a crawl, and which crawls are ended for others; times are the crawler's."""

    def __init__(self, n: int) -> None:
        self.resize(n)
        self._quick: OrderedDict[str, None] = OrderedDict()
        self._running: dict[int, tuple[str, float, asyncio.Timeout]] = {}
        self._waiting: dict[str, None] = {}  # slow hosts that had no slot when they were picked
        self._n = 0

    def resize(self, n: int) -> None:
        """Another number of slots."""
        self._shared = n // 2 if n >= _FEWEST else n
        self._cuts = n >= _FEWEST

    def share(self, pairs: list[Pair], now: float) -> tuple[list[Pair], list[Pair]]:
        """Of pages (id, URL) those whose hosts may have a slot now, and those that must wait."""
        free = self._shared - self.n_slow(now)
        taken, waiting = list[Pair](), list[Pair]()
        for pair in pairs:
            slow = self.is_slow(host := host_of(pair[1]))
            if slow and free <= 0:
                waiting.append(pair)
                self._waiting[host] = None
            else:
                taken.append(pair)
            free -= slow
        return taken, waiting

    def admitted(self, now: float) -> list[str]:
        """The hosts that need not wait for a slot any longer: they have answered, or half of the shared slots are free.

        Where hosts do not answer, fewer are free, and each host asks again after a while: none is always the first.
        """
        if not self._waiting:
            return []
        free = 2 * self.n_slow(now) <= self._shared
        hosts = [host for host in self._waiting if free or not self.is_slow(host)]
        for host in hosts:
            del self._waiting[host]
        return hosts

    def is_slow(self, host: str) -> bool:
        """Whether a host is slow, or not known to be quick."""
        return host not in self._quick

    def n_slow(self, now: float) -> int:
        """How many slots slow hosts have."""
        return sum(host not in self._quick or now - at > QUICK for host, at, _ in self._running.values())

    @contextmanager
    def taken(self, host: str, now: float, limit: asyncio.Timeout) -> Iterator[None]:
        """A crawl that runs; ``limit`` ends it when it must make room."""
        self._n += 1
        number = self._n
        self._running[number] = host, now, limit
        try:
            yield
        finally:
            del self._running[number]

    def ended(self, host: str, took: float, *, answered: bool) -> None:
        """A crawl ended: whether its host answered, and after how many seconds."""
        self._quick.pop(host, None)
        if answered and took <= QUICK:
            self._quick[host] = None
            if len(self._quick) > _REMEMBERED:
                self._quick.popitem(last=False)

    def make_room(self, now: float) -> int:
        """End the crawls that have been slow for longest, as far as slow ones have more than their share; how many."""
        over = self.n_slow(now) - self._shared + 1 if self._cuts else 0
        slow = sorted((at, number) for number, (_, at, limit) in self._running.items() if not limit.expired())
        cut = [number for at, number in slow if now - at > PATIENCE][: max(over, 0)]
        for number in cut:
            self._running[number][2].reschedule(asyncio.get_running_loop().time())
        return len(cut)
