"""Reads: what `PostgresStore` answers, each call at one moment of the database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.estimate.sampling import draw
from recrawl.store.leases import HELD, Lease
from recrawl.store.listings import StoredListing
from recrawl.store.postgres import statements as sql
from recrawl.store.postgres.bodies import Bodies
from recrawl.store.postgres.events import EventTables
from recrawl.store.postgres.pages import all_pages, copied, some_pages
from recrawl.store.protocol import Copy, Outcome, Totals, Version
from recrawl.store.signals import PendingSignal

MANY = 20_000  # observations read at a time
_END = "\U0010ffff"


class Reads:
    """The questions of one call of `Store`, on a connection in a transaction."""

    def __init__(self, bodies: Bodies, events: EventTables) -> None:
        self._bodies, self._events = bodies, events

    async def load(self, connection: Any, urls: Sequence[str] | None) -> dict[str, Any] | None:
        """See `Store.load`."""
        saved = await connection.fetchval("SELECT value FROM note WHERE key = $1", sql.key_of("engine"))
        if saved is None:
            return None
        hosts = await connection.fetch("SELECT name, spacing, concurrency, held_until FROM host")
        gathered = await all_pages(connection) if urls is None else await some_pages(connection, urls)
        return gathered.loaded(saved, {name: tuple(rule) for name, *rule in hosts})

    async def sample(self, connection: Any, most: int) -> tuple[list[str], NDArray[np.float64]]:
        """See `Store.sample`."""
        parts: list[NDArray[Any]] = []
        await copied(connection, "SELECT id, importance FROM page ORDER BY id", ("id", "importance"), parts.append)
        ids = np.concatenate([part["id"] for part in parts]) if parts else np.empty(0, np.int64)
        weights = np.concatenate([part["importance"] for part in parts]) if parts else np.empty(0)
        drawn = draw(weights.astype(np.float64), most, np.random.default_rng(0))
        chosen = ids[drawn.rows].astype(np.int64).tolist()
        found = await connection.fetch("SELECT url FROM page WHERE id = ANY ($1::bigint[]) ORDER BY id", chosen)
        return [row[0] for row in found], drawn.stands_for

    async def totals(self, connection: Any, importance: float) -> Totals:
        """See `Store.totals`."""
        return Totals(*await connection.fetchrow(sql.TOTALS, importance))

    async def urls(self, connection: Any, prefix: str, most: int | None) -> list[str]:
        """See `Store.urls`."""
        asked = (sql.URLS_FROM, prefix, prefix + _END, most) if prefix else (sql.URLS, most)
        return [row[0] for row in await connection.fetch(*asked)]

    async def signals(self, connection: Any, urls: Sequence[str] | None) -> list[PendingSignal]:
        """See `Store.signals`."""
        if urls is None:
            rows = await connection.fetch(sql.SIGNALS.format(""))
        else:
            rows = await connection.fetch(sql.SIGNALS.format("WHERE key = ANY ($1::bytea[])"), sql.keys_of(urls))
        return [PendingSignal(*row) for row in rows]

    async def listings(self, connection: Any) -> list[StoredListing]:
        """See `Store.listings`."""
        found = await connection.fetch("SELECT url, state FROM listing ORDER BY url")
        return [StoredListing(url, json.loads(state)) for url, state in found]

    async def listing_entries(self, connection: Any, url: str) -> bytes:
        """See `Store.listing_entries`."""
        return bytes(await connection.fetchval("SELECT entries FROM listing WHERE key = $1", sql.key_of(url)) or b"")

    async def leases(self, connection: Any, ids: Sequence[str] | None, after: float) -> list[Lease]:
        """See `Store.leases`."""
        where, given = ("state = $1", HELD) if ids is None else ("id = ANY ($1::text[])", ids)
        return [Lease(*row) for row in await connection.fetch(sql.LEASES.format(where), given, after)]

    async def copies(self, connection: Any, urls: Sequence[str]) -> dict[str, Copy]:
        """See `Store.copies`."""
        return {row[0]: Copy(*row) for row in await connection.fetch(sql.COPIES, sql.keys_of(urls))}

    async def observations(
        self, connection: Any, url: str | None, since: float | None, after: int
    ) -> tuple[list[Outcome], int]:
        """At most MANY observations after one, and the number of the last (0: there are no more)."""
        query, given = sql.observations(url, since, after, MANY)
        found = await connection.fetch(query, *given)
        return [sql.observed(row) for row in found], found[-1][0] if len(found) == MANY else 0

    async def last_observation(self, connection: Any) -> Outcome | None:
        """See `Store.last_observation`."""
        row = await connection.fetchrow(sql.LAST_OBSERVATION)
        return None if row is None else sql.observed(row)

    async def failing(self, connection: Any, since: float) -> list[Outcome]:
        """See `Store.failing`."""
        return [sql.observed(row) for row in await connection.fetch(sql.FAILING, since)]

    async def recent(self, connection: Any, since: float) -> dict[str, int]:
        """See `Store.recent`."""
        row = await connection.fetchrow(sql.RECENT, since)
        return dict(zip(("crawls", "changes", "failures", "flapping", "rolled_off"), row, strict=True))

    async def requests(self, connection: Any, since: float, recently: float) -> list[tuple[str, int, int]]:
        """See `Store.requests`."""
        return [tuple(row) for row in await connection.fetch(sql.REQUESTS, recently, since)]

    async def versions(self, connection: Any, url: str) -> list[Version]:
        """See `Store.versions`."""
        return [Version(url, *row) for row in await connection.fetch(sql.VERSIONS, sql.key_of(url))]

    async def body(self, connection: Any, key: bytes) -> bytes | None:
        """See `Store.body`."""
        return await self._bodies.read(connection, key)

    async def notes(self, connection: Any, prefix: str) -> dict[str, Any]:
        """See `Store.notes`."""
        found = await connection.fetch(sql.NOTES, prefix, prefix + _END)
        return {name: json.loads(text) for name, text in found}

    async def commands(self, connection: Any) -> list[tuple[int, dict[str, Any]]]:
        """See `Store.commands`."""
        found = await connection.fetch("SELECT id, value FROM command ORDER BY id")
        return [(number, json.loads(text)) for number, text in found]

    async def size(self, connection: Any) -> int:
        """Bytes of the tables and their indexes."""
        asked = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relkind = 'r' AND relnamespace = "
        return int(await connection.fetchval(asked + "current_schema()::regnamespace"))

    async def counts(self, connection: Any) -> dict[str, int]:
        """See `Store.counts`."""
        tables = {"pages": "page", "copies": "copy", "observations": "observation", "bodies": "body"}
        return {name: await connection.fetchval(f"SELECT count(*) FROM {table}") for name, table in tables.items()}

    async def check(self, connection: Any) -> list[str]:
        """See `Store.check`: bodies that no version has, totals of events."""
        loose = await connection.fetchval(sql.LOOSE_BODIES)
        problems = [f"{loose} bodies belong to no page"] if loose else []
        return problems + await self._events.check(connection)
