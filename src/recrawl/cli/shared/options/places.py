"""Places of pages: a database, or the shards of a cluster. What commands do with pages they do in each place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from recrawl.cli.shared.options.crawl_options import exclusive_store, shared_store
from recrawl.errors import ParameterError

if TYPE_CHECKING:
    from recrawl.cluster.tables import Cluster
    from recrawl.crawl.config.settings import Settings
    from recrawl.store import BlockingStore, OwnedStore


@dataclass(frozen=True)
class Place:
    """A database or a shard."""

    shared: Callable[[], BlockingStore[OwnedStore]]  # for reading and for commands, also while a crawl runs
    exclusive: Callable[[], BlockingStore[OwnedStore] | None]  # for writing; None while a crawl has it
    shard: int | None = None


@dataclass(frozen=True)
class Places:
    """All places of a database; ``cluster`` is None where it is one."""

    places: Sequence[Place]
    settings: Settings
    cluster: Cluster | None = None
    shares: Mapping[int, float] = field(default_factory=dict)  # requests per second of each shard

    def of(self, urls: Sequence[str]) -> list[tuple[Place, list[int]]]:
        """The places of URLs, each with the positions of its URLs."""
        if self.cluster is None:
            return [(self.places[0], list(range(len(urls))))]
        from recrawl.cluster.hosts import shards_of

        found: dict[int, list[int]] = {}
        for k, shard in enumerate(shards_of(urls, self.cluster.shards).tolist()):
            found.setdefault(shard, []).append(k)
        return [(self.places[shard], mine) for shard, mine in sorted(found.items())]

    def of_url(self, url: str) -> Place:
        """The place of one URL."""
        return self.of([url])[0][0]

    def settings_of(self, place: Place) -> Settings:
        """The settings of a crawl in a place: a shard's budget is its share."""
        if place.shard is None:
            return self.settings
        from recrawl.cluster.shard_settings import shard_settings

        return shard_settings(self.settings, self.shares.get(place.shard))


@contextmanager
def places_of(settings: Settings, budget: str | None = None) -> Iterator[Places]:
    """The places of a database; those of a cluster share connections.

    ``budget``: shards have the shares that they would get of another budget.
    """
    cluster = cluster_of(settings)
    if cluster is None:
        yield Places([Place(lambda: shared_store(settings), lambda: exclusive_store(settings))], settings)
        return
    import asyncio

    from recrawl.cluster.overview import overview, shares_at
    from recrawl.cluster.ownership.stores import ShardStores

    if budget is None:
        shares = {one["shard"]: one["rate"] or 0.0 for one in asyncio.run(overview(cluster))["shards"]}
    else:
        shares = asyncio.run(shares_at(cluster, budget, settings.opening()))

    with ShardStores(cluster, keep=settings.keep, events=settings.event_limits()) as stores:

        def place(shard: int) -> Place:
            return Place(lambda: stores.shared(shard), lambda: stores.exclusive(shard), shard)

        settings = replace(settings, budget=budget or cluster.budget)
        yield Places([place(shard) for shard in range(cluster.shards)], settings, cluster, shares)


def cluster_of(settings: Settings) -> Cluster | None:
    """The cluster that a database is; None: it is none."""
    from recrawl.store.postgres.address import Address, is_postgres

    if not is_postgres(settings.database):
        return None
    import asyncio

    from recrawl.cluster import tables

    return asyncio.run(tables.read(Address.parse(settings.database)))


def need_cluster(settings: Settings) -> Cluster:
    """The cluster that a database is; ParameterError if it is none."""
    cluster = cluster_of(settings)
    if cluster is None:
        raise ParameterError(f"{settings.database_name}: is no cluster; recrawl cluster create makes one")
    return cluster
