"""Backups of clusters, and copies of them to a new cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from recrawl.cluster import tables
from recrawl.cluster.copies.clusters import ClusterMoment, NewCluster, new_cluster
from recrawl.cluster.copies.folder import ShardFolder, is_folder, whole_folder
from recrawl.cluster.copies.sharded import Shape, Sharded, copy_shards
from recrawl.cluster.tables import Cluster
from recrawl.errors import ParameterError
from recrawl.store.postgres.address import Address, is_postgres


def back_up(cluster: Cluster, goal: Path) -> dict[str, int]:
    """Copy a cluster as it is at one moment to a folder, while workers go on; the rows of each table."""
    with closing(ClusterMoment(cluster)) as origin, whole_folder(goal, origin.shape) as folder:
        return copy_shards(origin, folder, origin.shape.shards)


def copy_cluster(origin: Cluster | str | Path, goal: str) -> dict[str, int]:
    """Copy a cluster, or a backup of one, to an empty cluster, which is made if there is none."""
    if not is_postgres(goal):
        raise ParameterError(
            f"{goal}: the copy of a cluster is a cluster: postgresql://… (recrawl backup writes files)"
        )
    address = Address.parse(goal)
    with _opened(origin) as (source, shape), closing(NewCluster(new_cluster(address, shape))) as target:
        return copy_shards(source, target, shape.shards)


@contextmanager
def _opened(origin: Cluster | str | Path) -> Iterator[tuple[Sharded, Shape]]:
    if isinstance(origin, Cluster):
        with closing(ClusterMoment(origin)) as moment:
            yield moment, moment.shape
        return
    folder = ShardFolder(Path(origin))
    yield folder, folder.shape()


def sharded_origin(database: str) -> Cluster | Path | None:
    """The cluster, or the folder of a backup of one, that a database is; None: it is neither."""
    if not is_postgres(database):
        return Path(database) if is_folder(database) else None
    return asyncio.run(tables.read(Address.parse(database)))
