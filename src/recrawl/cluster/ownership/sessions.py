"""Connections of a worker: a few, shared by the shards that it has. Each transaction is of one shard.

A shard's session waits while the database is away, and makes a write whose answer was lost again unless it was
committed. It gives up once the shard is another worker's.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from recrawl.cluster.ownership.gate import Gate, LeaseOwner
from recrawl.cluster.ownership.leases import LeaseLostError
from recrawl.cluster.tables import Cluster
from recrawl.errors import StoreUnreachableError
from recrawl.store.postgres.owner import Ownership
from recrawl.store.postgres.session import SchemaSession, Session, Sessions, Work

T = TypeVar("T")

_PAUSE = 0.2  # seconds between two attempts
_N_WRITERS = 4  # connections that write; commits of shards need not wait for each other
_LOADING = 600.0  # seconds that a statement may take while a shard is opened


@dataclass(frozen=True)
class ShardAccess:
    """See `store.postgres.session.Access`."""

    owner: Ownership
    writer: Sessions
    reader: Sessions


@dataclass(frozen=True)
class OwnerAccess:
    """The same of a shard's owner. At first it reads with much time; ``opened`` ends that."""

    owner: Ownership
    writer: PatientSession
    reader: PatientSession
    quick: Sessions

    def opened(self) -> None:
        """The shard is open: statements are short from now on."""
        self.reader.session = self.quick


class Connections:
    """Sessions of a process on a cluster; ``patience`` is for how many seconds a statement may take.

    With it, shards are opened on a connection of their own: whole tables are read there, which takes longer.
    """

    def __init__(self, cluster: Cluster, *, writers: int = _N_WRITERS, patience: float | None = None) -> None:
        self.cluster, self._all = cluster, list[Session]()
        try:
            self.writers = [self._session(f"write-{k}", patience, reading=False) for k in range(writers)]
            self.reader = self.loader = self._session("read", patience, reading=True)
            if patience is not None:
                self.loader = self._session("load", _LOADING, reading=True)
        except BaseException:
            self.end()
            raise

    def _session(self, name: str, patience: float | None, *, reading: bool) -> Session:
        prepare = _as_it_is if reading else self._prepare
        made = Session(self.cluster.address, f"recrawl-shards-{name}", prepare, reading=reading, patience=patience)
        self._all.append(made)
        return made

    async def _prepare(self, connection: Any) -> None:
        """Let the server end transactions that stand still: their locks would hold up the next owner."""
        await connection.execute(f"SET idle_in_transaction_session_timeout = {round(1000 * self.cluster.seconds)}")

    def of_shard(self, shard: int, owner: Ownership) -> ShardAccess:
        """Access to a shard, without patience."""
        schema = self.cluster.shard_address(shard).schema
        writer = self.writers[shard % len(self.writers)]
        return ShardAccess(owner, SchemaSession(writer, schema), SchemaSession(self.reader, schema))

    def of_gate(self, gate: Gate, may_wait: Callable[[], bool]) -> OwnerAccess:
        """Access of a shard's owner, which waits for the database as long as ``may_wait`` says."""
        shard = gate.held.shard
        owner, lock = LeaseOwner(gate, self.cluster.address), self.cluster.shard_address(shard).lock_key("write")
        access = self.of_shard(shard, owner)
        loader = SchemaSession(self.loader, self.cluster.shard_address(shard).schema)
        writer = PatientSession(access.writer, gate, may_wait, lock)
        return OwnerAccess(owner, writer, PatientSession(loader, gate, may_wait), access.reader)

    async def close(self) -> None:
        """End the connections."""
        for session in self._all:
            await session.close()

    def end(self) -> None:
        """The same, for callers that do not await."""
        for session in self._all:
            session.end()


class PatientSession:
    """A shard's session that tries again while the lease may come back; ``lock`` is given where it writes.

    A write is numbered in its own transaction. After a lost answer the next attempt takes the lock of writes, which the
    first holds until it ended, and looks whether its number is there. The next write waits until this one is settled:
    it would put its own number in that place.
    """

    def __init__(self, session: Sessions, gate: Gate, may_wait: Callable[[], bool], lock: int | None = None) -> None:
        self.session, self._gate, self._may_wait, self._lock = session, gate, may_wait, lock
        self._numbers = itertools.count(random.getrandbits(60))
        self._turn = asyncio.Lock()

    async def call(self, work: Work[T]) -> T:
        """Run work in a transaction, once."""
        if self._lock is None:
            return await self._patiently(work)
        async with self._turn:
            return await self._patiently(work)

    async def _patiently(self, work: Work[T]) -> T:
        number, again = next(self._numbers), False
        while True:
            self._gate.check_not_lost()
            try:
                return await self.session.call(self._numbered(work, number, again))
            except (StoreUnreachableError, LeaseLostError):
                if not self._may_wait():
                    raise
            again = True
            await asyncio.sleep(_PAUSE)

    def wait(self, work: Work[T]) -> T:
        """The same for callers that do not await, in one attempt."""
        return self.session.wait(work)

    def _numbered(self, work: Work[T], number: int, again: bool) -> Work[T]:
        if self._lock is None:
            return work

        async def numbered(connection: Any) -> T:
            await connection.execute(f"SELECT pg_advisory_xact_lock({self._lock})")
            if again and await connection.fetchval("SELECT batch FROM owner") == number:
                return None  # type: ignore[return-value] # the first attempt was committed; writes answer nothing
            found = await work(connection)
            await connection.execute("UPDATE owner SET batch = $1", number)
            return found

        return numbered

    def end(self) -> None:
        """Nothing ends: the session is shared."""

    async def close(self) -> None:
        """Nothing ends: the session is shared."""


async def _as_it_is(connection: Any) -> None:
    """A connection that needs nothing before it reads."""
