"""Queues: what is known of each queue without reading its URLs, and whose turn it is."""

from __future__ import annotations

import heapq
import itertools
import math
from array import array
from collections.abc import Iterator

AWAKE = -math.inf  # when a queue wakes that is awake
DEFAULT_DELAY = 1.0  # seconds between two serves of a queue


class Queue:
    """A queue of URLs. ``held`` are the URLs in process, by row, and until when.

    ``arrived`` are the places of its URLs that are no rows yet (`arrivals`), and ``known`` the hashes of all its URLs;
    None: they were not needed yet.
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
        self.known: set[int] | None = None
        self.wakes = AWAKE  # before when it has nothing to serve; it is asleep while this lies ahead

    def learn(self, url: str) -> None:
        """A URL is in the queue from now on."""
        if self.known is not None:
            self.known.add(hash(url))

    def forget(self, url: str) -> None:
        """A URL is no longer in the queue."""
        if self.known is not None:
            self.known.discard(hash(url))

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

    def add_url(self, queue: Queue) -> None:
        """A URL was added that is not completed."""
        if queue.active == 0:
            self.n_inactive -= 1
        queue.active += 1
        self.active += 1

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
