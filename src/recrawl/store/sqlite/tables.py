"""The tables of `SqliteStore` as plain rows (see `store.tables`)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from recrawl.store.tables import TABLES, Row, Source, Table

_TOTAL = (
    "(SELECT id, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0) AS last, rows, size "
    "FROM event_total)"
)


def read(connection: sqlite3.Connection, table: Table, after: Row | None) -> list[Row]:
    """The next rows of a table, after the key of the last one."""
    source = _TOTAL if table.name == "event_total" else table.name
    key = ", ".join(table.key)
    where = "" if after is None else f"WHERE ({key}) > ({', '.join('?' * len(table.key))})"
    query = f"SELECT {', '.join(table.columns)} FROM {source} {where} ORDER BY {key} LIMIT {table.many}"
    return [table.typed(row) for row in connection.execute(query, after or ())]


async def fill(connection: sqlite3.Connection, source: Source) -> dict[str, int]:
    """Write all tables."""
    counts = dict.fromkeys((table.name for table in TABLES), 0)
    for table in TABLES:
        async for rows in source(table):
            _write(connection, table, rows)
            counts[table.name] += len(rows)
    return counts


def _write(connection: sqlite3.Connection, table: Table, rows: Sequence[Row]) -> None:
    if table.name == "event_total":
        ((stream, last, n_rows, size),) = rows
        connection.execute("UPDATE event_total SET id = ?, rows = ?, size = ?", (stream, n_rows, size))
        connection.execute("DELETE FROM sqlite_sequence WHERE name = 'event'")
        connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('event', ?)", (last,))
        return
    columns = list(table.columns)
    marks = ["?"] * len(columns)
    if table.name == "page":  # `sources` is no longer used
        columns, marks = [*columns, "sources"], [*marks, "x''"]
    connection.executemany(f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({', '.join(marks)})", rows)
