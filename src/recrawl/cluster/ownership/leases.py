"""Leases of shards in PostgreSQL: a shard has at most one owner, by the server's clock, and each owner an epoch.

A lease is taken for some seconds and renewed. It is taken from an owner only when its time is over, so that the next
owner never works beside the last. Every transaction of an owner checks its epoch (`check`): a worker that was stopped
and goes on later, or that was cut off, writes nothing any more. Before a request, which no database can hold back, a
worker looks at its monotonic clock (`Held.left`): the time counts from before the lease was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from recrawl.errors import StoreInUseError

SECONDS = 5.0  # of a lease
MARGIN = 1.0  # seconds that a lease must have left when a request starts

_FOR = "clock_timestamp() + make_interval(secs => {})"
_TAKE = (
    "INSERT INTO shard_lease AS held (shard, epoch, worker, until) VALUES ($1, 1, $2, " + _FOR.format("$3") + ") "
    "ON CONFLICT (shard) DO UPDATE SET epoch = held.epoch + 1, worker = excluded.worker, until = excluded.until "
    "WHERE held.until <= clock_timestamp() RETURNING epoch"
)
_RENEW = (
    "UPDATE {}shard_lease SET until = " + _FOR.format("$3") + " "
    "WHERE shard = $1 AND epoch = $2 AND until > clock_timestamp() RETURNING epoch"
)
_RELEASE = (
    "UPDATE shard_lease SET until = clock_timestamp() WHERE shard = $1 AND epoch = $2 AND until > clock_timestamp()"
)
_RENEW_ALL = (
    "UPDATE shard_lease AS held SET until = " + _FOR.format("$3") + " FROM unnest($1::int[], $2::bigint[]) "
    "AS mine (shard, epoch) WHERE held.shard = mine.shard AND held.epoch = mine.epoch "
    "AND held.until > clock_timestamp() RETURNING held.shard"
)
_CHECK = "SELECT epoch FROM {}shard_lease WHERE shard = $1 AND epoch = $2 AND until > clock_timestamp() FOR SHARE"


class LeaseLostError(StoreInUseError):
    """A shard's lease is over, or another worker has the shard."""


@dataclass(frozen=True, slots=True)
class Held:
    """A shard that a worker has: its epoch, and until when by the worker's monotonic clock."""

    shard: int
    worker: str
    epoch: int
    until: float

    def left(self, now: float) -> float:
        """Seconds of the lease that are left for certain."""
        return self.until - now

    def may_request(self, now: float) -> bool:
        """Whether a request may start."""
        return self.left(now) >= MARGIN


class ShardLeases:
    """The leases of a worker; ``monotonic`` is its clock. Calls take a connection of asyncpg."""

    def __init__(self, worker: str, monotonic: Callable[[], float], *, seconds: float = SECONDS) -> None:
        self.worker, self.seconds, self._now = worker, seconds, monotonic

    async def prepare(self, connection: Any) -> None:
        """Let the server end transactions that stand still: their locks would hold up the next owner."""
        await connection.execute(f"SET idle_in_transaction_session_timeout = {round(1000 * self.seconds)}")

    async def take(self, connection: Any, shard: int) -> Held | None:
        """Take a shard whose lease is over, or that nobody had; None if another worker has it."""
        asked = self._now()
        epoch = await connection.fetchval(_TAKE, shard, self.worker, self.seconds)
        return None if epoch is None else Held(shard, self.worker, epoch, asked + self.seconds)

    async def renew(self, connection: Any, held: Held, schema: str | None = None) -> Held:
        """The same lease from now on; raise LeaseLostError if it is over: it is not taken again.

        ``schema`` is where the leases are, if the transaction works elsewhere.
        """
        asked, renew = self._now(), _RENEW.format(f"{schema}." if schema else "")
        if await connection.fetchval(renew, held.shard, held.epoch, self.seconds) is None:
            raise _lost(held)
        return replace(held, until=asked + self.seconds)

    async def renew_all(self, connection: Any, held: Iterable[Held]) -> dict[int, Held]:
        """The leases of these that are not over, from now on, by shard."""
        mine, asked = {one.shard: one for one in held}, self._now()
        epochs = [one.epoch for one in mine.values()]
        rows = await connection.fetch(_RENEW_ALL, list(mine), epochs, self.seconds) if mine else []
        return {shard: replace(mine[shard], until=asked + self.seconds) for (shard,) in rows}

    async def release(self, connection: Any, held: Held) -> None:
        """Give a shard back; nothing happens if the lease is over."""
        await connection.execute(_RELEASE, held.shard, held.epoch)


async def check(connection: Any, held: Held, schema: str | None = None) -> None:
    """In a transaction that writes: raise LeaseLostError unless the shard is still this owner's.

    ``schema`` is where the leases are, if the transaction works elsewhere.

    The row stays locked until the transaction ends: the next owner takes the shard after it, or it writes nothing.
    """
    asked = _CHECK.format(f"{schema}." if schema else "")
    if await connection.fetchval(asked, held.shard, held.epoch) is None:
        raise _lost(held)


def _lost(held: Held) -> LeaseLostError:
    return LeaseLostError(f"shard {held.shard}: the lease of {held.worker} (epoch {held.epoch}) is over")
