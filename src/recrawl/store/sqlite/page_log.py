"""The log of pages that were written since the marks of engine states: a row per transaction, while there are marks."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from recrawl.store.protocol import Changes
from recrawl.store.sqlite.database import Database, select_in

_NUMBER = "(SELECT number FROM page_log WHERE mark = ?)"


class PageLog:
    """The log as the one process knows it that writes pages."""

    def __init__(self, database: Database) -> None:
        self.is_kept = bool(database.writer.execute("SELECT EXISTS (SELECT 1 FROM page_log)").fetchone()[0])

    def mark(self, connection: sqlite3.Connection) -> str:
        """Set a mark."""
        mark = secrets.token_hex(16)
        connection.execute("INSERT INTO page_log (mark) VALUES (?)", (mark,))
        self.is_kept = True
        return mark

    def drop(self, connection: sqlite3.Connection, before: str | None) -> None:
        """Forget what is before a mark, or everything."""
        if before is None:
            connection.execute("DELETE FROM page_log")
            self.is_kept = False
        else:
            connection.execute(f"DELETE FROM page_log WHERE number < {_NUMBER}", (before,))

    def note(
        self, connection: sqlite3.Connection, pages: Mapping[str, int], urls: Iterable[str], removed: Sequence[str]
    ) -> None:
        """Note the pages that a transaction has written, by number and by URL, and those it has removed."""
        others = {url for url in urls if url not in pages}
        numbers = [*pages.values(), *(row[0] for row in select_in(connection, "SELECT id FROM page WHERE url", others))]
        if numbers or removed:
            written = np.array(numbers, "<i8").tobytes()
            connection.execute(
                "INSERT INTO page_log (pages, removed) VALUES (?, ?)",
                (written, json.dumps(list(removed)) if removed else None),
            )


def writes_since(connection: sqlite3.Connection, mark: str) -> int:
    """The number of transactions since a mark."""
    query = f"SELECT count(*) FROM page_log WHERE mark IS NULL AND number > {_NUMBER}"
    return int(connection.execute(query, (mark,)).fetchone()[0])


def changes_since(connection: sqlite3.Connection, mark: str) -> Changes | None:
    """What was written since a mark; None: there is no such mark."""
    found = connection.execute("SELECT number FROM page_log WHERE mark = ?", (mark,)).fetchone()
    if found is None:
        return None
    query = "SELECT pages, removed FROM page_log WHERE mark IS NULL AND number > ? ORDER BY number"
    rows = connection.execute(query, found).fetchall()
    numbers = np.unique(np.frombuffer(b"".join(row[0] for row in rows), "<i8")).tolist()
    urls = [row[0] for row in select_in(connection, "SELECT url FROM page WHERE id", numbers)]
    return Changes(urls, [url for row in rows if row[1] for url in json.loads(row[1])])
