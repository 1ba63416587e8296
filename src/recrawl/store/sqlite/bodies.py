"""Bodies: the newest few of each page, compressed; equal bodies of several pages are stored once."""

from __future__ import annotations

import sqlite3

from recrawl.store.packing import packed_body, unpacked_body, zstd
from recrawl.store.protocol import body_key


class Bodies:
    """The tables ``body`` and ``version`` of a connection; ``keep`` bodies of each page."""

    def __init__(self, keep: int) -> None:
        self.keep = keep
        if keep > 0:
            zstd()

    def save(self, connection: sqlite3.Connection, page: int, fetched_at: float, body: bytes) -> None:
        """Keep a body of a page, and delete its oldest beyond ``keep``."""
        if self.keep <= 0:
            return
        key = body_key(body)
        if connection.execute("SELECT 1 FROM body WHERE key = ?", (key,)).fetchone() is None:
            row = (key, len(body), packed_body(body))
            connection.execute("INSERT INTO body (key, size, data) VALUES (?, ?, ?)", row)
        connection.execute("INSERT INTO version (page, fetched_at, key) VALUES (?, ?, ?)", (page, fetched_at, key))
        self.trim(connection, page, self.keep)

    def trim(self, connection: sqlite3.Connection, page: int, keep: int) -> None:
        """Delete all but the newest bodies of a page."""
        old = connection.execute(
            "SELECT id, key FROM version WHERE page = ? ORDER BY id DESC LIMIT -1 OFFSET ?", (page, keep)
        ).fetchall()
        for number, key in old:
            connection.execute("DELETE FROM version WHERE id = ?", (number,))
            connection.execute(
                "DELETE FROM body WHERE key = ? AND NOT EXISTS (SELECT 1 FROM version WHERE version.key = body.key)",
                (key,),
            )

    def read(self, connection: sqlite3.Connection, key: bytes) -> bytes | None:
        """A body, checked against its key."""
        found = connection.execute("SELECT data FROM body WHERE key = ?", (key,)).fetchone()
        return None if found is None else unpacked_body(found[0], key)
