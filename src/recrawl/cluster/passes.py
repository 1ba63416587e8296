"""Passes: every page of all shards once, by workers of ``run --once``.

A pass has a number. A worker joins the pass that others are making, or begins the next. Each shard has a row with the
last observation before the pass: pages that were observed after it are done, so that a shard which another worker takes
over goes on where it was. Rows are written by the owners of their shards, in transactions that check the lease.
"""

from __future__ import annotations

import os
import socket
from typing import Any

from recrawl.cluster import tables
from recrawl.cluster.tables import Cluster
from recrawl.errors import StoreInUseError
from recrawl.store.postgres.failures import PROBLEMS, failure
from recrawl.store.postgres.session import Access

_OTHERS = (
    "SELECT name, pass FROM worker WHERE name <> $1 AND seen > clock_timestamp() - make_interval(secs => $2) "
    "ORDER BY name"
)
_ENTER = (
    "INSERT INTO worker (name, host, pid, began, seen, pass) "
    "VALUES ($1, $2, $3, clock_timestamp(), clock_timestamp(), $4) ON CONFLICT (name) DO UPDATE SET "
    "host = excluded.host, pid = excluded.pid, began = excluded.began, seen = excluded.seen, pass = excluded.pass, "
    "draining = false, reloaded = 0, answer = NULL"
)
LEFT = (
    "SELECT count(*) FROM generate_series(0, $1 - 1) AS shard WHERE NOT EXISTS "
    "(SELECT 1 FROM shard_pass AS done WHERE done.shard = shard.shard AND done.number = $2 AND ended)"
)
_BEGIN = (
    "INSERT INTO {schema}.shard_pass AS known (shard, number, after, ended) "
    "SELECT $1, $2, coalesce((SELECT max(id) FROM observation), 0), false "
    "ON CONFLICT (shard) DO UPDATE SET number = excluded.number, after = excluded.after, ended = false "
    "WHERE known.number < excluded.number"
)
_DONE = (
    "SELECT DISTINCT url FROM observation JOIN page ON page.id = observation.page "
    "WHERE observation.id > (SELECT after FROM {schema}.shard_pass WHERE shard = $1 AND number = $2)"
)
_END = "UPDATE {schema}.shard_pass SET ended = true WHERE shard = $1 AND number = $2"


async def enter(cluster: Cluster, name: str, *, once: bool) -> int | None:
    """Note a worker, and the pass that it makes with others, or None; StoreInUseError beside workers of another kind.

    One worker enters at a time, so that two of different kinds see each other.
    """
    connection = await tables.connect(cluster.address)
    try:
        async with connection.transaction():
            number: int = await connection.fetchval("SELECT pass FROM cluster FOR UPDATE")
            others = {row["name"]: row["pass"] for row in await connection.fetch(_OTHERS, name, cluster.seconds)}
            _check(cluster, others, once=once)
            if once and number not in others.values():
                number = await connection.fetchval("UPDATE cluster SET pass = pass + 1 RETURNING pass")
            mine = number if once else None
            await connection.execute(_ENTER, name, socket.gethostname(), os.getpid(), mine)
            return mine
    except PROBLEMS as problem:
        raise failure(cluster.address.name, problem) from None
    finally:
        await connection.close()


def _check(cluster: Cluster, others: dict[str, int | None], *, once: bool) -> None:
    endless = [name for name, number in others.items() if number is None]
    if once and endless:
        raise StoreInUseError(
            f"{cluster.address.name}: {', '.join(endless)} crawl without end: end them first, or leave out --once"
        )
    if not once and len(endless) < len(others):
        raise StoreInUseError(f"{cluster.address.name}: a pass by run --once is made: start when it has ended")


class ShardPass:
    """A pass over one shard, on the connections of its owner."""

    def __init__(self, access: Access, schema: str, shard: int, number: int) -> None:
        self._access, self._schema, self._key = access, schema, (shard, number)

    async def begin(self) -> set[str]:
        """Note that the pass has begun here, if it had not; the pages that are done."""
        await self._write(_BEGIN)

        async def read(connection: Any) -> set[str]:
            return {row["url"] for row in await connection.fetch(_DONE.format(schema=self._schema), *self._key)}

        return await self._access.reader.call(read)

    async def end(self) -> None:
        """Note that every page of the shard is done."""
        await self._write(_END)

    async def _write(self, statement: str) -> None:
        async def write(connection: Any) -> None:
            await self._access.owner.begin(connection)
            await connection.execute(statement.format(schema=self._schema), *self._key)

        await self._access.writer.call(write)
