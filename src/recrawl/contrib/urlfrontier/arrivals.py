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
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.contrib.urlfrontier.api.wire import DiscoveredBatch, URLInfo
from recrawl.contrib.urlfrontier.batches import KEY, URL, Discovered, prefixed, read_batches, records_of
from recrawl.contrib.urlfrontier.marks import Marks, hashes
from recrawl.contrib.urlfrontier.queue_file import SOME, QueueFile, Row
from recrawl.contrib.urlfrontier.queues import AWAKE, Queue, add_urls
from recrawl.engine.names.arena import Packed, pack
from recrawl.engine.names.kernels import Bytes, Ids

_BITS = 8  # of a place: which URL of its arrival
_MOST = 1 << _BITS  # URLs of an arrival
_READ = 64  # arrivals in memory
_MOST_KNOWN = 5_000_000  # hashes in memory


def arrival_of(place: int) -> int:
    """The arrival of a place."""
    return place >> _BITS


def warm_up() -> None:
    """Compile or load what `Arriving` needs, so that no client waits for it."""
    found = read_batches([DiscoveredBatch(items=[URLInfo(url="http://a.example/")])])
    prefixed(found.crawl, found.column(KEY))
    records_of(found.data, found.spans, found.crawl)
    marks = Marks()
    values = hashes(found.crawl, found.column(URL))
    marks.add(values)
    marks.has(values)
    marks.remove(values)


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


class Opened(NamedTuple):
    """The first URLs that waited in a queue."""

    queue: Queue
    places: array[int]


class Arriving:
    """The discovered URLs of one transaction; ``written`` are the new ones: a place, and the queues from there on."""

    def __init__(self, arrivals: Arrivals, now: float) -> None:
        self._arrivals, self._now = arrivals, int(now)
        self._marks = np.empty(0, np.uint64)  # of those that are new
        self.written: list[tuple[int, list[Queue]]] = []

    def add(self, queues: list[Queue], found: Discovered) -> NDArray[np.bool_]:
        """Write URLs to their queues, inside the transaction; which of them are new."""
        self._arrivals.know(queues)
        ids = np.fromiter([queue.id for queue in queues], np.int64, len(queues))
        marks = hashes(ids, found.column(URL))
        new = self._arrivals.marks.add(marks)
        self._marks = marks[new]
        rows = np.flatnonzero(new)
        for first in range(0, len(rows), _MOST):
            some = rows[first : first + _MOST]
            records, ends = records_of(found.data, found.spans, some)
            number = self._arrivals.insert(self._now, ids[some], ends, records)
            self.written.append((number << _BITS, [queues[row] for row in some.tolist()]))
        return new

    def undo(self) -> None:
        """Nothing of it was written."""
        self._arrivals.marks.remove(self._marks)


