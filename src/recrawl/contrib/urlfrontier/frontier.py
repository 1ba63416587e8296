"""Frontier: the queues of all crawls, in memory as far as they decide and in the file as far as they last.

Every call is done before it returns; nothing else runs in between. What cannot be written raises `sqlite3.Error` and
leaves everything as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from recrawl.contrib.urlfrontier.api.wire import OK, SKIPPED
from recrawl.contrib.urlfrontier.arrivals import Arrivals, Opened
from recrawl.contrib.urlfrontier.batches import Discovered
from recrawl.contrib.urlfrontier.changes import Changes
from recrawl.contrib.urlfrontier.items import Put
from recrawl.contrib.urlfrontier.queue_file import QueueFile, Row
from recrawl.contrib.urlfrontier.queues import DEFAULT_DELAY, Crawl, Queue, QueueNames
from recrawl.contrib.urlfrontier.serves import Serve, Serves
from recrawl.crawl.clock import Clock
from recrawl.engine.names.arena import pack

MOST_SERVED = 10_000  # URLs of one call


class Ask(NamedTuple):
    """What a client asks for: from how many queues, how many URLs of each, for how long, and from which queue."""

    queues: int
    urls: int
    lease: float  # seconds
    key: str = ""


class Served(NamedTuple):
    """A URL that is handed out."""

    queue: Queue
    row: Row


class Totals(NamedTuple):
    """Figures of queues."""

    active: int
    in_process: int
    completed: int
    queues: int
    active_queues: int


class Frontier:
    """All queues. ``managed`` says of a crawl ID whether the engine decides for it."""

    def __init__(self, file: QueueFile, clock: Clock, managed: Callable[[str], bool] = lambda name: False) -> None:
        self.file, self.clock, self._managed = file, clock, managed
        self.crawls: dict[str, Crawl] = {}
        self.by_id: dict[int, Queue] = {}
        self.names = QueueNames()
        self.deleted = file.deleted_queues()  # whose URLs are still in the file
        self.deletions = 0  # how often URLs or queues were deleted: rows that were read before may be gone
        settings = file.settings()
        self.delay, self.active = settings.get("delay", DEFAULT_DELAY), bool(settings.get("active", 1.0))
        self.serves = Serves(file, clock.now())
        opened: dict[int, int] = {}
        for id_, crawl, key, delay, blocked, most, served, opened[id_], active, completed in file.queues():
            owner = self.crawls.setdefault(crawl, self.new_crawl(crawl))
            queue = self.by_id[id_] = Queue(id_, owner, key)
            queue.delay, queue.limit = delay, most
            queue.last_served = -math.inf if served is None else served
            owner.add(queue)
            owner.block(queue, blocked)
            owner.count(queue, active, completed)
        self.names.add(list(self.by_id.values()))
        for id_, row, until in file.held(clock.now()):
            if id_ in self.by_id:
                self.by_id[id_].held[row] = until
        self.arrivals = Arrivals(file, self.by_id)
        self.arrivals.load(opened)

    def new_crawl(self, name: str) -> Crawl:
        """A crawl without queues."""
        return Crawl(name, managed=self._managed(name))

    def is_managed(self, name: str) -> bool:
        """Whether the engine decides for a crawl."""
        return self._managed(name)

    def queue(self, crawl: str, key: str) -> Queue | None:
        """A queue, if there is one."""
        found = self.crawls.get(crawl)
        return None if found is None else found.queues.get(key)

    def some(self, crawl: str, key: str) -> list[Queue]:
        """The queue of a key, or all queues of a crawl."""
        if key:
            queue = self.queue(crawl, key)
            return [] if queue is None else [queue]
        found = self.crawls.get(crawl)
        return [] if found is None else list(found.queues.values())

    # --- strict crawls ------------------------------------------------------------------------------------------------

    def put(self, puts: Sequence[Put]) -> list[int]:
        """Take in URLs of strict crawls; a state for each."""
        now, changes = self.clock.now(), Changes(self)
        self._open_for(puts)
        with self.file.transaction():
            queues = [changes.queue(put.crawl, put.key) for put in puts]
            asked = zip(queues, puts, strict=True)
            rows = self.file.found([(queue.id, put.url) for queue, put in asked if queue.id in self.by_id])
            states = [self._put(put, queue, rows, changes, now) for put, queue in zip(puts, queues, strict=True)]
            changes.write()
        changes.apply()
        return states

    def _open_for(self, puts: Sequence[Put]) -> None:
        """Make rows of URLs that were put before as discovered, where one of these is put again."""
        waiting = [(queue, put.url) for put in puts if (queue := self.queue(put.crawl, put.key)) and queue.arrived]
        rows = self.file.found([(queue.id, url) for queue, url in waiting]) if waiting else {}
        for queue, url in waiting:
            if (queue.id, url) not in rows and self.arrivals.knows([queue], pack([url]))[0]:
                while queue.arrived:
                    self.arrivals.open(queue)

    def arrive(self, found: Discovered) -> list[int]:
        """Take in discovered URLs of strict crawls; a state for each. They become rows when their queue needs them."""
        changes, now = Changes(self), self.clock.now()
        with self.arrivals.writing(now) as arriving, self.file.transaction():
            new = arriving.add(changes.queues(found), found)
        changes.apply()
        self.arrivals.wait(arriving.written)
        return list(np.where(new, OK, SKIPPED).tolist())

    def _put(self, put: Put, queue: Queue, rows: dict[tuple[int, str], Row], changes: Changes, now: float) -> int:
        """Take in a URL; ``rows`` are the URLs that there are, by queue and URL."""
        row = rows.get((queue.id, put.url))
        if row is None:
            rows[queue.id, put.url] = changes.insert(queue, put, now)
        elif put.date is None:
            return SKIPPED
        else:
            rows[queue.id, put.url] = changes.renew(row, queue, queue, put, row.page)
        if put.date != 0:
            changes.wake(queue, -math.inf if put.date is None or put.date <= now else float(put.date))
        return OK

    def take(self, crawl: Crawl, ask: Ask) -> list[Served]:
        """Hand out URLs of a strict crawl, queue by queue in turn."""
        now, found, opened = self.clock.now(), list[Served](), list[Opened]()
        queues = crawl.turns(now) if not ask.key else iter(self.some(crawl.name, ask.key))
        ready, n = self._ready(queues, ask, now), 0
        self.serves.make_room(now)
        with self.file.transaction():
            while some := _few(ready, ask.queues - n, MOST_SERVED - len(found)):
                opened += self.arrivals.write_rows([one for one in some if one[0].arrived])
                for queue, rows in self._due(some, now):
                    found += [Served(queue, row) for row in rows[: MOST_SERVED - len(found)]]
                    n += bool(rows)
                    if not rows:
                        crawl.sleep(queue, self._next_at(queue))
            serve = _serve_of(found, now, now + ask.lease)
            number = self.serves.write(serve) if found else 0
        self.arrivals.leave(opened)
        self._hold(found, number, serve)
        return found

    def _ready(self, queues: Iterable[Queue], ask: Ask, now: float) -> Iterator[tuple[Queue, int]]:
        """The queues that may serve now, and how many URLs."""
        for queue in queues:
            opens = queue.opens_at(self.delay)
            if opens > now:
                queue.crawl.sleep(queue, opens)
            elif (room := min(ask.urls, MOST_SERVED) - queue.in_process(now)) > 0:
                yield queue, room

    def _due(self, some: Sequence[tuple[Queue, int]], now: float) -> Iterator[tuple[Queue, list[Row]]]:
        """The URLs that queues have now, at most as many as there is room for."""
        most = max(room + len(queue.held) for queue, room in some)
        due = self.file.due([queue.id for queue, _ in some], now, most)
        for queue, room in some:
            yield queue, [row for row in due.get(queue.id, ()) if row.id not in queue.held][:room]

    def _next_at(self, queue: Queue) -> float:
        """When a queue may have something that has nothing now."""
        date = self.file.next_date(queue.id, queue.held)
        return min([math.inf if date is None else float(date), *queue.held.values()])

    def lease(self, served: Sequence[Served], now: float, until: float, leases: Sequence[str]) -> None:
        """URLs are in process until a time, by leases of the desk."""
        self.serves.make_room(now)
        serve = _serve_of(served, now, until, leases)
        with self.file.transaction():
            number = self.serves.write(serve)
        self._hold(served, number, serve)

    def _hold(self, served: Sequence[Served], number: int, serve: Serve) -> None:
        """The leases of a serve are written."""
        if served:
            self.serves.add(number, serve)
        for queue, row in served:
            queue.last_served = serve.at
            queue.held[row.id] = serve.until

    # --- control ------------------------------------------------------------------------------------------------------

    def set_delay(self, crawl: str, key: str, seconds: float) -> None:
        """Set the time between two serves of a queue, or of all queues without one of their own."""
        if not key:
            with self.file.transaction():
                self.file.set("delay", seconds)
            self.delay = seconds
            for one in self.by_id.values():
                one.crawl.wake(one)
        elif (queue := self._write(crawl, key, "delay", seconds)) is not None:
            queue.delay = seconds

    def block(self, crawl: str, key: str, until: float) -> None:
        """Serve nothing of a queue until a time."""
        if (queue := self._write(crawl, key, "blocked_until", until)) is not None:
            queue.crawl.block(queue, until)

    def limit(self, crawl: str, key: str, most: int) -> None:
        """Serve nothing of a queue once so many of its URLs are completed; 0: no limit."""
        if (queue := self._write(crawl, key, "most", most)) is not None:
            queue.limit = most

    def _write(self, crawl: str, key: str, column: str, value: float) -> Queue | None:
        """Write a column of a queue and wake it; None if there is no such queue."""
        queue = self.queue(crawl, key)
        if queue is not None:
            with self.file.transaction():
                self.file.set_queue(queue.id, column, value)
            queue.crawl.wake(queue)
        return queue

    def set_active(self, active: bool) -> None:
        """Serve URLs or not."""
        with self.file.transaction():
            self.file.set("active", float(active))
        self.active = active

    def delete(self, queues: Sequence[Queue]) -> int:
        """Delete queues; how many active URLs they had. Their rows are deleted after it (`deleted`)."""
        with self.file.transaction():
            self.file.delete_queues(queue.id for queue in queues)
        self.deletions += 1
        n = sum(queue.active for queue in queues)
        self.names.remove(queues)
        for queue in queues:
            queue.crawl.remove(queue)
            del self.by_id[queue.id]
            self.arrivals.drop(queue)
            if not queue.crawl.queues:
                self.crawls.pop(queue.crawl.name, None)
        self.deleted += [queue.id for queue in queues]
        return n

    def forget(self, queue: Queue | None, rows: Sequence[Row]) -> None:
        """Delete rows of a queue; None: of a queue that was deleted."""
        with self.file.transaction():
            self.file.delete(row.id for row in rows)
        self.deletions += 1
        if queue is None:
            return
        self.arrivals.learn((), [(queue, row.url) for row in rows])
        for row in rows:
            queue.held.pop(row.id, None)
            queue.crawl.count(queue, -(row.date > 0), -(row.date == 0))

    def totals(self, queues: Iterable[Queue]) -> Totals:
        """Figures of queues."""
        now, active, held, completed, n, n_active = self.clock.now(), 0, 0, 0, 0, 0
        for queue in queues:
            inside = queue.in_process(now) if queue.held else 0
            active += queue.active
            completed += queue.completed
            held += inside
            n += 1
            n_active += queue.active > 0 or inside > 0
        return Totals(active, held, completed, n, n_active)


def _few(ready: Iterator[tuple[Queue, int]], n: int, urls: int) -> list[tuple[Queue, int]]:
    """The next queues, at most n, and not many more than have so many URLs together, with those in process."""
    some: list[tuple[Queue, int]] = []
    while n > len(some) and urls > 0 and (one := next(ready, None)) is not None:
        some.append(one)
        urls -= min(one[1] + len(one[0].held), one[0].active)
    return some


def _serve_of(served: Sequence[Served], at: float, until: float, leases: Sequence[str] = ()) -> Serve:
    """The serve in which URLs are handed out."""
    return Serve(at, until, [row.id for _, row in served], list({queue.id for queue, _ in served}), leases)
