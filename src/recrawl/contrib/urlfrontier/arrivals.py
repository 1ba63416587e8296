"""Arrivals: discovered URLs as they came, some hundred in one row of the file, until their queue needs them.

A row of the table `url` is three entries of indexes, and most URLs that a crawl discovers wait for long. So batches are
written as they are; a queue that is served, listed or searched makes rows of its own URLs then. In memory there is a
place for each URL that waits, and a hash for each URL of the queues that batches went to: whether a URL is known is
decided by its hash of 64 bits.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from recrawl.contrib.urlfrontier.items import Put
from recrawl.contrib.urlfrontier.queue_file import SOME, QueueFile, Row
from recrawl.contrib.urlfrontier.queues import Queue

_BITS = 8  # of a place: which URL of its arrival
_MOST = 1 << _BITS  # URLs of an arrival
_MOST_KNOWN = 5_000_000  # hashes in memory


def arrival_of(place: int) -> int:
    """The arrival of a place."""
    return place >> _BITS


class Arrival(NamedTuple):
    """URLs that were written together: the queue of each, and where its record ends."""

    id: int
    at: int
    queues: array[int]
    ends: array[int]
    records: bytes

    def record(self, k: int) -> tuple[str, bytes]:
        """A URL and its metadata."""
        url, _, metadata = self.records[self.ends[k - 1] if k else 0 : self.ends[k]].partition(b"\0")
        return url.decode(), metadata


class Arriving:
    """The discovered URLs of one transaction; ``written`` are the new ones: their queues and places."""

    def __init__(self, arrivals: Arrivals, now: float) -> None:
        self._arrivals, self._now = arrivals, int(now)
        self._new: list[tuple[Queue, Put]] = []
        self.written: list[tuple[Queue, int]] = []

    def add(self, queue: Queue, put: Put) -> bool:
        """A URL was put; whether it is new in its queue."""
        known = queue.known
        if known is None:
            known = self._arrivals.known(queue)
        mark = hash(put.url)
        if mark in known:
            return False
        known.add(mark)
        self._new.append((queue, put))
        return True

    def write(self) -> None:
        """Write what is new, inside the transaction."""
        for first in range(0, len(self._new), _MOST):
            some = self._new[first : first + _MOST]
            records = [put.url.encode() + b"\0" + put.metadata if put.metadata else put.url.encode() for _, put in some]
            ends, end = array("I"), 0
            for record in records:
                end += len(record)
                ends.append(end)
            queues = array("q", [queue.id for queue, _ in some])
            place = self._arrivals.insert(self._now, queues, ends, b"".join(records)) << _BITS
            self.written += [(queue, place + k) for k, (queue, _) in enumerate(some)]

    def undo(self) -> None:
        """Nothing of it was written."""
        for queue, _ in self._new:
            queue.known = None


class Arrivals:
    """The discovered URLs that are no rows yet, of the queues ``by_id``."""

    def __init__(self, file: QueueFile, by_id: Mapping[int, Queue]) -> None:
        self._file, self._by_id = file, by_id
        self._left: Counter[int] = Counter()  # per arrival, how many of its URLs wait
        self._empty: list[int] = []  # arrivals of which none waits, still in the file
        self._n_known = 0

    def load(self, opened: Mapping[int, int]) -> None:
        """Take up what waits in the file; ``opened`` says of each queue up to which arrival its URLs are rows."""
        for id_, queues in self._file.db.execute("SELECT id, queues FROM arrival ORDER BY id"):
            places = [(queue, (id_ << _BITS) + k) for k, queue in enumerate(array("q", queues))]
            waiting = [(self._by_id[queue], place) for queue, place in places if id_ > opened.get(queue, id_)]
            self.wait(waiting)
            if not waiting:
                self._empty.append(id_)

    # --- what comes in ------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, now: float) -> Iterator[Arriving]:
        """Discovered URLs of a transaction; forgotten where it fails."""
        arriving = Arriving(self, now)
        try:
            yield arriving
        except BaseException:
            arriving.undo()
            raise
        self._n_known += len(arriving.written)
        if self._n_known > _MOST_KNOWN:
            self._n_known = 0
            for queue in self._by_id.values():
                queue.known = None

    def insert(self, at: int, queues: array[int], ends: array[int], records: bytes) -> int:
        """Write an arrival; its id."""
        statement = "INSERT INTO arrival (at, queues, ends, records) VALUES (?, ?, ?, ?)"
        return self._file.db.execute(statement, (at, queues, ends, records)).lastrowid or 0

    def wait(self, written: Iterable[tuple[Queue, int]]) -> None:
        """URLs are written: they wait in their queues."""
        for queue, place in written:
            queue.arrived.append(place)
            self._left[arrival_of(place)] += 1
            queue.crawl.count(queue, 1, 0)
            queue.crawl.wake(queue)

    def known(self, queue: Queue) -> set[int]:
        """The hashes of all URLs of a queue. They are read when they are needed first; too many are forgotten."""
        if queue.known is None:
            queue.known = {hash(url) for url in self._file.urls(queue.id)}
            queue.known |= {hash(url) for _, url, _ in self._waiting(queue.arrived)}
            self._n_known += len(queue.known)
        return queue.known

    def knows(self, queue: Queue, url: str) -> bool:
        """Whether a URL is in a queue."""
        return hash(url) in self.known(queue)

    # --- what becomes of it -------------------------------------------------------------------------------------------

    def read(self, ids: Iterable[int]) -> Iterator[Arrival]:
        """Arrivals, in their order."""
        query = "SELECT a.id, at, queues, ends, records FROM json_each(?) j CROSS JOIN arrival a ON a.id = j.value"
        for id_, at, queues, ends, records in self._file.db.execute(query, (json.dumps(sorted(ids)),)):
            yield Arrival(id_, at, array("q", queues), array("I", ends), records)

    def delete(self, ids: Iterable[int]) -> None:
        """Delete arrivals, inside a transaction."""
        self._file.db.executemany("DELETE FROM arrival WHERE id = ?", ((id_,) for id_ in ids))

    def _waiting(self, places: Sequence[int]) -> Iterator[tuple[int, str, bytes]]:
        """The URLs at some places, which ascend: when they came, URL and metadata."""
        found = {arrival.id: arrival for arrival in self.read({arrival_of(place) for place in places})}
        for place in places:
            arrival = found[arrival_of(place)]
            yield arrival.at, *arrival.record(place & (_MOST - 1))

    def open(self, queue: Queue, n: int = SOME) -> None:
        """Make rows of the first n URLs that wait in a queue, and of those that came with the last of them."""
        places = queue.arrived
        n = min(n, len(places))
        while n < len(places) and arrival_of(places[n]) == arrival_of(places[n - 1]):
            n += 1
        some = places[:n]
        rows = [
            Row(self._file.next_row(), queue.id, url, at, at, metadata, 0.0, None, None)
            for at, url, metadata in self._waiting(some)
        ]
        taken = Counter(arrival_of(place) for place in some)
        with self._file.transaction():
            self._file.insert_rows(rows)
            self._file.set_queue(queue.id, "opened", arrival_of(some[-1]))
            self.delete(self._empty)
        self._empty.clear()
        del places[:n]
        self._leave(taken)

    def drop(self, queue: Queue) -> None:
        """A queue was deleted: nothing of it waits."""
        if queue.arrived:
            taken = Counter(arrival_of(place) for place in queue.arrived)
            queue.arrived = array("Q")
            self._leave(taken)

    def _leave(self, taken: Counter[int]) -> None:
        """So many URLs of arrivals wait no longer; arrivals of which none waits are deleted with the next rows."""
        for id_, k in taken.items():
            self._left[id_] -= k
            if not self._left[id_]:
                del self._left[id_]
                self._empty.append(id_)
