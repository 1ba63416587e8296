"""One step of the controller against the tables of a cluster: read what is known, write the shares that follow."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict, replace
from typing import Any

from recrawl.cluster.ownership.leases import Held, check
from recrawl.cluster.shares import share_tables
from recrawl.cluster.shares.controller import Round, Seen, ShardPlan, cluster_rate, control
from recrawl.cluster.tables import Cluster
from recrawl.crawl.polite.hours import Hours

_CHANGED = 0.1  # of a shard's pages
EVERY = 300.0  # seconds between two rounds of shares


class Controller:
    """Runs in the keeper of the worker that has the controller's lease."""

    def __init__(self, cluster: Cluster, hours: Hours | None = None) -> None:
        self._cluster, self.hours = cluster, hours

    async def step(self, connection: Any, lease: Held) -> None:
        """Read leases, plans and shares, and write the shares that change; nothing while shards are being taken."""
        async with connection.transaction():
            lock = "SELECT pg_try_advisory_xact_lock($1)"
            if not await connection.fetchval(lock, self._cluster.share_lock):
                return
            await check(connection, lease)
            budget, text = await connection.fetchrow("SELECT budget, round FROM cluster")
            said = await share_tables.read_published(connection)
            plans = {shard: plan_said(one) for shard, one in said.items()}
            owners = await share_tables.read_owners(connection, self._cluster.shards)
            shares = await share_tables.read_shares(connection)
            last, pages = _round(text), {shard: one.pages for shard, one in said.items()}
            rate = cluster_rate(budget, plans.values(), self.hours)[0]
            counted = json.loads(text).get("pages", {})
            if any(differs(counted.get(str(shard), 0), n) for shard, n in pages.items()):
                last = replace(last, at=-math.inf)
            seen = Seen(owners, plans, rate, shares, last)
            found, made = control(seen, time.time(), every=EVERY)
            if changed := {shard: share for shard, share in found.items() if share != shares.get(shard)}:
                await share_tables.write_shares(connection, changed)
            if made.at != last.at:
                await connection.execute("UPDATE cluster SET round = $1", json.dumps({**asdict(made), "pages": pages}))


def differs(before: int, now: int) -> bool:
    """Whether the number of pages of a shard has changed so much that shares are to follow."""
    return abs(now - before) > _CHANGED * max(before, now)


def plan_said(said: share_tables.Published) -> ShardPlan:
    """The plan that a shard has published."""
    return ShardPlan(said.pages) if said.plan is None else ShardPlan.of(said.plan)


def _round(text: str) -> Round:
    saved = json.loads(text)
    return Round(saved["at"], saved["budget"], tuple(saved["shards"])) if saved else Round()
