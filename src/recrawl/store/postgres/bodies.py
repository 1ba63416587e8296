"""Bodies of `PostgresStore`: the newest few of each page, compressed; equal bodies are stored once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recrawl.store.packing import packed_body, unpacked_body, zstd
from recrawl.store.postgres import statements as sql
from recrawl.store.protocol import body_key

_ADD = sql.unnested({"key": bytes, "size": int, "data": bytes})
_ADD_BODIES = f"INSERT INTO body (key, size, data) SELECT * FROM {_ADD} ON CONFLICT (key) DO NOTHING"
_ADD_VERSIONS = (
    f"INSERT INTO version (page, fetched_at, key) SELECT page, at, key FROM "
    f"{sql.unnested({'page': int, 'at': float, 'key': bytes})} WITH ORDINALITY AS given (page, at, key, n) ORDER BY n"
)
_TRIM = (
    "WITH old AS (DELETE FROM version WHERE id IN (SELECT id FROM "
    "(SELECT id, row_number() OVER (PARTITION BY page ORDER BY id DESC) AS n FROM version "
    "WHERE page = ANY ($1::bigint[])) AS mine WHERE n > $2) RETURNING key) SELECT DISTINCT key FROM old"
)
_LOOSE = "DELETE FROM body WHERE key = ANY ($1::bytea[]) AND NOT EXISTS (SELECT 1 FROM version WHERE key = body.key)"


class Bodies:
    """The tables ``body`` and ``version``; ``keep`` bodies of each page."""

    def __init__(self, keep: int) -> None:
        self.keep = keep
        if keep > 0:
            zstd()

    async def save(self, connection: Any, bodies: Sequence[tuple[int, float, bytes]]) -> None:
        """Keep bodies of pages (page, time, bytes), and delete the oldest of each page beyond ``keep``."""
        if self.keep <= 0 or not bodies:
            return
        keyed = {body_key(body): body for *_, body in bodies}
        known = await connection.fetch("SELECT key FROM body WHERE key = ANY ($1::bytea[])", list(keyed))
        new = [
            (key, len(keyed[key]), packed_body(keyed[key])) for key in keyed.keys() - {bytes(row[0]) for row in known}
        ]
        await connection.execute(_ADD_BODIES, *sql.arrays(new, 3))
        versions = [(page, at, body_key(body)) for page, at, body in bodies]
        await connection.execute(_ADD_VERSIONS, *sql.arrays(versions, 3))
        await self.trim(connection, [page for page, *_ in bodies], self.keep)

    async def trim(self, connection: Any, pages: Sequence[int], keep: int) -> None:
        """Delete all but the newest bodies of each page."""
        old = await connection.fetch(_TRIM, list(set(pages)), keep)
        if old:
            await connection.execute(_LOOSE, [row[0] for row in old])

    async def read(self, connection: Any, key: bytes) -> bytes | None:
        """A body, checked against its key."""
        data = await connection.fetchval("SELECT data FROM body WHERE key = $1", key)
        return None if data is None else unpacked_body(data, key)
