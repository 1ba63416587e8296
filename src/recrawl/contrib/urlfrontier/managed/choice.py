"""Choice: which pages of managed crawls one call may have."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from itertools import chain

import numpy as np

from recrawl.contrib.urlfrontier.frontier import Ask, Frontier, Served
from recrawl.contrib.urlfrontier.queue_file import Row
from recrawl.contrib.urlfrontier.queues import Crawl, Queue
from recrawl.desk import Picked
from recrawl.engine.names.addresses import Addresses
from recrawl.engine.names.kernels import Ids

RowsOf = Callable[[str | None, Sequence[str]], dict[str, Row]]
_MOST = 10_000  # pages of queues that are valued by themselves


def n_urls(queue: Queue) -> int:
    """How many URLs a queue has."""
    return queue.active + queue.completed


class OwnPages:
    """The pages of some queues: all of them, or so many at a time that they can be valued, in turn."""

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier
        self._turns: dict[str | None, tuple[int, str]] = {}  # per crawl, where to go on: a queue, and after which URL

    def few(self, crawl: str | None, key: str) -> bool:
        """Whether they are valued all at once."""
        crawls = self._crawls(crawl)
        n = sum(n_urls(one.queues[key]) if key in one.queues else 0 for one in crawls) if key else None
        return (sum(one.active + one.completed for one in crawls) if n is None else n) <= _MOST

    def read(self, crawl: str | None, wanted: Callable[[Queue], bool]) -> list[str]:
        """The pages of queues that are wanted; if there are many, those whose turn it is."""
        queues = [queue for one in self._crawls(crawl) for queue in one.queues.values() if n_urls(queue)]
        queues = sorted(filter(wanted, queues), key=lambda queue: queue.id)
        if not queues:
            return []
        last, after = self._turns.get(crawl, (0, ""))
        k = next((k for k, queue in enumerate(queues) if queue.id >= last), 0)
        first, n = queues[k], n_urls(queues[k])
        if n > _MOST:
            rows = self.frontier.file.pages_after(first.id, after if first.id == last else "", _MOST)
            whole = len(rows) < _MOST
            self._turns[crawl] = (first.id + 1, "") if whole else (first.id, rows[-1][0])
            return [page for _, page in rows if page is not None]
        some = [first.id]
        for queue in chain(queues[k + 1 :], queues[:k]):
            if (n := n + n_urls(queue)) > _MOST:
                break
            some.append(queue.id)
        self._turns[crawl] = (some[-1] + 1, "")
        return self.frontier.file.pages_of(some)

    def _crawls(self, crawl: str | None) -> list[Crawl]:
        """A crawl that is managed, or all of them."""
        return [one for one in self.frontier.crawls.values() if one.managed and crawl in (None, one.name)]


class Choice:
    """Which pages one call may have: at most so many queues, and so many URLs of each.

    What it takes is in process, and its queue served, from then on: calls that run meanwhile see it.
    """

    keeps = True  # leases are in the file of the queues, before the store of the desk has them

    def __init__(self, rows_of: RowsOf, own: OwnPages, crawl: str | None, ask: Ask, now: float) -> None:
        self._rows_of, self._own, self._frontier = rows_of, own, own.frontier
        self._crawl, self._ask, self._now = crawl, ask, now
        self.queues, self.ended = ask.queues, False
        self._rooms: dict[Queue, int] = {}
        self._served_before: dict[Queue, float] = {}
        self._rows: dict[str, Row] = {}
        self.chosen: dict[str, Served] = {}

    @property
    def few(self) -> bool:
        """Whether all pages that it may want are valued at once."""
        return self._own.few(self._crawl, self._ask.key)

    def pages(self, addresses: Addresses) -> Ids:
        """Pages of the queues that have room."""
        ids = addresses.known(self._own.read(self._crawl, lambda queue: self._room(queue) > 0))
        return np.unique(ids[ids >= 0])

    def look(self, urls: Sequence[str]) -> None:
        """Read the rows of pages."""
        self._rows = self._rows_of(self._crawl, urls)

    def __call__(self, url: str) -> bool | None:
        """Whether a page is taken; None if it would need a queue more than was asked for."""
        row = self._rows.get(url)
        if row is None:
            return False
        queue = self._frontier.by_id[row.queue]
        room = self._room(queue)
        if room <= 0:
            return False
        if queue not in self._rooms:
            if len(self._rooms) >= self._ask.queues:
                self.ended = True
                return None
            self._served_before[queue], queue.last_served = queue.last_served, self._now
        self._rooms[queue] = room - 1
        queue.held[row.id] = math.inf
        self.chosen[url] = Served(queue, row)
        return True

    def _room(self, queue: Queue) -> int:
        """How many URLs of a queue may be handed out."""
        if (room := self._rooms.get(queue)) is not None:
            return room
        if self._ask.key not in ("", queue.key) or queue.opens_at(self._frontier.delay) > self._now:
            return 0
        return self._ask.urls - queue.in_process(self._now)

    def leased(self, pages: Sequence[Picked]) -> None:
        """Write the leases; queues are free when the desk is."""
        both = [(self.chosen[one.url], one.lease) for one in pages]
        both = [(served, lease) for served, lease in both if served.queue.id in self._frontier.by_id]
        if both:
            served, leases = zip(*both, strict=True)
            self._frontier.lease(served, self._now, min(one.until for one in pages), leases)

    def keep(self, pages: Collection[str]) -> None:
        """Only these were picked: undo the others."""
        served = {self.chosen[page].queue for page in pages}
        for page, (queue, row) in self.chosen.items():
            if page not in pages:
                queue.held.pop(row.id, None)
        for queue, before in self._served_before.items():
            if queue not in served:
                queue.last_served = before
