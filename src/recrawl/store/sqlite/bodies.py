"""Bodies: the newest few of each page, compressed; equal bodies of several pages are stored once."""

from __future__ import annotations

import sqlite3
from functools import cache
from importlib import import_module
from typing import Any

from recrawl.errors import StoreError
from recrawl.store.protocol import body_key

_LEVEL = 3
LARGEST = 1 << 30  # bytes of an unpacked body


@cache
def zstd() -> Any:
    """Python's zstd module, or its backport before Python 3.14."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(name)
        except ImportError:
            continue
    raise StoreError("bodies need zstd: pip install 'recrawl[crawl]'")


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
            packed = zstd().compress(body, level=_LEVEL)
            connection.execute("INSERT INTO body (key, size, data) VALUES (?, ?, ?)", (key, len(body), packed))
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
        if found is None:
            return None
        try:
            body = bytes(zstd().ZstdDecompressor().decompress(found[0], max_length=LARGEST))
        except zstd().ZstdError as problem:
            raise StoreError(f"body {key.hex()} cannot be unpacked: {problem}") from None
        if body_key(body) != key:
            raise StoreError(f"body {key.hex()} is not what was saved")
        return body
