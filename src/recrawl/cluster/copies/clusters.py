"""Clusters as origin and goal of a copy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from recrawl.cluster import tables
from recrawl.cluster.copies.sharded import Shape
from recrawl.cluster.overview import overview
from recrawl.cluster.ownership.sessions import ShardAccess
from recrawl.cluster.ownership.stores import ShardStores
from recrawl.cluster.tables import Cluster
from recrawl.errors import ParameterError, StoreInUseError
from recrawl.store import BlockingStore, PostgresStore
from recrawl.store.opening import OwnedStore
from recrawl.store.postgres.address import Address
from recrawl.store.postgres.migrate import CLUSTER, check_version
from recrawl.store.postgres.owner import Owner
from recrawl.store.postgres.session import SchemaSession
from recrawl.store.postgres.snapshot import Snapshot


class ClusterMoment:
    """A cluster as it was at one moment, all shards alike, while workers go on."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._session = Snapshot(cluster.address, "recrawl-snapshot")
        try:
            self.shape: Shape = self._session.wait(self._look)
        except BaseException:
            self._session.end()
            raise

    @property
    def name(self) -> str:
        """The address."""
        return self.cluster.address.name

    async def _look(self, connection: Any) -> Shape:
        """The first call, which sets the moment."""
        for shard in range(self.cluster.shards):
            await check_version(connection, self.cluster.shard_address(shard))
        asked = f"SELECT shards, seconds, budget FROM {self.cluster.address.schema}.{CLUSTER}"
        return Shape(*await connection.fetchrow(asked))

    @contextmanager
    def shard(self, shard: int) -> Iterator[BlockingStore[OwnedStore]]:
        """The store of a shard, for reading alone."""
        place = self.cluster.shard_address(shard)
        reader = SchemaSession(self._session, place.schema)
        access = ShardAccess(Owner(place, exclusive=False), reader, reader)
        with BlockingStore(PostgresStore(self.cluster.shard_database(shard), exclusive=False, access=access)) as store:
            yield store

    def close(self) -> None:
        """End the transaction."""
        self._session.end()


class NewCluster:
    """A cluster without rows that no worker uses; each shard is leased while it is filled."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self._stores = cluster, ShardStores(cluster)

    @property
    def name(self) -> str:
        """The address."""
        return self.cluster.address.name

    @contextmanager
    def shard(self, shard: int) -> Iterator[BlockingStore[OwnedStore]]:
        """The store of a shard."""
        store = self._stores.exclusive(shard)
        if store is None:
            raise StoreInUseError(f"{self.name}: shard {shard} is in use")
        with store:
            yield store

    def close(self) -> None:
        """End the connections."""
        self._stores.close()


def new_cluster(address: Address, shape: Shape) -> Cluster:
    """The cluster to fill: made, or one that is there with as many shards and no worker."""
    cluster = asyncio.run(tables.read(address))
    if cluster is None:
        return asyncio.run(tables.create(address, shape.shards, shape.budget, seconds=shape.seconds))
    if cluster.shards != shape.shards:
        raise ParameterError(
            f"{address.name}: has {cluster.shards} shards, not {shape.shards}: hosts do not move between shards"
        )
    found = asyncio.run(overview(cluster))
    if any(worker["live"] for worker in found["workers"]):
        raise StoreInUseError(f"{address.name}: workers run")
    return cluster
