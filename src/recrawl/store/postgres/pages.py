"""Rows of pages from PostgreSQL, in batches of columns: nothing is held twice, however many pages there are.

Columns of fixed width come by COPY in binary form, whose records all have the same length: numpy reads them as they
are. Texts come in arrays of many pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.store.columns import FLAGS, WHOLES, Gathered
from recrawl.store.postgres import statements as sql

MANY = 20_000  # texts in one batch
_HEADER = 19  # bytes before the first record: signature, flags, length of the extension
_TEXTS = (
    "SELECT array_agg(url ORDER BY id), array_agg(more ORDER BY id), max(id) FROM "
    "(SELECT id, url, more FROM page WHERE id > $1 {} ORDER BY id LIMIT $2) AS chosen"
)


class FixedRecords:
    """Records of a binary COPY as they come, each handed on as arrays by name."""

    def __init__(self, names: Sequence[str], take: Callable[[NDArray[Any]], None]) -> None:
        kinds = [">i8" if name in (*WHOLES, "id") else "?" if name in FLAGS else ">f8" for name in names]
        fields: list[tuple[str, str]] = [("", ">i2")]
        for name, kind in zip(names, kinds, strict=True):
            fields += [(f"{name} length", ">i4"), (name, kind)]
        self._record = np.dtype(fields)
        self._take, self._rest, self._begun = take, b"", False

    async def __call__(self, data: bytes) -> None:
        """The next bytes."""
        self._rest += data
        if not self._begun:
            if len(self._rest) < _HEADER:
                return
            self._rest, self._begun = self._rest[_HEADER:], True
        n = len(self._rest) // self._record.itemsize
        if n:
            self._take(np.frombuffer(self._rest, self._record, n))
            self._rest = self._rest[n * self._record.itemsize :]


async def copied(connection: Any, query: str, names: Sequence[str], take: Callable[[NDArray[Any]], None]) -> None:
    """Run a query of columns of fixed width, none of them NULL, and hand its rows on as arrays."""
    await connection.copy_from_query(query, output=FixedRecords(names, take), format="binary")


async def all_pages(connection: Any) -> Gathered:
    """The rows of all pages, in the order in which they were added."""
    gathered = Gathered(await connection.fetchval("SELECT count(*) FROM page"))
    query = f"SELECT {', '.join(sql.FIXED)} FROM page ORDER BY id"
    await copied(connection, query, sql.FIXED, gathered.take_fixed)
    after = 0
    while True:
        urls, more, last = await connection.fetchrow(_TEXTS.format(""), after, MANY)
        if urls is None:
            return gathered
        gathered.take_texts(urls, more)
        after = last


async def some_pages(connection: Any, urls: Sequence[str]) -> Gathered:
    """The rows of those of the URLs that are pages."""
    query = f"SELECT {', '.join(sql.FIXED)}, url, more FROM page WHERE key = ANY ($1::bytea[]) ORDER BY id"
    rows = await connection.fetch(query, sql.keys_of(dict.fromkeys(urls)))
    gathered, n = Gathered(len(rows)), len(sql.FIXED)
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        gathered.take_fixed(dict(zip(sql.FIXED, columns[:n], strict=True)))
        gathered.take_texts(columns[n], columns[n + 1])
    return gathered
