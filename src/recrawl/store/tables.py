"""Everything that a store holds, as tables of plain rows: for copies from one kind of store to another.

Numbers of pages, observations, commands and events are kept. What only one kind of store has (its lock, keys that
follow from texts, the log of pages for checkpoints) is not part of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

from recrawl.errors import StoreError
from recrawl.store.columns import FLAGS, REALS, WHOLES
from recrawl.store.events import Event, Subscriber

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Table:
    """A table: columns with their types, the columns that it is ordered by, and how many rows are read at once."""

    name: str
    columns: Mapping[str, type]
    key: tuple[str, ...]
    many: int = 5000

    def typed(self, row: Sequence[Any]) -> Row:
        """A row as it is compared and written: flags as bool, no NUL characters, which PostgreSQL cannot hold."""
        kinds = self.columns.values()
        return tuple(_typed(value, kind) for value, kind in zip(row, kinds, strict=True))


def _typed(value: Any, kind: type) -> Any:
    if value is None:
        return None
    if kind is str:
        return value.replace("\0", "\ufffd")
    return kind(value)


def _kinds(kind: type) -> dict[str, type]:
    """The columns of a dataclass of numbers and texts, by its annotations."""
    return {field.name: {"int": int, "float": float, "str": str}[field.type.split()[0]] for field in fields(kind)}


COPY: dict[str, type] = {"fetched_at": float, "changed_at": float, "status": int, "digest": str, "etag": str}
COPY |= {"last_modified": str, "content_type": str, "final_url": str, "recent": str, "n_flaps": int}
OBSERVATION: dict[str, type] = {"began_at": float, "took": float, "status": int, "changed": bool, "digest": str}
OBSERVATION |= {"failure": str, "gone": bool, "final_url": str, "etag": str, "last_modified": str}
OBSERVATION |= {"content_type": str, "requests": int, "flapping": bool, "rolled_off": bool, "signalled": int}
_EVENT = {name: kind for name, kind in _kinds(Event).items() if name != "id"}
_EVENT |= {"old_text": bytes, "new_text": bytes, "size": int}
_PAGE = {"id": int, "url": str, **dict.fromkeys((*REALS, "shape", "rate"), float), **dict.fromkeys(WHOLES, int)}
_PAGE |= {**dict.fromkeys(FLAGS, bool), "more": str}
_SIGNAL = {"page": int, "source": int, "at": float, "changed_at": float, "resolution": float}
_LEASE = {"id": str, "url": str, "picked_at": float, "until": float, "state": str, "conditional": bool}

TABLES = (  # in the order in which they can be written
    Table("page", _PAGE, ("id",)),
    Table("copy", {"page": int, **COPY}, ("page",)),
    Table("observation", {"id": int, "page": int, **OBSERVATION}, ("id",)),
    Table("body", {"key": bytes, "size": int, "data": bytes}, ("key",), 100),
    Table("version", {"id": int, "page": int, "fetched_at": float, "key": bytes}, ("id",)),
    Table("signal", _SIGNAL, ("page", "source")),
    Table("listing", {"url": str, "state": str, "entries": bytes}, ("url",), 100),
    Table("lease", _LEASE, ("id",)),
    Table("command", {"id": int, "value": str}, ("id",), 100),
    Table("event", _EVENT, ("number",), 1000),
    Table("last_event", {"page": int, "gone": bool, "digest": str, "final_url": str, "text": bytes}, ("page",), 1000),
    Table("subscriber", _kinds(Subscriber), ("name",)),
    Table("host", {"name": str, "spacing": float, "concurrency": float, "held_until": float}, ("name",)),
    Table("event_total", {"id": str, "last": int, "rows": int, "size": int}, ("id",)),
    Table("note", {"name": str, "value": str}, ("name",), 1000),
)

Source = Callable[[Table], AsyncIterator[list[Row]]]


async def paged(table: Table, read: Callable[[Row | None], Awaitable[list[Row]]]) -> AsyncIterator[list[Row]]:
    """The rows of a table by calls that read those after a key; None: from the first on."""
    places = [list(table.columns).index(name) for name in table.key]
    after: Row | None = None
    while rows := await read(after):
        yield rows
        after = tuple(rows[-1][place] for place in places)


class TableStore(Protocol):
    """A store whose content can be read and written as tables."""

    @property
    def name(self) -> str:
        """The database as it is printed."""

    def table_rows(self, table: Table) -> AsyncIterator[list[Row]]:
        """The rows of a table in the order of its key, many at a time."""

    async def restore(self, source: Source) -> dict[str, int]:
        """Write all tables from a source to an empty store, in one transaction; the numbers of rows."""


async def copy_store(origin: TableStore, goal: TableStore) -> dict[str, int]:
    """Copy everything to an empty store and compare the two row by row; the number of rows of each table."""
    for table in TABLES:
        if table.name != "event_total" and await anext(_single(goal.table_rows(table)), None) is not None:
            raise StoreError(f"{goal.name}: is not empty: it has rows of {table.name}")
    await goal.restore(origin.table_rows)
    return {table.name: await compare_table(origin, goal, table) for table in TABLES}


async def compare_table(one: TableStore, other: TableStore, table: Table) -> int:
    """The number of rows of a table that two stores have alike; raise StoreError at the first difference."""
    mine, theirs, n = _single(one.table_rows(table)), _single(other.table_rows(table)), 0
    while True:
        row, copy = await anext(mine, None), await anext(theirs, None)
        if row is None and copy is None:
            return n
        if row is None or copy is None:
            where, rest = (one.name, copy) if row is None else (other.name, row)
            raise StoreError(f"{where}: has no row {_brief(rest)} of {table.name}")
        if not _same(row, copy):
            raise StoreError(f"{other.name}: row {_brief(row)} of {table.name} differs from {one.name}")
        n += 1


async def _single(batches: AsyncIterator[list[Row]]) -> AsyncIterator[Row]:
    async for rows in batches:
        for row in rows:
            yield row


def _same(one: Row, other: Row) -> bool:
    return one == other or all(a == b or (a != a and b != b) for a, b in zip(one, other, strict=True))


def _brief(row: Row | None) -> str:
    return repr((row or ("",))[0])[:80]
