"""Shares of the budget and what shards say of themselves, in the tables of a cluster (rules: see `shares`)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recrawl.cluster.ownership.leases import Held, check
from recrawl.cluster.shares.shares import Owner, Share

_SHARES = "SELECT shard, number, rate, reserved, target, epoch FROM share"
_OWNERS = (
    "SELECT shard, epoch, extract(epoch FROM clock_timestamp() - until)::float8 AS idle, "
    "coalesce(share.acknowledged, 0) FROM shard_lease LEFT JOIN share USING (shard) WHERE shard >= 0"
).replace("shard, epoch,", "shard, shard_lease.epoch,")
_WRITE = (
    "INSERT INTO share (shard, number, rate, reserved, target, epoch) SELECT * FROM "
    "unnest($1::int[], $2::bigint[], $3::float8[], $4::float8[], $5::float8[], $6::bigint[]) "
    "ON CONFLICT (shard) DO UPDATE SET number = excluded.number, rate = excluded.rate, reserved = excluded.reserved, "
    "target = excluded.target, epoch = excluded.epoch"
)
_ACKNOWLEDGE = (
    "UPDATE share SET acknowledged = mine.number FROM unnest($1::int[], $2::bigint[]) AS mine (shard, number) "
    "WHERE share.shard = mine.shard AND acknowledged <> mine.number"
)
_PUBLISH = (
    "INSERT INTO published (shard, at, pages, plan, sums) VALUES ($1, clock_timestamp(), $2, $3, $4) "
    "ON CONFLICT (shard) DO UPDATE SET at = excluded.at, pages = excluded.pages, plan = excluded.plan, "
    "sums = excluded.sums"
)


@dataclass(frozen=True)
class Published:
    """What the owner of a shard says of it; plan and sums are as JSON has them."""

    pages: int
    plan: Mapping[str, Any] | None = None
    sums: Mapping[str, Any] | None = None


async def read_shares(connection: Any) -> dict[int, Share]:
    """The shares, by shard."""
    return {shard: Share(*values) for shard, *values in await connection.fetch(_SHARES)}


async def read_owners(connection: Any, n_shards: int) -> dict[int, Owner]:
    """What is known of the owners of all shards."""
    found = {shard: Owner(0, math.inf) for shard in range(n_shards)}
    for shard, epoch, idle, acknowledged in await connection.fetch(_OWNERS):
        found[shard] = Owner(epoch, max(idle, 0.0), acknowledged)
    return found


async def write_shares(connection: Any, shares: Mapping[int, Share]) -> None:
    """Write shares."""
    rows = [(shard, one.number, one.rate, one.reserved, one.target, one.epoch) for shard, one in shares.items()]
    await connection.execute(_WRITE, *map(list, zip(*rows, strict=True)))


async def acknowledge(connection: Any, numbers: Mapping[int, int]) -> None:
    """Say which shares the owners of shards have taken over."""
    if numbers:
        await connection.execute(_ACKNOWLEDGE, list(numbers), list(numbers.values()))


async def publish(connection: Any, held: Held, said: Published) -> None:
    """Say what is known of a shard."""
    plan, sums = (None if one is None else json.dumps(one) for one in (said.plan, said.sums))
    async with connection.transaction():
        await check(connection, held)
        await connection.execute(_PUBLISH, held.shard, said.pages, plan, sums)


async def read_published(connection: Any) -> dict[int, Published]:
    """What was said of shards last."""
    rows = await connection.fetch("SELECT shard, pages, plan, sums FROM published")
    return {
        shard: Published(pages, *(None if text is None else json.loads(text) for text in texts))
        for shard, pages, *texts in rows
    }
