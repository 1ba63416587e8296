"""Keeper: the thread of a worker that renews its leases, takes shards and gives them back.

It has a connection and an event loop of its own, so that a crawl that computes for seconds loses no lease. One round
every third of a lease: say that the worker lives, renew, take what is free, read the shares of the budget. The worker's
event loop gets each round (`Round`) and uses it; what it asks for is in `Wanted`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from recrawl.cluster import tables
from recrawl.cluster.notices.book import READ, Position, positions_of
from recrawl.cluster.ownership.leases import Held, ShardLeases
from recrawl.cluster.passes import LEFT
from recrawl.cluster.shares import share_tables
from recrawl.cluster.shares.share_tables import Published
from recrawl.cluster.shares.shares import Share
from recrawl.cluster.tables import Cluster
from recrawl.errors import StoreError
from recrawl.logs import event
from recrawl.store.postgres.failures import PROBLEMS

log = logging.getLogger(__name__)

CONTROLLER, NOTICES = -1, -2  # the numbers of the leases of the controller and of notifications
NOTICES_EVERY = 15.0  # seconds between two looks at how far notifications are
PUBLISH_EVERY = 300.0  # seconds between two plans and sums of a shard
_ROUNDS = 3  # in one lease
_SEEN = (
    "INSERT INTO worker AS known (name, host, pid, began, seen, pass) "
    "VALUES ($1, $2, $3, clock_timestamp(), clock_timestamp(), $4) "
    "ON CONFLICT (name) DO UPDATE SET seen = excluded.seen"
)
_LIVE = (
    "SELECT name, draining FROM worker WHERE seen > clock_timestamp() - make_interval(secs => $1) OR name = $2 "
    "ORDER BY name"
)
_FREE = (
    "SELECT shard FROM generate_series(0, $1 - 1) AS shard "
    "WHERE NOT EXISTS (SELECT 1 FROM shard_lease AS held WHERE held.shard = shard.shard AND until > clock_timestamp()) "
    "AND NOT EXISTS (SELECT 1 FROM shard_pass AS done WHERE done.shard = shard.shard AND number = $2 AND ended) "
    "ORDER BY random()"
)
_WHOLE = "SELECT budget, (SELECT coalesce(sum(pages), 0)::bigint FROM published), reload FROM cluster"
_ANSWER = "UPDATE worker SET reloaded = $2, answer = $3 WHERE name = $1"
_OLD = "DELETE FROM worker WHERE seen < clock_timestamp() - interval '1 day'"

Control = Callable[[Any, Held], Awaitable[None]]


@dataclass(frozen=True)
class Round:
    """What a round found: the shards that the worker has, with their shares, and how many are too many."""

    held: Mapping[int, Held]
    shares: Mapping[int, Share]
    lost: frozenset[int] = frozenset()  # shards that others have now
    excess: int = 0
    draining: bool = False
    budget: str = ""  # of all shards together, in words
    pages: int = 0  # of all shards together
    left: int = 0  # shards that the pass has not crawled yet
    reload: int = 0  # the number of the last order to read the settings again
    notices: Held | None = None  # the lease of notifications, if the worker has it
    notified: Mapping[str, Position] | None = None  # how far notifications are; from time to time
    sums: Mapping[int, Mapping[str, Any]] | None = None  # what shards published of their pages; from time to time


@dataclass
class Wanted:
    """What the worker asks of its keeper; the worker's event loop writes, the keeper reads."""

    release: dict[int, int] = field(default_factory=dict)  # shards that are closed, with the epochs of their leases
    publish: dict[int, Published] = field(default_factory=dict)
    acknowledge: dict[int, int] = field(default_factory=dict)  # numbers of the shares that are in use
    answer: tuple[int, str] | None = None  # to an order to read the settings again: its number, and JSON
    notices: bool = False  # the lease of notifications
    stopping: bool = False


