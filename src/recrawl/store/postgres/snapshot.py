"""Snapshot: a session whose calls all read the database as it was at one moment."""

from __future__ import annotations

from typing import TypeVar

from recrawl.errors import StoreError
from recrawl.store.postgres.address import Address
from recrawl.store.postgres.session import Connection, Session, Work

T = TypeVar("T")


class Snapshot(Session):
    """All calls are one transaction, which sees what was committed before the first of them and writes nothing."""

    def __init__(self, address: Address, name: str) -> None:
        self._begun_already = False
        super().__init__(address, name, _as_it_is, reading=True)

    async def _transaction(self, work: Work[T]) -> T:
        if not self._begun_already:
            await self._begun()
            self._begun_already = True
        elif self._connection.is_closed():
            raise StoreError(f"{self._address.name}: the connection was lost: begin again")
        return await work(self._connection)


async def _as_it_is(connection: Connection) -> None:
    """A connection that needs nothing before it reads."""
