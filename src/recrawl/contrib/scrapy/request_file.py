"""RequestFile: how the spider requests the pages of links, kept by URL for later runs."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from recrawl.errors import StoreError

_PATIENCE = 30.0  # seconds that a write waits for another spider that has the same file
_TABLE = (
    "CREATE TABLE IF NOT EXISTS request "
    "(spider TEXT NOT NULL, url TEXT NOT NULL, form TEXT NOT NULL, PRIMARY KEY (spider, url)) WITHOUT ROWID"
)


class RequestFile:
    """An SQLite file, made when the first request is kept. Several spiders may use one file."""

    def __init__(self, path: str | Path, spider: str) -> None:
        self._path, self._spider = Path(path), spider
        self._db: sqlite3.Connection | None = None

    def keep(self, forms: Iterable[tuple[str, str]]) -> None:
        """Write the forms of requests by URL; StoreError if that cannot be done."""
        rows = [(self._spider, url, form) for url, form in forms]
        if rows:
            try:
                with self._opened() as db:
                    db.executemany("INSERT OR REPLACE INTO request VALUES (?, ?, ?)", rows)
            except sqlite3.Error as problem:
                raise StoreError(f"{self._path} (RECRAWL_REQUESTS): {problem}") from None

    def form(self, url: str) -> str | None:
        """The form of a request; None if none is kept."""
        if self._db is None and not os.path.exists(self._path):  # quicker than that of Path
            return None
        asked = "SELECT form FROM request WHERE spider = ? AND url = ?"
        try:
            found = self._opened().execute(asked, (self._spider, url)).fetchone()
        except sqlite3.Error as problem:
            raise StoreError(f"{self._path} (RECRAWL_REQUESTS): {problem}") from None
        return None if found is None else found[0]

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = sqlite3.connect(self._path, timeout=_PATIENCE)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(_TABLE)
        return self._db
