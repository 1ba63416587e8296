"""Database: the SQLite file, its two connections, and its transactions. Write-ahead log, one writer."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recrawl.errors import StoreError, StoreMissingError
from recrawl.store.sqlite.lock import Lock
from recrawl.store.sqlite.migrate import migrate, migrations, newer_schema, version_of

_WAIT = 10.0  # seconds to wait for another process that is writing
_ASKED = 500  # values in one query
# The log is copied into the file after 32 MB, not after 4: a batch touches many pages, most of them again soon.
_PRAGMAS = ("foreign_keys = ON", "synchronous = FULL", "journal_size_limit = 67108864", "wal_autocheckpoint = 8192")
_CACHE = "cache_size = -65536"  # KB, of the connection that writes: a batch changes more than the default of 2 MB


class Database:
    """One connection to write and one to read, so that reading never waits for a transaction.

    A database opened as ``exclusive`` belongs to one crawler: a second one is refused.
    """

    def __init__(self, path: str | Path, *, exclusive: bool) -> None:
        self.path = Path(path)
        self._lock: Lock | None = None
        self._writing_mutex, self._reading_mutex = threading.RLock(), threading.RLock()
        self._closed = False
        if not exclusive and not self.path.is_file():
            raise StoreMissingError(f"{path}: there is no such database; recrawl add makes one")
        if not self.path.parent.is_dir():
            raise StoreError(f"{path}: there is no such folder")
        if exclusive:
            self._lock = Lock(self.path)
        try:
            self.writer = self._connect()
            self.writer.execute(f"PRAGMA {_CACHE}")
            self._begin(exclusive)
            self.reader = self._connect()
        except sqlite3.Error as problem:
            self._release()
            raise self._failure(problem) from None
        except StoreError:
            self._release()
            raise

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _begin(self, exclusive: bool) -> None:
        if not exclusive:
            at, last = version_of(self.writer), migrations()[-1][0]
            if at > last:
                raise newer_schema(str(self.path), at, last)
            if at != last:
                raise StoreError(
                    f"{self.path}: its schema is version {at}, not {last}; recrawl run brings it up to date"
                )
            return
        self.writer.execute("PRAGMA journal_mode = WAL")
        migrate(self.writer, str(self.path))

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The connection that writes, in one transaction: committed at the end, undone where anything raises."""
        with self._writing_mutex:
            connection = self.writer
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException as problem:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if isinstance(problem, sqlite3.Error):
                    raise self._failure(problem) from None
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection that reads."""
        with self._reading_mutex:
            try:
                yield self.reader
            except sqlite3.Error as problem:
                raise self._failure(problem) from None

    def check_open(self) -> None:
        """Refuse calls after the end."""
        if self._closed:
            raise StoreError(f"{self.path}: is closed")

    def end(self) -> bool:
        """Refuse calls from now on; whether it was open before."""
        was_open, self._closed = not self._closed, True
        return was_open

    def close(self) -> None:
        """Close the connections and give back the lock."""
        with self._writing_mutex, self._reading_mutex:
            self.reader.close()
            self.writer.close()
            self._release()

    def announce(self, *lines: str) -> None:
        """See `SqliteStore.announce`."""
        if self._lock is not None:
            self._lock.announce(*lines)

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def _failure(self, problem: sqlite3.Error) -> StoreError:
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return StoreError(f"{self.path}: the disk is full; the last batch was not written, all before it was")
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreError(f"{self.path}: another process keeps it locked (waited {_WAIT:g} s)")
        return StoreError(f"{self.path}: {problem}")


def select_in(connection: sqlite3.Connection, query: str, values: Iterable[str | int]) -> Iterator[tuple[Any, ...]]:
    """Rows of a query that ends with a column's name, where that column is one of the values."""
    given = list(values)
    for first in range(0, len(given), _ASKED):
        part = given[first : first + _ASKED]
        marks = ", ".join("?" * len(part))
        yield from connection.execute(f"{query} IN ({marks})", part)
