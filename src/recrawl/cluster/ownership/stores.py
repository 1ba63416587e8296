"""Stores of shards for commands: read while workers crawl, or leased for a short time to write."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import Any, Self

from recrawl.cluster.ownership.leases import Held, ShardLeases
from recrawl.cluster.ownership.sessions import Connections
from recrawl.cluster.tables import Cluster
from recrawl.store import BlockingStore, EventLimits, PostgresStore
from recrawl.store.opening import OwnedStore
from recrawl.store.postgres.owner import Owner

_SECONDS = 120.0  # that a command has a shard, from its last transaction on


class CommandOwner:
    """The owner of a shard's schema: every transaction of the command checks the lease and renews it."""

    def __init__(self, leases: ShardLeases, held: Held, cluster: Cluster) -> None:
        self._leases, self._held, self._schema = leases, held, cluster.address.schema

    async def prepare(self, connection: Any) -> None:
        """Nothing: the connection is shared by shards."""

    async def begin(self, connection: Any) -> None:
        """Raise LeaseLostError if the command had the shard for too long."""
        await self._leases.renew(connection, self._held, self._schema)

    async def announce(self, connection: Any, lines: tuple[str, ...]) -> None:
        """Nothing: a command takes no orders."""


class LeasedStore(BlockingStore[OwnedStore]):
    """A shard that is leased for as long as the store is open."""

    def __init__(self, store: OwnedStore, release: Callable[[], None]) -> None:
        super().__init__(store)
        self._release = release

    def close(self) -> None:
        """Close the store and give the shard back."""
        super().close()
        self._release()


class ShardStores:
    """The shards of a cluster, opened one by one on the same connections."""

    def __init__(self, cluster: Cluster, *, keep: int = 1, events: EventLimits | None = None) -> None:
        self.cluster, self._keep, self._events = cluster, keep, events
        self._connections = Connections(cluster, writers=1)
        name = f"command-{socket.gethostname()}-{os.getpid()}"
        self._leases = ShardLeases(name, time.monotonic, seconds=_SECONDS)

    def shared(self, shard: int) -> BlockingStore[OwnedStore]:
        """A shard for reading and for queueing commands, also while a worker has it."""
        owner = Owner(self.cluster.shard_address(shard), exclusive=False)
        access = self._connections.of_shard(shard, owner)
        return BlockingStore(PostgresStore(self.cluster.shard_database(shard), exclusive=False, access=access))

    def exclusive(self, shard: int) -> BlockingStore[OwnedStore] | None:
        """A shard for writing; None while another process has it. Closing it gives the shard back."""
        session = self._connections.writers[0]
        held = session.wait(lambda connection: self._leases.take(connection, shard))
        if held is None:
            return None
        access = self._connections.of_shard(shard, CommandOwner(self._leases, held, self.cluster))
        return LeasedStore(
            PostgresStore(self.cluster.shard_database(shard), keep=self._keep, events=self._events, access=access),
            lambda: session.wait(lambda connection: self._leases.release(connection, held)),
        )

    def close(self) -> None:
        """End the connections."""
        self._connections.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
