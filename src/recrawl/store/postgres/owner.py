"""Owner: the process that has a database to itself, by an advisory lock that ends with its connection.

Each owner has an epoch of its own, one more than the last. An owner that lost its connection takes the lock again; it
is refused if another has had the database meanwhile. Every transaction of an owner checks that the epoch is its own.
"""

from __future__ import annotations

import os
import socket
from typing import Any, Protocol

from recrawl.errors import StoreInUseError
from recrawl.store.holder import Holder
from recrawl.store.postgres.address import Address
from recrawl.store.postgres.migrate import check_version, migrate

_HELD = (
    "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND classid::bigint = $1 AND objid::bigint = $2)"
)
_TAKE = "UPDATE owner SET epoch = epoch + 1, pid = $1, host = $2, announced = '' RETURNING epoch"


class Ownership(Protocol):
    """What a store asks of those who own its schema: `Owner`, or the lease of a shard."""

    async def prepare(self, connection: Any) -> None:
        """A connection that will write was made."""

    async def begin(self, connection: Any) -> None:
        """A transaction that saves begins: raise unless this process is the owner."""

    async def announce(self, connection: Any, lines: tuple[str, ...]) -> None:
        """Write lines that others may look for."""


class Owner:
    """What the writing connection of a store does when it is made, and at the start of each transaction."""

    def __init__(self, address: Address, *, exclusive: bool, create: bool = True) -> None:
        self._address, self._exclusive, self._create = address, exclusive, create
        self._epoch: int | None = None
        self._writing = address.lock_key("write")

    async def prepare(self, connection: Any) -> None:
        """Take the database (exclusive), or check that it can be used."""
        if not self._exclusive:
            await check_version(connection, self._address)
            return
        if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", self._address.lock_key("owner")):
            raise StoreInUseError(f"{self._address.name}: in use by {await self._who(connection)}")
        if self._epoch is None:
            await migrate(connection, self._address, create=self._create)
            self._epoch = await connection.fetchval(_TAKE, os.getpid(), socket.gethostname())
        else:
            await self._check_epoch(connection)

    async def begin(self, connection: Any) -> None:
        """At the start of a transaction that saves: one at a time, and none of an owner that another has followed."""
        await connection.execute(f"SELECT pg_advisory_xact_lock({self._writing})")
        if self._exclusive:
            await self._check_epoch(connection)

    async def announce(self, connection: Any, lines: tuple[str, ...]) -> None:
        """Write lines that others may look for (`holder`)."""
        if self._exclusive:
            await connection.execute("UPDATE owner SET announced = $1 WHERE epoch = $2", "\n".join(lines), self._epoch)

    async def _check_epoch(self, connection: Any) -> None:
        if await connection.fetchval("SELECT epoch FROM owner") != self._epoch:
            raise StoreInUseError(f"{self._address.name}: another process has had it meanwhile; start again")

    async def _who(self, connection: Any) -> str:
        known = await connection.fetchval("SELECT to_regclass($1)", f"{self._address.schema}.owner")
        row = known and await connection.fetchrow("SELECT pid, host FROM owner")
        if not row or row["pid"] is None:
            return "another process; only one run at a time"
        return f"process {row['pid']} on {row['host']}; only one run at a time"


async def holder(connection: Any, address: Address) -> Holder | None:
    """The process that has the database to itself; None if there is none."""
    key = address.lock_key("owner") % (1 << 64)
    if not await connection.fetchval(_HELD, key >> 32, key & 0xFFFFFFFF):
        return None
    row = await connection.fetchrow("SELECT pid, host, announced FROM owner")
    return Holder(row["pid"], tuple(filter(None, row["announced"].split("\n"))), row["host"])
