"""Positions of notifications: a row for each, written by the worker that has the lease for notifications."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from recrawl.cluster.ownership.gate import Gate
from recrawl.cluster.ownership.leases import check
from recrawl.store.postgres.session import Sessions

READ = "SELECT name, state FROM notice"
_WRITE = "INSERT INTO notice (name, state) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET state = excluded.state"
_FORGET = "DELETE FROM notice WHERE name <> ALL ($1::text[])"


@dataclass
class Position:
    """How far a notification is: the number of the last event of each shard, and what waits to be sent."""

    cursors: list[int]
    waiting: dict[str, Any] | None = None  # as `Notifier` keeps it
    taken: int = 0
    taken_at: float | None = None
    failures: int = 0
    failure: str | None = None
    failed_at: float | None = None


def positions_of(rows: Collection[Any]) -> dict[str, Position]:
    """Positions from the rows of the table, by name."""
    return {row["name"]: Position(**json.loads(row["state"])) for row in rows}


class NoticeBook:
    """The table of positions; every transaction that writes checks the lease."""

    def __init__(self, session: Sessions, gate: Gate) -> None:
        self._session, self._gate = session, gate

    async def read(self) -> dict[str, Position]:
        """All positions, by the names of their notifications."""

        async def work(connection: Any) -> dict[str, Position]:
            return positions_of(await connection.fetch(READ))

        return await self._session.call(work)

    async def write(self, name: str, position: Position) -> None:
        """Keep a position."""
        await self._checked(_WRITE, name, json.dumps(asdict(position)))

    async def keep_only(self, names: Collection[str]) -> None:
        """Forget all others."""
        await self._checked(_FORGET, list(names))

    async def _checked(self, statement: str, *given: Any) -> None:
        async def work(connection: Any) -> None:
            await check(connection, self._gate.held)
            await connection.execute(statement, *given)

        await self._session.call(work)
