"""Serves: the leases of URLs, one row of the file for each call that handed some out.

A lease in the row of its URL is a page of the file to write for each URL, and most leases end soon. So a call that
serves URLs writes all their leases as one row; those that last are written to their URLs now and then (`fold`), and
when the file is opened. A URL that is put again notes the last serve in its row: no serve up to there counts for it.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recrawl.contrib.urlfrontier.queue_file import QueueFile, Row

_MOST = 4096  # leases that are in no row of a URL


class Serve(NamedTuple):
    """URLs that one call handed out: when, until when, their rows and queues, and the leases of the desk, if any."""

    at: float
    until: float
    rows: Sequence[int]
    queues: Sequence[int]
    leases: Sequence[str] = ()


class _Lease(NamedTuple):
    """The newest lease of a URL, and the serve in which it was handed out."""

    until: float
    name: str | None
    serve: int


class Serves:
    """The leases that are in no row of a URL yet, of a file that is opened."""

    def __init__(self, file: QueueFile, now: float) -> None:
        self._file = file
        self._leases: dict[int, _Lease] = {}  # by row
        self._served: dict[int, float] = {}  # when queues were served last
        self.last = file.last_serve()
        for number, serve in self._read():
            self._add(number, serve)
        self._drop_ended()
        self.fold(now)

    def __len__(self) -> int:
        return len(self._leases)

    def _read(self) -> Iterator[tuple[int, Serve]]:
        """The serves of the file."""
        query = "SELECT id, at, until, urls, queues, leases FROM serve ORDER BY id"
        for number, at, until, rows, queues, leases in self._file.db.execute(query):
            yield number, Serve(at, until, array("q", rows), array("q", queues), leases.split())

    def _drop_ended(self) -> None:
        """Forget leases of URLs that were put again since, or deleted."""
        query = "SELECT u.id, until FROM json_each(?) j CROSS JOIN url u ON u.id = j.value"
        marks = dict(self._file.db.execute(query, (json.dumps(list(self._leases)),)))
        self._leases = {row: one for row, one in self._leases.items() if row in marks and -marks[row] < one.serve}

    # --- URLs are handed out, and come back -------------------------------------------------------------------------

    def write(self, serve: Serve) -> int:
        """Write leases, inside a transaction; `add` follows when it is committed."""
        rows, queues = array("q", serve.rows), array("q", serve.queues)
        statement = "INSERT INTO serve (at, until, urls, queues, leases) VALUES (?, ?, ?, ?, ?)"
        given = (serve.at, serve.until, rows, queues, " ".join(serve.leases))
        return self._file.db.execute(statement, given).lastrowid or 0

    def add(self, number: int, serve: Serve) -> None:
        """Leases are written."""
        self._add(number, serve)
        self.last = number

    def make_room(self, now: float) -> None:
        """Write leases to the rows of their URLs if there are many."""
        if len(self._leases) > _MOST or len(self._served) > _MOST:
            self.fold(now)

    def _add(self, number: int, serve: Serve) -> None:
        names: Sequence[str | None] = serve.leases or [None] * len(serve.rows)
        for row, name in zip(serve.rows, names, strict=True):
            self._leases[row] = _Lease(serve.until, name, number)
        for queue in serve.queues:
            self._served[queue] = serve.at

    def end(self, row: int) -> None:
        """A URL was put again, and its row says so."""
        self._leases.pop(row, None)

    def current(self, row: Row) -> Row:
        """A row with its lease of the desk."""
        lease = self._leases.get(row.id)
        return row if lease is None else Row(*row[:-1], lease.name)

    def fold(self, now: float) -> None:
        """Write leases to the rows of their URLs. Those that ended are not written, unless an outcome may come."""
        if not self._served:
            return
        lasting = [(one.until, one.name, row) for row, one in self._leases.items() if one.name or one.until > now]
        with self._file.transaction():
            self._file.lease(lasting)
            self._file.serve([(at, queue) for queue, at in self._served.items()])
            self._file.db.execute("DELETE FROM serve")
        self._leases.clear()
        self._served.clear()
