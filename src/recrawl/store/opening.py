"""Which store a database is: an SQLite file by its path, PostgreSQL by its address."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from recrawl.errors import StoreMissingError
from recrawl.store.events import EventLimits
from recrawl.store.holder import Holder
from recrawl.store.postgres.address import is_postgres, shown
from recrawl.store.protocol import Store
from recrawl.store.tables import TableStore

__all__ = ["OwnedStore", "is_postgres", "open_store", "shown"]


@runtime_checkable
class OwnedStore(Store, TableStore, Protocol):
    """A store that one process at a time can have to itself."""

    def size(self) -> int:
        """Bytes on disk."""

    def announce(self, *lines: str) -> None:
        """Write lines that other processes may look for (`holder`); nothing if the store is not exclusive."""

    def holder(self) -> Holder | None:
        """The process that has the database to itself; None if there is none."""


def open_store(
    database: str, *, keep: int = 1, exclusive: bool = True, create: bool = True, events: EventLimits | None = None
) -> OwnedStore:
    """The store of a database; the options are those of `SqliteStore` and `PostgresStore`.

    Unless ``create``, a database that is not there is an error (`StoreMissingError`).
    """
    if is_postgres(database):
        from recrawl.store.postgres.store import PostgresStore

        return PostgresStore(database, keep=keep, exclusive=exclusive, create=create, events=events)
    from recrawl.store.sqlite.store import SqliteStore

    if not create and not Path(database).is_file():
        raise StoreMissingError(f"{database}: there is no such database; recrawl add makes one")
    return SqliteStore(database, keep=keep, exclusive=exclusive, events=events)
