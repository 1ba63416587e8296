"""Queues: what is known of each queue without reading its URLs, and whose turn it is."""

from __future__ import annotations

import heapq
import itertools
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from recrawl.contrib.urlfrontier.batches import KEY, Discovered, prefixed
from recrawl.engine.names.arena import Arena, Packed, pack
from recrawl.engine.names.kernels import Ids

AWAKE = -math.inf  # when a queue wakes that is awake
_FEW = 1000  # deleted queues that may be in memory
DEFAULT_DELAY = 1.0  # seconds between two serves of a queue


class Queue:
    """A queue of URLs. ``held`` are the URLs in process, by row, and until when.

    ``arrived`` are the places of its URLs that are no rows yet (`arrivals`); ``known``: all its URLs are marked.
    """

    __slots__ = (
        "active",
        "arrived",
        "blocked_until",
        "completed",
        "crawl",
        "delay",
        "held",
        "id",
        "key",
        "known",
        "last_served",
        "limit",
        "wakes",
    )

    def __init__(self, id: int, crawl: Crawl, key: str) -> None:
        self.id, self.crawl, self.key = id, crawl, key
        self.active = self.completed = self.limit = 0
        self.delay: float | None = None  # None: the default
        self.blocked_until, self.last_served = 0.0, -math.inf
        self.held: dict[int, float] = {}
        self.arrived = array("Q")
        self.known = False
        self.wakes = AWAKE  # before when it has nothing to serve; it is asleep while this lies ahead

    def in_process(self, now: float) -> int:
        """How many URLs are in process."""
        if self.held:
            self.held = {row: until for row, until in self.held.items() if until > now}
        return len(self.held)

    def opens_at(self, default_delay: float) -> float:
        """Before when it serves nothing, whatever its URLs."""
        if 0 < self.limit <= self.completed:
            return math.inf
        delay = default_delay if self.delay is None else self.delay
        return max(self.blocked_until, self.last_served + delay)


class Crawl:
    """The queues of a crawl ID in their turn: those that may have something, and those that sleep until a time."""

    def __init__(self, name: str, *, managed: bool = False) -> None:
        self.name, self.managed = name, managed
        self.queues: dict[str, Queue] = {}
        self.active = self.completed = 0
        self.n_inactive = 0  # queues without active URLs
        self.blocked: set[Queue] = set()  # queues that were blocked, perhaps no longer
        self._awake: dict[Queue, None] = {}
        self._asleep: list[tuple[float, int, Queue]] = []
        self._count = itertools.count()

    def add(self, queue: Queue) -> None:
        """A queue is new; its turn comes last."""
        self.queues[queue.key] = queue
        self.n_inactive += 1
        self._awake[queue] = None

    def remove(self, queue: Queue) -> None:
        """A queue is no more."""
        del self.queues[queue.key]
        self._awake.pop(queue, None)
        queue.wakes = math.nan  # no entry of those that sleep is its own
        self.blocked.discard(queue)
        self.n_inactive -= queue.active == 0
        self.active -= queue.active
        self.completed -= queue.completed

    def count(self, queue: Queue, active: int, completed: int) -> None:
        """URLs were added, completed or removed."""
        self.n_inactive -= queue.active == 0
        queue.active += active
        self.n_inactive += queue.active == 0
        queue.completed += completed
        self.active += active
        self.completed += completed

    def block(self, queue: Queue, until: float) -> None:
        """A queue serves nothing until a time."""
        queue.blocked_until = until
        (self.blocked.add if until > 0 else self.blocked.discard)(queue)

    def listed(self, now: float, start: int, size: int, *, all: bool) -> tuple[list[str], int]:
        """Some keys, and how many there are; only of queues that are active and not blocked, unless ``all``."""
        queues = self.queues.values()
        hidden = set() if all else {queue for queue in self.blocked if queue.blocked_until > now}
        total = len(queues) if all else len(queues) - self.n_inactive - sum(queue.active > 0 for queue in hidden)
        some = (queue.key for queue in queues if all or (queue.active > 0 and queue not in hidden))
        return list(itertools.islice(some, start, start + size)), total

    def wake(self, queue: Queue, at: float = AWAKE) -> None:
        """A queue may have something at a time; by default now."""
        if at >= queue.wakes:
            return
        if at == AWAKE:
            queue.wakes = at
            self._awake[queue] = None
        else:
            self.sleep(queue, at)

    def sleep(self, queue: Queue, until: float) -> None:
        """A queue has nothing before a time."""
        self._awake.pop(queue, None)
        queue.wakes = until
        if until < math.inf:
            heapq.heappush(self._asleep, (until, next(self._count), queue))
        if len(self._asleep) > 2 * len(self.queues) + 64:
            kept = {one.key: (at, n, one) for at, n, one in self._asleep if one.wakes == at}
            self._asleep = list(kept.values())
            heapq.heapify(self._asleep)

    def turns(self, now: float) -> Iterator[Queue]:
        """The queues that are awake, each once; one that had its turn goes to the end."""
        while self._asleep and self._asleep[0][0] <= now:
            at, _, queue = heapq.heappop(self._asleep)
            if queue.wakes == at:
                self.wake(queue)
        for _ in range(len(self._awake)):
            if not self._awake:
                return
            queue = next(iter(self._awake))
            del self._awake[queue]
            self._awake[queue] = None
            yield queue


def add_urls(queues: Iterable[Queue | None]) -> None:
    """To each of these queues, a URL was added that is not completed; None: to none."""
    for queue in queues:
        if queue is not None:
            crawl = queue.crawl
            if queue.active == 0:
                crawl.n_inactive -= 1
            queue.active += 1
            crawl.active += 1


class QueueNames:
    """The queues of all crawls by the bytes of their names."""

    def __init__(self) -> None:
        self._crawls: dict[str, int] = {}
        self._names = Arena()
        self._queues: list[Queue | None] = [None]  # by number, from 1 on; None: it was deleted
        self._n_gone = 0

    def crawls(self, found: Discovered) -> Ids:
        """A number for the crawl of each URL, as long as the service runs."""
        numbers = np.array([self._number(name) for name in found.crawls], np.int64)
        return numbers.take(found.crawl, mode="wrap")  # what is in none gets any

    def _number(self, crawl: str) -> int:
        return self._crawls.setdefault(crawl, len(self._crawls))

    def find(self, found: Discovered) -> list[Queue | None]:
        """The queue of each URL, None where there is none."""
        numbers = self._names.find(prefixed(self.crawls(found), found.column(KEY)))
        return [self._queues[number] for number in (numbers + 1).tolist()]

    def add(self, queues: Sequence[Queue]) -> None:
        """Queues that are new."""
        self._names.add(self._packed(queues), fresh=True)
        self._queues += queues

    def remove(self, queues: Sequence[Queue]) -> None:
        """Queues that were deleted."""
        numbers = self._names.find(self._packed(queues))
        self._names.drop(numbers)
        for number in numbers.tolist():
            self._queues[number + 1] = None
        self._n_gone += len(queues)
        if self._n_gone > len(self._queues) // 2 + _FEW:  # the bytes of names go only with all of them
            kept = [queue for queue in self._queues if queue is not None]
            self._names, self._queues, self._n_gone = Arena(), [None], 0
            self.add(kept)

    def _packed(self, queues: Sequence[Queue]) -> Packed:
        crawls = np.array([self._number(queue.crawl.name) for queue in queues], np.int64)
        return prefixed(crawls, pack([queue.key for queue in queues]))
