"""Tables of a cluster, in the schema that its address names: shards, leases, workers, shares of the budget.

Each shard is a schema of its own beside it (`shard_address`) with all tables of `PostgresStore`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import asyncpg

from recrawl.cluster.ownership.leases import SECONDS
from recrawl.errors import ParameterError, StoreError
from recrawl.store.postgres.address import Address
from recrawl.store.postgres.failures import PROBLEMS, failure
from recrawl.store.postgres.migrate import CLUSTER, migrate
from recrawl.store.sqlite.migrate import newer_schema

MOST_SHARDS = 4096
N_SHARDS = 64  # unless it is given
WAIT = 10.0  # seconds for a connection
_TABLES = f"""
CREATE TABLE {CLUSTER} (
    version integer NOT NULL,
    shards integer NOT NULL,                    -- fixed: hosts do not move between shards
    seconds double precision NOT NULL,          -- of a lease
    budget text NOT NULL,                       -- of all shards together, in words
    round text NOT NULL DEFAULT '{{}}'          -- when shares were last computed, and for what; JSON
);
CREATE TABLE shard_lease (                      -- -1: the controller's; -2: of notifications
    shard integer PRIMARY KEY,
    epoch bigint NOT NULL,
    worker text NOT NULL,
    until timestamptz NOT NULL
);
CREATE TABLE worker (
    name text PRIMARY KEY,
    host text NOT NULL,
    pid integer NOT NULL,
    began timestamptz NOT NULL,
    seen timestamptz NOT NULL,
    draining boolean NOT NULL DEFAULT false
);
-- Requests per second of each shard (see `shares`); `acknowledged` is the number that its owner has taken over.
CREATE TABLE share (
    shard integer PRIMARY KEY,
    number bigint NOT NULL,
    rate double precision NOT NULL,
    reserved double precision NOT NULL,
    target double precision NOT NULL,
    epoch bigint NOT NULL,
    acknowledged bigint NOT NULL DEFAULT 0
);
-- What the owner of a shard says of it: number of pages, plan, sums that all shards learn from. As JSON.
CREATE TABLE published (
    shard integer PRIMARY KEY,
    at timestamptz NOT NULL,
    pages bigint NOT NULL,
    plan text,
    sums text
);
"""
_RELOADS = f"""
ALTER TABLE {CLUSTER} ADD COLUMN reload bigint NOT NULL DEFAULT 0;  -- the number of the last order to reload
ALTER TABLE worker ADD COLUMN reloaded bigint NOT NULL DEFAULT 0, ADD COLUMN answer text;  -- what a worker did; JSON
"""
_PASSES = f"""
ALTER TABLE {CLUSTER} ADD COLUMN pass bigint NOT NULL DEFAULT 0;  -- the number of the last pass over all pages
ALTER TABLE worker ADD COLUMN pass bigint;                        -- that it makes; NULL: it crawls without end
CREATE TABLE shard_pass (
    shard integer PRIMARY KEY,
    number bigint NOT NULL,
    after bigint NOT NULL,                      -- the last observation of the shard before the pass
    ended boolean NOT NULL
);
"""
_NOTICES = """
CREATE TABLE notice (name text PRIMARY KEY, state text NOT NULL);  -- how far a notification is; JSON
"""
_STEPS = (_TABLES, _RELOADS, _PASSES, _NOTICES)  # the number of steps is the version


@dataclass(frozen=True)
class Cluster:
    """A cluster as it was created, and its budget as it is now."""

    address: Address
    shards: int
    seconds: float  # of a lease
    budget: str

    def shard_address(self, shard: int) -> Address:
        """The address of a shard's schema."""
        return replace(self.address, schema=shard_schema(self.address.schema, shard))

    def shard_database(self, shard: int) -> str:
        """The same as the name of a database."""
        place = self.shard_address(shard)
        return f"{place.dsn}{'&' if '?' in place.dsn else '?'}schema={place.schema}"

    @property
    def share_lock(self) -> int:
        """The advisory lock of shares: shared by those who take shards, exclusive for the controller."""
        return self.address.lock_key("shares")