class Arrivals:
    """The discovered URLs that are no rows yet, of the queues ``by_id``."""

    def __init__(self, file: QueueFile, by_id: Mapping[int, Queue]) -> None:
        self._file, self._by_id = file, by_id
        self._left: dict[int, int] = {}  # per arrival, how many of its URLs wait
        self._empty: list[int] = []  # arrivals of which none waits, still in the file
        self.marks = Marks()  # the URLs of queues that are known
        self._read: dict[int, Arrival] = {}  # the last that were read: queues that are served together came together

    def load(self, opened: Mapping[int, int]) -> None:
        """Take up what waits in the file; ``opened`` says of each queue up to which arrival its URLs are rows."""
        for id_, queues in self._file.db.execute("SELECT id, queues FROM arrival ORDER BY id"):
            waits = [self._by_id[queue] if id_ > opened.get(queue, id_) else None for queue in array("q", queues)]
            self.wait([(id_ << _BITS, waits)])

    # --- what comes in ------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, now: float) -> Iterator[Arriving]:
        """Discovered URLs of a transaction; forgotten where it fails."""
        arriving = Arriving(self, now)
        if len(self.marks) > _MOST_KNOWN:
            self.marks.clear()
            for queue in self._by_id.values():
                queue.known = False
        try:
            yield arriving
        except BaseException:
            arriving.undo()
            raise

    def insert(self, at: int, queues: Ids, ends: NDArray[np.uint32], records: Bytes) -> int:
        """Write an arrival; its id."""
        statement = "INSERT INTO arrival (at, queues, ends, records) VALUES (?, ?, ?, ?)"
        return self._file.db.execute(statement, (at, queues, ends, records)).lastrowid or 0

    def wait(self, written: Iterable[tuple[int, Sequence[Queue | None]]]) -> None:
        """URLs are written: they wait in their queues; None: this one does not."""
        for first, queues in written:
            n = 0
            for place, queue in enumerate(queues, first):
                if queue is not None:
                    n += 1
                    queue.arrived.append(place)
                    if queue.wakes != AWAKE:
                        queue.crawl.wake(queue)
            add_urls(queues)
            self._keep(arrival_of(first), n)

    def know(self, queues: Iterable[Queue]) -> None:
        """Read the URLs of queues that are not known yet: from then on their marks say which URLs they have."""
        for queue in [queue for queue in queues if not queue.known]:
            if not queue.known:
                queue.known = True
                urls = [*self._file.urls(queue.id), *(url for _, url, _ in self._waiting(queue.arrived))]
                self.marks.add(hashes([queue.id] * len(urls), pack(urls)))

    def knows(self, queues: Sequence[Queue], urls: Packed) -> NDArray[np.bool_]:
        """Whether each URL is in its queue."""
        self.know(queues)
        return self.marks.has(hashes([queue.id for queue in queues], urls))

    def learn(self, came: Sequence[tuple[Queue, str]], left: Sequence[tuple[Queue, str]] = ()) -> None:
        """URLs are in queues from now on, or no longer."""
        for some, change in ((left, self.marks.remove), (came, self.marks.add)):
            known = [(queue.id, url) for queue, url in some if queue.known]
            if known:
                change(hashes([id_ for id_, _ in known], pack([url for _, url in known])))

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
        """The URLs at some places: when they came, URL and metadata."""
        ids = {arrival_of(place) for place in places}
        missing = ids - self._read.keys()
        found = {id_: self._read[id_] for id_ in ids - missing}
        found |= {arrival.id: arrival for arrival in self.read(missing)} if missing else {}
        self._read |= dict(islice(found.items(), _READ))
        while len(self._read) > _READ:
            del self._read[next(iter(self._read))]
        for place in places:
            arrival = found[arrival_of(place)]
            yield arrival.at, *arrival.record(place & (_MOST - 1))

    def open(self, queue: Queue, n: int = SOME) -> None:
        """Make rows of the first n URLs that wait in a queue."""
        with self._file.transaction():
            opened = self.write_rows([(queue, n)])
        self.leave(opened)

    def write_rows(self, queues: Sequence[tuple[Queue, int]]) -> list[Opened]:
        """The same of some queues inside a transaction, then `leave` is called."""
        if not queues:
            return []
        opened = [Opened(queue, _first(queue.arrived, n)) for queue, n in queues]
        new, numbers = self._file.next_row, [queue.id for queue, places in opened for _ in places]
        waiting = self._waiting([place for _, places in opened for place in places])
        self._file.insert_rows(
            [
                Row(new(), number, url, at, at, metadata, 0.0, None, None)
                for number, (at, url, metadata) in zip(numbers, waiting, strict=True)
            ]
        )
        self._file.set_opened([(arrival_of(places[-1]), queue.id) for queue, places in opened])
        self.delete(self._empty)
        return opened

    def leave(self, opened: Sequence[Opened]) -> None:
        """URLs are rows: they wait no longer."""
        if opened:
            self._empty.clear()
        for queue, places in opened:
            del queue.arrived[: len(places)]
            self._leave(Counter(map(arrival_of, places)))

    def drop(self, queue: Queue) -> None:
        """A queue was deleted: nothing of it waits."""
        if queue.arrived:
            taken = Counter(arrival_of(place) for place in queue.arrived)
            queue.arrived = array("Q")
            self._leave(taken)

    def _leave(self, taken: Counter[int]) -> None:
        """So many URLs of arrivals wait no longer."""
        for id_, k in taken.items():
            self._keep(id_, self._left.pop(id_) - k)

    def _keep(self, id: int, n: int) -> None:
        """So many URLs of an arrival wait; it is deleted with the next rows where none does."""
        if n:
            self._left[id] = n
        else:
            self._empty.append(id)


def _first(places: array[int], n: int) -> array[int]:
    """The first n places of a queue, and those that came with the last of them."""
    n = min(n, len(places))
    while n < len(places) and arrival_of(places[n]) == arrival_of(places[n - 1]):
        n += 1
    return places[:n]