class Keeper:
    """Leases of a worker. ``on_round`` is called in the event loop in which the keeper was made."""

    def __init__(
        self, cluster: Cluster, name: str, on_round: Callable[[Round], None], control: Control | None = None
    ) -> None:
        self.cluster, self.name, self.wanted = cluster, name, Wanted()
        self.pass_number: int | None = None  # of the pass that the worker makes; None: it crawls without end
        self._left = cluster.shards
        self._on_round, self._control = on_round, control
        self._leases = ShardLeases(name, time.monotonic, seconds=cluster.seconds)
        self._held: dict[int, Held] = {}
        self._controller: Held | None = None
        self._notices: Held | None = None
        self._notified_at = -math.inf
        self._sums_at = -math.inf  # when sums are read next
        self._connection: Any = None
        self._loop = asyncio.get_running_loop()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="recrawl-leases", daemon=True)

    def start(self) -> None:
        """Begin with the first round."""
        self._thread.start()

    async def end(self) -> None:
        """Give everything back; the shards are closed."""
        self._ended.set()
        while self._thread.is_alive():
            await asyncio.sleep(0.01)

    # --- in the thread -----------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            found = await self._round(self._keep)
            if found is not None:
                self._loop.call_soon_threadsafe(self._on_round, found)
            rest = self.cluster.seconds / _ROUNDS - (time.monotonic() - began)
            await asyncio.to_thread(self._ended.wait, max(rest, 0.01))
        await self._round(self._leave)
        if self._connection is not None:
            self._connection.terminate()

    async def _round(self, work: Callable[[Any], Awaitable[Round]]) -> Round | None:
        """One round; a database that is away is asked again in the next."""
        try:
            async with asyncio.timeout(self.cluster.seconds):
                return await work(await self._connected())
        except (StoreError, *PROBLEMS) as problem:
            if self._connection is not None:
                self._connection.terminate()
            event(log, logging.WARNING, "database.away", worker=self.name, error=" ".join(str(problem).split()))
            return None

    async def _connected(self) -> Any:
        if self._connection is None or self._connection.is_closed():
            self._connection = await tables.connect(self.cluster.address, command_timeout=self.cluster.seconds)
            await self._leases.prepare(self._connection)
            await self._connection.execute(_OLD)
        return self._connection

    async def _keep(self, connection: Any) -> Round:
        await connection.execute(_SEEN, self.name, socket.gethostname(), os.getpid(), self.pass_number)
        if self.pass_number is not None:
            self._left = await connection.fetchval(LEFT, self.cluster.shards, self.pass_number)
        live = await connection.fetch(_LIVE, self.cluster.seconds, self.name)
        draining = any(drains for name, drains in live if name == self.name)
        renewed = await self._leases.renew_all(connection, self._held.values())
        over = self._held.keys() - renewed.keys()
        self._held |= renewed
        await share_tables.acknowledge(connection, dict(self.wanted.acknowledge))
        await self._release(connection)
        target = 0 if self.wanted.stopping else self._target([name for name, drains in live if not drains])
        taken, shares = await self._take(connection, over & self._held.keys(), target)
        lost = frozenset(over - taken)
        for shard in lost:
            self._held.pop(shard, None)
        await self._publish(connection)
        if self.wanted.answer is not None:
            await connection.execute(_ANSWER, self.name, *self.wanted.answer)
        await self._controlling(connection)
        await self._noticing(connection)
        excess = max(len(self._held) - target, 0)
        budget, pages, order = await connection.fetchrow(_WHOLE)
        return Round(
            dict(self._held),
            shares,
            lost,
            excess,
            draining,
            budget,
            pages,
            left=self._left,
            reload=order,
            notices=self._notices,
            notified=await self._notified(connection),
            sums=await self._sums(connection),
        )

    def _target(self, live: list[str]) -> int:
        """How many shards this worker should have: all workers together have each shard once.

        In a pass each may have its share rounded up: a shard does not move because another has ended.
        """
        if self.name not in live:
            return 0
        if self.pass_number is not None:
            return -(-self._left // len(live))
        share, rest = divmod(self.cluster.shards, len(live))
        return share + (live.index(self.name) < rest)

    async def _release(self, connection: Any) -> None:
        for shard, epoch in list(self.wanted.release.items()):
            held = self._held.get(shard)
            if held is not None and held.epoch == epoch:
                await self._leases.release(connection, held)
                del self._held[shard]
            self.wanted.release.pop(shard, None)

    async def _take(self, connection: Any, over: set[int], target: int) -> tuple[set[int], dict[int, Share]]:
        """Take leases that ran out again, then free shards; which, and the shares of all.

        One transaction with the shares: a controller publishes shares before all of it, or after.
        """
        taken: dict[int, Held] = {}
        if not over and len(self._held) >= target:
            return set(), await share_tables.read_shares(connection)
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock_shared($1)", self.cluster.share_lock)
            for shard in over:
                if (again := await self._retaken(connection, self._held[shard])) is not None:
                    taken[shard] = again
            most = target - (len(self._held) - len(over) + len(taken))
            free = [shard for (shard,) in await connection.fetch(_FREE, self.cluster.shards, self.pass_number)]
            for shard in [shard for shard in free if shard not in self._held][: max(most, 0)]:
                if (held := await self._leases.take(connection, shard)) is not None:
                    taken[shard] = held
            shares = await share_tables.read_shares(connection)
        self._held |= taken  # after the commit: an epoch that was undone may become another worker's
        return set(taken), shares

    async def _retaken(self, connection: Any, before: Held) -> Held | None:
        """A lease that ran out, taken again if nobody had the shard meanwhile: only then does work go on."""
        again = await self._leases.take(connection, before.shard)
        if again is None or again.epoch == before.epoch + 1:
            return again
        await self._leases.release(connection, again)
        return None

    async def _publish(self, connection: Any) -> None:
        for shard in list(self.wanted.publish):
            said, held = self.wanted.publish.pop(shard), self._held.get(shard)
            if held is not None:
                await share_tables.publish(connection, held, said)

    async def _sums(self, connection: Any) -> dict[int, Mapping[str, Any]] | None:
        """What shards published of their pages, if it is time to read it."""
        if time.monotonic() < self._sums_at:
            return None
        found = await share_tables.read_published(connection)
        self._sums_at = time.monotonic() + PUBLISH_EVERY
        return {shard: one.sums for shard, one in found.items() if one.sums is not None}

    async def _controlling(self, connection: Any) -> None:
        """Hold the controller's lease if nobody else does, and let it work."""
        if self._control is None or self.wanted.stopping:
            return
        if self._controller is not None:
            self._controller = (await self._leases.renew_all(connection, [self._controller])).get(CONTROLLER)
        if self._controller is None:
            self._controller = await self._leases.take(connection, CONTROLLER)
        if self._controller is not None:
            await self._control(connection, self._controller)

    async def _noticing(self, connection: Any) -> None:
        """Hold the lease of notifications if it is wanted and nobody else has it; a worker that ends keeps it."""
        if self._notices is not None:
            self._notices = (await self._leases.renew_all(connection, [self._notices])).get(NOTICES)
        if self._notices is None and self.wanted.notices and not self.wanted.stopping:
            self._notices = await self._leases.take(connection, NOTICES)
        if self._notices is not None and not self.wanted.notices:
            await self._leases.release(connection, self._notices)
            self._notices = None

    async def _notified(self, connection: Any) -> dict[str, Position] | None:
        if time.monotonic() < self._notified_at:
            return None
        self._notified_at = time.monotonic() + NOTICES_EVERY
        return positions_of(await connection.fetch(READ))

    async def _leave(self, connection: Any) -> Round:
        """The last round: give back everything."""
        for held in self._held.values():
            await self._leases.release(connection, held)
        for own in (self._controller, self._notices):
            if own is not None:
                await self._leases.release(connection, own)
        await connection.execute("DELETE FROM worker WHERE name = $1", self.name)
        return Round({}, {})