def shard_schema(schema: str, shard: int) -> str:
    """The name of a shard's schema.

    >>> shard_schema("news", 7)
    'news_s07'
    """
    return f"{schema}_s{shard:02d}"


async def connect(address: Address, **options: Any) -> Any:
    """A connection to the schema of a cluster."""
    settings = {"search_path": address.schema, "application_name": "recrawl", "jit": "off"}
    try:
        return await asyncpg.connect(address.dsn, timeout=WAIT, server_settings=settings, **options)
    except PROBLEMS as problem:
        raise failure(address.name, problem) from None


async def create(address: Address, shards: int, budget: str, *, seconds: float = SECONDS) -> Cluster:
    """Make a cluster with empty shards. What an attempt that was ended has made already is used."""
    if not 1 <= shards <= MOST_SHARDS:
        raise ParameterError(f"shards is {shards}: must be from 1 to {MOST_SHARDS}")
    if len(shard_schema(address.schema, MOST_SHARDS)) > 63:
        raise ParameterError(f"{address.name}: schema {address.schema} is too long a name for a cluster")
    connection = await connect(address)
    try:
        if await _read(connection, address) is not None:
            raise StoreError(f"{address.name}: is a cluster already")
        used = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace($1)::oid"
        if await connection.fetchval(used, address.schema):
            raise StoreError(f"{address.name}: schema {address.schema} has tables already; a cluster needs a new one")
        cluster = Cluster(address, shards, seconds, budget)
        for shard in range(shards):
            place = cluster.shard_address(shard)
            await connection.execute(f"SET search_path = {place.schema}")
            await migrate(connection, place)
        async with connection.transaction():
            await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {address.schema}")
            await connection.execute(f"SET LOCAL search_path = {address.schema}")
            for step in _STEPS:
                await connection.execute(step)
            add = f"INSERT INTO {CLUSTER} (version, shards, seconds, budget) VALUES ($1, $2, $3, $4)"
            await connection.execute(add, len(_STEPS), shards, seconds, budget)
        return cluster
    except PROBLEMS as problem:
        raise failure(address.name, problem) from None
    finally:
        await connection.close()


async def read(address: Address) -> Cluster | None:
    """The cluster at an address; None if there is none."""
    connection = await connect(address)
    try:
        return await _read(connection, address)
    except PROBLEMS as problem:
        raise failure(address.name, problem) from None
    finally:
        await connection.close()


async def _read(connection: Any, address: Address) -> Cluster | None:
    if await connection.fetchval("SELECT to_regclass($1)", f"{address.schema}.{CLUSTER}") is None:
        return None
    row = await connection.fetchrow(f"SELECT shards, seconds, budget FROM {address.schema}.{CLUSTER}")
    return Cluster(address, *row)


async def check_version(connection: Any, address: Address) -> None:
    """Raise StoreError unless the tables of a cluster are of this version."""
    at = await connection.fetchval(f"SELECT version FROM {CLUSTER}")
    if at > len(_STEPS):
        raise newer_schema(address.name, at, len(_STEPS))
    if at < len(_STEPS):
        raise StoreError(f"{address.name}: its tables are version {at}, not {len(_STEPS)}; recrawl run brings them up")


async def bring_up_to_date(cluster: Cluster) -> None:
    """Apply the migrations that the cluster and the schemas of shards lack; one process at a time."""
    connection = await connect(cluster.address)
    try:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock($1)", cluster.address.lock_key("migrate"))
            for shard in range(cluster.shards):
                place = cluster.shard_address(shard)
                await connection.execute(f"SET LOCAL search_path = {place.schema}")
                await migrate(connection, place, create=False)
            await connection.execute(f"SET LOCAL search_path = {cluster.address.schema}")
            at = await connection.fetchval(f"SELECT version FROM {CLUSTER}")
            if at > len(_STEPS):
                raise newer_schema(cluster.address.name, at, len(_STEPS))
            for step in _STEPS[at:]:
                await connection.execute(step)
            await connection.execute(f"UPDATE {CLUSTER} SET version = $1 WHERE version < $1", len(_STEPS))
    except PROBLEMS as problem:
        raise failure(cluster.address.name, problem) from None
    finally:
        await connection.close()
