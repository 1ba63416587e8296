"""Reading all shards of a cluster while workers crawl them: by page, or all of them in one statement."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from recrawl.cluster.hosts import shards_of
from recrawl.cluster.overview import read_overview
from recrawl.cluster.ownership.sessions import Connections
from recrawl.cluster.tables import Cluster, shard_schema
from recrawl.store import PostgresStore
from recrawl.store.events import Event
from recrawl.store.postgres.owner import Owner
from recrawl.store.postgres.statements import observed
from recrawl.store.protocol import Outcome
from recrawl.store.tables import OBSERVATION

T = TypeVar("T")

_OUTCOMES = (
    f"(SELECT observation.id, url, {', '.join(f'observation.{name}' for name in OBSERVATION)} "
    "FROM {schema}.observation JOIN {schema}.page ON page.id = observation.page ORDER BY observation.id DESC LIMIT $1)"
)
_NEWEST = "(SELECT id, url FROM {schema}.page ORDER BY id DESC LIMIT $1)"
_CONTAINING = "(SELECT url FROM {schema}.page WHERE position($1::text IN lower(url)) > 0 ORDER BY id LIMIT $2)"
_EVENTS = "(SELECT {shard} AS shard, last FROM {schema}.event_total)"
_PAGES = (
    "(SELECT {shard} AS shard, count(*) AS pages, count(*) FILTER (WHERE failures > 0) AS failing, "
    "count(*) FILTER (WHERE times_gone > 0) AS gone, "
    "coalesce(sum(importance) FILTER (WHERE NOT paused), 0.0)::float8 AS importance FROM {schema}.page)"
)
_QUEUED = "SELECT coalesce(sum(octet_length(value)), 0) AS size FROM {schema}.command"
MOST_QUEUED = 64 << 20  # bytes of commands of a shard, beyond which nothing more is received for it
_AFTER = "SELECT id, url FROM page WHERE id > $1 ORDER BY id LIMIT $2"
_HOLDS = "SELECT name, spacing, held_until FROM host WHERE name = ANY ($1::text[])"


@dataclass(frozen=True)
class ShardPages:
    """The pages of a shard: how many there are, fail and are gone, and the importance of those that are not paused."""

    pages: int = 0
    failing: int = 0
    gone: int = 0
    importance: float = 0.0


class ShardReader:
    """All shards on two connections; nothing of it needs a lease. Commands are queued for the owners of shards."""

    def __init__(self, cluster: Cluster, connections: Connections | None = None) -> None:
        self.cluster, self._given = cluster, connections is not None
        self._connections = connections or Connections(cluster, writers=1)
        self._stores: dict[int, PostgresStore] = {}

    def store(self, shard: int) -> PostgresStore:
        """A shard, for reading and for queueing commands."""
        if shard not in self._stores:
            owner = Owner(self.cluster.shard_address(shard), exclusive=False)
            access = self._connections.of_shard(shard, owner)
            name = self.cluster.shard_database(shard)
            self._stores[shard] = PostgresStore(name, exclusive=False, access=access)
        return self._stores[shard]

    def shard_of(self, url: str) -> int:
        """The shard of a page."""
        return int(shards_of([url], self.cluster.shards)[0])

    def store_of(self, url: str) -> PostgresStore:
        """The shard of a page, for reading."""
        return self.store(self.shard_of(url))

    def by_shard(self, urls: Sequence[str]) -> dict[int, list[str]]:
        """URLs by their shards."""
        found: dict[int, list[str]] = {}
        for url, shard in zip(urls, shards_of(urls, self.cluster.shards).tolist(), strict=True):
            found.setdefault(shard, []).append(url)
        return found

    async def merged(
        self, urls: Sequence[str], read: Callable[[PostgresStore, list[str]], Awaitable[Mapping[str, T]]]
    ) -> dict[str, T]:
        """What shards say of their pages, together."""
        found: dict[str, T] = {}
        for shard, mine in self.by_shard(urls).items():
            found.update(await read(self.store(shard), mine))
        return found

    async def known(self, urls: Sequence[str]) -> set[str]:
        """Those of the URLs that are pages."""

        async def read(store: PostgresStore, mine: list[str]) -> dict[str, bool]:
            rows = await store.load(mine)
            return {} if rows is None else dict.fromkeys(rows["url"], True)

        return set(await self.merged(urls, read))

    async def to_be(self, urls: Sequence[str]) -> set[str]:
        """Those of the URLs that are pages, or will be when the queued commands are applied.

        Commands are read first: one that is applied meanwhile is seen by what it did.
        """
        commands = [one for shard in self.by_shard(urls) for _, one in await self.store(shard).commands()]
        found, asked = await self.known(urls), set(urls)
        for command in commands:
            found |= asked & set(command.get("add", ()))
            found -= set(command.get("remove", ()))
        return found

    async def has_room(self, shard: int) -> bool:
        """Whether the queue of a shard takes what was received."""
        schema = shard_schema(self.cluster.address.schema, shard)
        size = (await self._ask(_QUEUED.format(schema=schema)))[0]["size"]
        return bool(size < MOST_QUEUED)

    async def overview(self) -> dict[str, Any]:
        """Shards with their owners and shares, workers, and the budget as they are now."""
        return await self._connections.reader.call(lambda connection: read_overview(connection, self.cluster))

    async def newest_outcomes(self, many: int) -> list[Outcome]:
        """The last crawls of all shards, the newest first."""
        rows = await self._all(_OUTCOMES, many)
        found = [observed(row) for row in rows]
        return sorted(found, key=lambda one: -(one.began_at + one.took))[:many]

    async def newest_pages(self, many: int) -> list[str]:
        """The pages that were added last to each shard, the newest of each first."""
        rows = await self._all(_NEWEST, many)
        return [row["url"] for row in sorted(rows, key=lambda row: -row["id"])][:many]

    async def containing(self, words: str, many: int) -> list[str]:
        """Pages with a text in their URL; reads all URLs."""
        return [row["url"] for row in await self._all(_CONTAINING, words, many)][:many]

    async def newest_events(self, many: int, kinds: Sequence[str] | None) -> list[Event]:
        """The newest events of all shards, the newest first."""
        totals = await self.last_events()
        parts = [await self.store(k).newest_events(many, kinds=kinds) for k, last in enumerate(totals) if last]
        return sorted((one for part in parts for one in part), key=lambda one: -one.at)[:many]

    async def last_events(self) -> list[int]:
        """The last number of an event of each shard."""
        found = [0] * self.cluster.shards
        for shard, last in await self._all(_EVENTS):
            found[shard] = last
        return found

    async def pages(self) -> list[ShardPages]:
        """Counts of each shard's pages; reads all of them."""
        found = [ShardPages()] * self.cluster.shards
        for shard, *counts in await self._all(_PAGES):
            found[shard] = ShardPages(*counts)
        return found

    async def pages_after(self, shard: int, last: int, many: int) -> list[tuple[int, str]]:
        """Pages of a shard after one, in the order in which they were added, with their numbers there."""
        schema = shard_schema(self.cluster.address.schema, shard)
        rows = await self._ask(_AFTER.replace("FROM page", f"FROM {schema}.page"), last, many)
        return [(row["id"], row["url"]) for row in rows]

    async def held_hosts(self, shard: int, hosts: Sequence[str]) -> dict[str, tuple[float, float]]:
        """Hosts of a shard with the seconds between two requests, and until when they are not asked."""
        schema = shard_schema(self.cluster.address.schema, shard)
        rows = await self._ask(_HOLDS.replace("FROM host", f"FROM {schema}.host"), list(hosts))
        return {row["name"]: (row["spacing"], row["held_until"]) for row in rows}

    async def _all(self, statement: str, *given: Any) -> list[Any]:
        """The rows of a statement in all shards."""
        schemas = [shard_schema(self.cluster.address.schema, shard) for shard in range(self.cluster.shards)]
        parts = [statement.format(shard=shard, schema=schema) for shard, schema in enumerate(schemas)]
        return await self._ask(" UNION ALL ".join(parts), *given)

    async def _ask(self, statement: str, *given: Any) -> list[Any]:
        async def work(connection: Any) -> list[Any]:
            return list(await connection.fetch(statement, *given))

        return await self._connections.reader.call(work)

    async def close(self) -> None:
        """End the connections, unless they were given."""
        if not self._given:
            await self._connections.close()
