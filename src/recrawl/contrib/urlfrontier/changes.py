"""Changes: what a transaction changes in memory, once it is committed."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from recrawl.contrib.urlfrontier.batches import Discovered
from recrawl.contrib.urlfrontier.items import Put
from recrawl.contrib.urlfrontier.queue_file import Row
from recrawl.contrib.urlfrontier.queues import Queue

if TYPE_CHECKING:
    from recrawl.contrib.urlfrontier.frontier import Frontier


class Changes:
    """What a transaction changes in memory, once it is committed."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._new: dict[tuple[str, str], Queue] = {}
        self._counts: dict[Queue, list[int]] = defaultdict(lambda: [0, 0])
        self._wakes: dict[Queue, float] = {}
        self._ended: list[tuple[Queue, int]] = []
        self._by_id: dict[int, Queue] = {}  # new queues
        self._rows: list[Row] = []  # new ones
        self._renewed: list[tuple[int, bytes, int, int]] = []
        self._moved: list[tuple[int, int]] = []  # queues and rows
        self._came: list[tuple[Queue, str]] = []
        self._left: list[tuple[Queue, str]] = []

    def queue(self, crawl: str, key: str) -> Queue:
        """The queue of a key; a new one if there is none."""
        known = self._frontier.crawls.get(crawl)
        if known is not None and (queue := known.queues.get(key)) is not None:
            return queue
        queue = self._new.get((crawl, key))
        if queue is None:
            owner = known or self._frontier.new_crawl(crawl)
            queue = self._new[crawl, key] = Queue(self._frontier.file.add_queue(crawl, key), owner, key)
            queue.known = True
            self._by_id[queue.id] = queue
        return queue

    def queues(self, found: Discovered) -> list[Queue]:
        """The queues of URLs; new ones where there are none."""
        queues = self._frontier.names.find(found)
        for row in [row for row, queue in enumerate(queues) if queue is None] if None in queues else ():
            queues[row] = self.queue(*found.put(row)[:2])
        return queues  # type: ignore[return-value]

    def by_id(self, id: int) -> Queue | None:
        """A queue by its row."""
        return self._frontier.by_id.get(id) or self._by_id.get(id)

    def insert(self, queue: Queue, put: Put, now: float, page: str | None = None) -> Row:
        """A URL is new in its queue; its row."""
        date = int(now) if put.date is None else put.date
        number = self._frontier.file.next_row()
        row = Row(number, queue.id, put.url, date, int(now), put.metadata, 0.0, page, None)
        self._rows.append(row)
        self._came.append((queue, put.url))
        self.count(queue, put.date)
        return row

    def renew(self, row: Row, before: Queue, queue: Queue, put: Put, page: str | None = None) -> Row:
        """A URL was put again as known, perhaps to another queue; its row as it is then, which stands for a page."""
        date = put.date or 0
        self._renewed.append((date, put.metadata, -self._frontier.serves.last, row.id))
        self.count(before, row.date, -1)
        self.count(queue, date)
        self._ended.append((before, row.id))
        if queue is not before:
            self._moved.append((queue.id, row.id))
            self._left.append((before, row.url))
            self._came.append((queue, row.url))
        return Row(row.id, queue.id, row.url, date, row.created, put.metadata, 0.0, page, None)

    def write(self) -> None:
        """Write new and renewed URLs, inside the transaction."""
        self._frontier.file.insert_rows(self._rows)
        self._frontier.file.renew(self._renewed)
        self._frontier.file.move(self._moved)

    def count(self, queue: Queue, date: int | None, sign: int = 1) -> None:
        """A URL with this date comes or goes."""
        self._counts[queue][date == 0] += sign

    def wake(self, queue: Queue, at: float) -> None:
        """A queue may have something at a time."""
        self._wakes[queue] = min(at, self._wakes.get(queue, math.inf))

    def apply(self) -> None:
        """The transaction is committed."""
        for (name, _), queue in self._new.items():
            queue.crawl = self._frontier.crawls.setdefault(name, queue.crawl)
            queue.crawl.add(queue)
            self._frontier.by_id[queue.id] = queue
        if self._new:
            self._frontier.names.add(list(self._new.values()))
        for queue, counts in self._counts.items():
            queue.crawl.count(queue, *counts)
        self._frontier.arrivals.learn(self._came, self._left)
        for queue, row in self._ended:
            queue.held.pop(row, None)
            self._frontier.serves.end(row)
        for queue, at in self._wakes.items():
            queue.crawl.wake(queue, at)
