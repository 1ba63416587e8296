"""The tables of `PostgresStore` as plain rows (see `store.tables`)."""

from __future__ import annotations

from typing import Any

from recrawl.store.postgres.statements import key_of
from recrawl.store.tables import TABLES, Row, Source, Table

_KEYED = {"page": "url", "note": "name", "host": "name", "listing": "url"}  # tables with a key that follows from a text
_NUMBERED = ("page", "observation", "version", "command")


async def read(connection: Any, table: Table, after: Row | None) -> list[Row]:
    """The next rows of a table, after the key of the last one."""
    key = ", ".join(table.key)
    marks = ", ".join(f"${k + 1}" for k in range(len(table.key)))
    where = "" if after is None else f"WHERE ({key}) > ({marks})"
    query = f"SELECT {', '.join(table.columns)} FROM {table.name} {where} ORDER BY {key} LIMIT {table.many}"
    return [table.typed(row) for row in await connection.fetch(query, *(after or ()))]


async def fill(connection: Any, source: Source) -> dict[str, int]:
    """Write all tables, and let numbers go on after the last."""
    counts = dict.fromkeys((table.name for table in TABLES), 0)
    await connection.execute("DELETE FROM event_total")
    for table in TABLES:
        async for rows in source(table):
            await _write(connection, table, rows)
            counts[table.name] += len(rows)
    for name in _NUMBERED:
        follow = f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), coalesce(max(id), 0) + 1, false) FROM {name}"
        await connection.execute(follow)
    return counts


async def _write(connection: Any, table: Table, rows: list[Row]) -> None:
    columns, records = tuple(table.columns), rows
    if table.name in _KEYED:
        place = columns.index(_KEYED[table.name])
        columns, records = ("key", *columns), [(key_of(row[place]), *row) for row in rows]
    await connection.copy_records_to_table(table.name, records=records, columns=columns)
