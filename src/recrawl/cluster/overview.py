"""What is known of a cluster as a whole, and the orders that can be given to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from recrawl.cluster import tables
from recrawl.cluster.passes import LEFT
from recrawl.cluster.shares.control_round import plan_said
from recrawl.cluster.shares.controller import cluster_rate, split_shares
from recrawl.cluster.shares.share_tables import read_published
from recrawl.cluster.tables import Cluster
from recrawl.crawl.polite.hours import Hours
from recrawl.errors import ParameterError
from recrawl.store.postgres.failures import PROBLEMS, failure

_SHARDS = (
    "SELECT shard.shard, CASE WHEN until > clock_timestamp() THEN worker END AS worker, "
    "coalesce(held.epoch, 0) AS epoch, pages, rate, reserved, "
    "extract(epoch FROM until - clock_timestamp())::float8 AS lease_left, "
    "extract(epoch FROM clock_timestamp() - published.at)::float8 AS published_ago "
    "FROM generate_series(0, $1 - 1) AS shard "
    "LEFT JOIN shard_lease AS held ON held.shard = shard.shard LEFT JOIN share ON share.shard = shard.shard "
    "LEFT JOIN published ON published.shard = shard.shard ORDER BY 1"
)
_WORKERS = (
    "SELECT name, host, pid, draining, pass, extract(epoch FROM clock_timestamp() - seen)::float8 AS seen_ago "
    "FROM worker ORDER BY name"
)
_CONTROLLER = "SELECT worker FROM shard_lease WHERE shard = -1 AND until > clock_timestamp()"


@asynccontextmanager
async def connected(cluster: Cluster) -> AsyncIterator[Any]:
    """A connection to the schema of a cluster."""
    connection = await tables.connect(cluster.address)
    try:
        yield connection
    except PROBLEMS as problem:
        raise failure(cluster.address.name, problem) from None
    finally:
        await connection.close()


async def overview(cluster: Cluster) -> dict[str, Any]:
    """Shards with their owners and shares, workers, and the budget as they are now."""
    async with connected(cluster) as connection:
        return await read_overview(connection, cluster)


async def read_overview(connection: Any, cluster: Cluster) -> dict[str, Any]:
    """The same on a connection to the schema of the cluster."""
    await tables.check_version(connection, cluster.address)
    shards = [dict(row) for row in await connection.fetch(_SHARDS, cluster.shards)]
    workers = [dict(row) for row in await connection.fetch(_WORKERS)]
    controller = await connection.fetchval(_CONTROLLER)
    cluster = replace(cluster, budget=await connection.fetchval("SELECT budget FROM cluster"))
    for worker in workers:
        mine = [one for one in shards if one["worker"] == worker["name"]]
        worker |= {"shards": len(mine), "rate": sum(one["rate"] or 0.0 for one in mine)}
        worker["live"] = worker["seen_ago"] < cluster.seconds
    number = max((worker["pass"] or 0 for worker in workers if worker["live"]), default=0)
    left = await connection.fetchval(LEFT, cluster.shards, number) if number else None
    return {
        "database": cluster.address.name,
        "budget": cluster.budget,
        "lease": cluster.seconds,
        "controller": controller,
        "pass": {"number": number, "left": left} if number else None,
        "rate": sum(one["rate"] or 0.0 for one in shards),
        "reserved": sum(one["reserved"] or 0.0 for one in shards),
        "workers": workers,
        "shards": shards,
    }


async def shares_at(cluster: Cluster, budget: str, hours: Hours | None = None) -> dict[int, float]:
    """The share of each shard if the budget were another, from the plans that shards published."""
    async with connected(cluster) as connection:
        said = await read_published(connection)
    plans = {shard: plan_said(one) for shard, one in said.items()}
    return split_shares(plans, cluster_rate(budget, plans.values(), hours)[0]) if plans else {}


async def set_budget(cluster: Cluster, budget: str) -> None:
    """Set the budget of all shards together, in words."""
    async with connected(cluster) as connection:
        await connection.execute("UPDATE cluster SET budget = $1", budget)


async def drain(cluster: Cluster, worker: str) -> None:
    """Let a worker give back its shards and end; ParameterError if there is none of that name."""
    async with connected(cluster) as connection:
        done = await connection.fetchval("UPDATE worker SET draining = true WHERE name = $1 RETURNING name", worker)
        if done is None:
            known = [row["name"] for row in await connection.fetch(_WORKERS)]
            raise ParameterError(f"worker {worker!r} is not one of {', '.join(known) or 'none'}")
