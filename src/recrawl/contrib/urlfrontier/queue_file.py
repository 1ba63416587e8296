"""Queue file: the URLs of all queues, their leases and limits, in an SQLite file of their own."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from recrawl.errors import StoreError
from recrawl.store.sqlite.lock import Lock

_VERSION = 3
_SCHEMA = """
CREATE TABLE setting (name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE queue (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    crawl TEXT NOT NULL,
    key TEXT NOT NULL,
    delay REAL,
    blocked_until REAL NOT NULL DEFAULT 0,
    most INTEGER NOT NULL DEFAULT 0,
    last_served REAL,
    UNIQUE (crawl, key)
);
CREATE TABLE url (
    id INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    url TEXT NOT NULL,
    date INTEGER NOT NULL, -- seconds since 1970; 0: completed
    created INTEGER NOT NULL,
    metadata BLOB NOT NULL,
    until REAL NOT NULL DEFAULT 0, -- of its lease; negative: it was put again after this serve
    page TEXT, -- managed crawls: the page of the engine
    lease TEXT, -- managed crawls: the lease of the desk
    UNIQUE (queue, url)
);
CREATE INDEX url_date ON url (queue, date, url);
CREATE INDEX url_page ON url (page) WHERE page IS NOT NULL;
"""
_SINCE_2 = """
-- up to which arrival the URLs of a queue are rows
ALTER TABLE queue ADD COLUMN opened INTEGER NOT NULL DEFAULT 0;
CREATE TABLE arrival (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    queues BLOB NOT NULL, -- of each URL
    ends BLOB NOT NULL, -- of each record
    records BLOB NOT NULL -- URL, and its metadata after a zero byte
);
"""
_SINCE_3 = """
CREATE TABLE serve (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    until REAL NOT NULL,
    urls BLOB NOT NULL,
    queues BLOB NOT NULL,
    leases TEXT NOT NULL -- managed crawls: those of the desk
);
"""
# A crash of the process loses nothing; after a loss of power the last transactions may be missing.
_PRAGMAS = ("journal_mode = WAL", "synchronous = NORMAL", "journal_size_limit = 67108864", "cache_size = -65536")
_COLUMNS = "id, queue, url, date, created, metadata, until, page, lease"
_OF_URL = ", ".join(f"u.{name}" for name in _COLUMNS.split(", "))
SOME = 500  # rows of one read
_DATE_AND_URL = itemgetter(3, 2)  # of a row


class Row(NamedTuple):
    """A URL as it is stored."""

    id: int
    queue: int
    url: str
    date: int
    created: int
    metadata: bytes
    until: float
    page: str | None
    lease: str | None


class QueueFile:
    """The file; one process at a time has it. Every write is inside `transaction`."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise StoreError(f"{path}: there is no such folder")
        self._lock = Lock(self.path)
        try:
            self.db = sqlite3.connect(self.path, isolation_level=None, cached_statements=256)
            try:
                self._prepare()
            except BaseException:
                self.db.close()
                raise
        except sqlite3.Error as problem:
            self._lock.release()
            raise StoreError(f"{path}: {problem}") from None
        except BaseException:
            self._lock.release()
            raise

    def _prepare(self) -> None:
        (version,) = self.db.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            raise StoreError(f"{self.path}: its schema is version {version}; this recrawl knows {_VERSION}")
        for pragma in _PRAGMAS:
            self.db.execute(f"PRAGMA {pragma}")
        if version < _VERSION:
            with self.transaction():
                for schema in (_SCHEMA, _SINCE_2, _SINCE_3)[version:]:
                    for statement in schema.split(";\n"):
                        self.db.execute(statement)
                self.db.execute(f"PRAGMA user_version = {_VERSION}")
        self._last_row = int(self.db.execute("SELECT coalesce(max(id), 0) FROM url").fetchone()[0])

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Committed at the end, undone where anything raises."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield self.db
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the file and give back the lock."""
        self.db.close()
        self._lock.release()

    # --- reading ------------------------------------------------------------------------------------------------------

    def settings(self) -> dict[str, float]:
        """The settings of the service."""
        return dict(self.db.execute("SELECT name, value FROM setting"))

    def queues(self) -> Iterator[tuple[Any, ...]]:
        """All queues: id, crawl, key, delay, blocked_until, most, last_served, opened, active and completed URLs."""
        yield from self.db.execute(
            "SELECT q.id, crawl, key, delay, blocked_until, most, last_served, opened,"
            " count(u.id) - count(CASE WHEN u.date = 0 THEN 1 END), count(CASE WHEN u.date = 0 THEN 1 END)"
            " FROM queue q LEFT JOIN url u ON u.queue = q.id GROUP BY q.id ORDER BY q.id"
        )

    def held(self, now: float) -> Iterator[tuple[int, int, float]]:
        """URLs in process: queue, row and until when."""
        yield from self.db.execute("SELECT queue, id, until FROM url WHERE until > ?", (now,))

    def leased(self, after: float) -> list[tuple[str, float, str]]:
        """Leases of the desk that end after a time: page, when, lease."""
        query = "SELECT page, until, lease FROM url WHERE until > ? AND page IS NOT NULL AND lease IS NOT NULL"
        return list(self.db.execute(query, (after,)))

    def last_serve(self) -> int:
        """The number of the last serve."""
        found = self.db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'serve'").fetchone()
        return 0 if found is None else int(found[0])

    def find(self, queue: int, url: str) -> Row | None:
        """A URL of a queue."""
        found = self.db.execute(f"SELECT {_COLUMNS} FROM url WHERE queue = ? AND url = ?", (queue, url)).fetchone()
        return None if found is None else Row(*found)

    def found(self, urls: Sequence[tuple[int, str]]) -> dict[tuple[int, str], Row]:
        """URLs of queues, each given as its queue and itself: those that there are."""
        query = f"SELECT {_OF_URL} FROM json_each(?) j CROSS JOIN url u"
        query += " ON u.queue = json_extract(j.value, '$[0]') AND u.url = json_extract(j.value, '$[1]')"
        rows = (Row(*row) for row in self.db.execute(query, (json.dumps(urls),)))
        return {(row.queue, row.url): row for row in rows}

    def urls(self, queue: int) -> Iterator[str]:
        """The URLs of a queue that are rows."""
        return (url for (url,) in self.db.execute("SELECT url FROM url WHERE queue = ?", (queue,)))

    def of_pages(self, pages: Iterable[str]) -> dict[str, list[Row]]:
        """The URLs that stand for each of some pages of the engine."""
        query = f"SELECT {_OF_URL} FROM json_each(?) j CROSS JOIN url u ON u.page = j.value ORDER BY u.id"
        found: dict[str, list[Row]] = {}
        for row in self.db.execute(query, (json.dumps(list(pages)),)):
            found.setdefault(row[7], []).append(Row(*row))
        return found

    def pages_of(self, queues: Sequence[int]) -> list[str]:
        """The pages of the engine that some queues have."""
        query = "SELECT u.page FROM json_each(?) j CROSS JOIN url u ON u.queue = j.value AND u.page IS NOT NULL"
        return [page for (page,) in self.db.execute(query, (json.dumps(queues),))]

    def pages_after(self, queue: int, url: str, n: int) -> list[tuple[str, str | None]]:
        """At most n URLs of a queue after a URL, in order, and the page of each."""
        query = "SELECT url, page FROM url WHERE queue = ? AND url > ? ORDER BY url LIMIT ?"
        return list(self.db.execute(query, (queue, url, n)))

    def due(self, queues: Sequence[int], now: float, n: int) -> dict[int, list[Row]]:
        """The first n URLs of each queue whose dates have come, by queue: earliest date first, then by URL."""
        first = "SELECT id FROM url WHERE queue = j.value AND date BETWEEN 1 AND ? ORDER BY date, url LIMIT ?"
        query = f"SELECT {_OF_URL} FROM json_each(?) j CROSS JOIN url u ON u.id IN ({first})"
        found: dict[int, list[Row]] = {}
        for row in self.db.execute(query, (json.dumps(queues), int(now), n)):
            found.setdefault(row[1], []).append(Row(*row))
        if n > 1:
            for rows in found.values():
                rows.sort(key=_DATE_AND_URL)
        return found

    def next_date(self, queue: int, held: Mapping[int, float]) -> int | None:
        """The earliest date of a URL that is not held; None if there is none."""
        query = "SELECT id, date FROM url WHERE queue = ? AND date > 0 ORDER BY date LIMIT ?"
        found = self.db.execute(query, (queue, len(held) + 1))
        return next((int(date) for row, date in found if row not in held), None)

    def listed(self, queue: int, after: str = "") -> list[Row]:
        """Some URLs of a queue after a URL, in order."""
        query = f"SELECT {_COLUMNS} FROM url WHERE queue = ? AND url > ? ORDER BY url LIMIT {SOME}"
        return [Row(*row) for row in self.db.execute(query, (queue, after))]

    def of_queues(self, queues: Sequence[int]) -> list[Row]:
        """Some URLs of these queues."""
        query = f"SELECT {_OF_URL} FROM json_each(?) j CROSS JOIN url u ON u.queue = j.value LIMIT {SOME}"
        return [Row(*row) for row in self.db.execute(query, (json.dumps(queues),))]

    def deleted_queues(self) -> list[int]:
        """Queues that were deleted while some of their URLs are still there."""
        return [
            row[0]
            for row in self.db.execute("SELECT DISTINCT queue FROM url WHERE queue NOT IN (SELECT id FROM queue)")
        ]

    def without_page(self, crawl: str, after: int) -> list[Row]:
        """Some URLs of a crawl that stand for no page, after a row."""
        query = f"SELECT {_COLUMNS} FROM url WHERE id > ? AND page IS NULL"
        query += f" AND queue IN (SELECT id FROM queue WHERE crawl = ?) ORDER BY id LIMIT {SOME}"
        return [Row(*row) for row in self.db.execute(query, (after, crawl))]

    def purgeable(self, queue: int, before: float) -> list[Row]:
        """Some URLs of a queue that were created before a time."""
        query = f"SELECT {_COLUMNS} FROM url WHERE queue = ? AND created < ? LIMIT {SOME}"
        return [Row(*row) for row in self.db.execute(query, (queue, before))]

    # --- writing ------------------------------------------------------------------------------------------------------

    def set(self, name: str, value: float) -> None:
        """Write a setting of the service."""
        self.db.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, value))

    def add_queue(self, crawl: str, key: str) -> int:
        """A new queue; its row."""
        return self.db.execute("INSERT INTO queue (crawl, key) VALUES (?, ?)", (crawl, key)).lastrowid or 0

    def set_queue(self, queue: int, column: str, value: float | None) -> None:
        """Write one column of a queue."""
        self.db.execute(f"UPDATE queue SET {column} = ? WHERE id = ?", (value, queue))

    def set_opened(self, opened: Iterable[tuple[int, int]]) -> None:
        """URLs of queues became rows: up to which arrival, queue."""
        self.db.executemany("UPDATE queue SET opened = ? WHERE id = ?", opened)

    def delete_queues(self, queues: Iterable[int]) -> None:
        """Delete queues; their URLs are deleted after them, some at a time."""
        self.db.executemany("DELETE FROM queue WHERE id = ?", ((queue,) for queue in queues))

    def insert_rows(self, rows: Iterable[Row]) -> None:
        """Add URLs that are new in their queues."""
        self.db.executemany(f"INSERT INTO url ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def next_row(self) -> int:
        """A number that no URL had yet."""
        self._last_row += 1
        return self._last_row

    def renew(self, renewed: Iterable[tuple[int, bytes, int, int]]) -> None:
        """URLs were put again: their dates, metadata, −(the last serve) and rows. Their leases are over."""
        statement = "UPDATE url SET date = ?, metadata = ?, until = ?, lease = NULL WHERE id = ?"
        self.db.executemany(statement, renewed)

    def move(self, moved: Iterable[tuple[int, int]]) -> None:
        """URLs go to other queues: queue, row."""
        self.db.executemany("UPDATE url SET queue = ? WHERE id = ?", moved)

    def set_page(self, row: int, page: str | None) -> None:
        """A URL stands for a page of the engine, or for none."""
        self.db.execute("UPDATE url SET page = ?, lease = NULL WHERE id = ?", (page, row))

    def lease(self, leases: Iterable[tuple[float, str | None, int]]) -> None:
        """URLs are handed out: until when, the desk's lease, row."""
        self.db.executemany("UPDATE url SET until = ?, lease = ? WHERE id = ?", leases)

    def serve(self, queues: Sequence[tuple[float, int]]) -> None:
        """Queues served URLs: when, queue."""
        self.db.executemany("UPDATE queue SET last_served = ? WHERE id = ?", queues)

    def delete(self, rows: Iterable[int]) -> None:
        """Delete URLs."""
        self.db.executemany("DELETE FROM url WHERE id = ?", ((row,) for row in rows))
