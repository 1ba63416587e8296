"""Events of all shards as notifications read them: each by a number that no event of another shard has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recrawl.cluster.reading import ShardReader
from recrawl.store.events import Event

_MANY = 100  # events of a shard in a batch


class AllEvents:
    """The number of an event is its number in its shard times the number of shards, plus the shard."""

    def __init__(self, reader: ShardReader) -> None:
        self._reader, self._n = reader, reader.cluster.shards

    async def last(self) -> list[int]:
        """The last number of each shard."""
        return await self._reader.last_events()

    async def after(self, cursors: Sequence[int]) -> tuple[list[Event], list[int]]:
        """Events after those of the cursors in the order of their times, some of each shard, and the cursors then."""
        found, then = list[Event](), list(cursors)
        for shard, last in enumerate(await self.last()):
            if last > cursors[shard]:
                events = await self._reader.store(shard).events(cursors[shard], _MANY)
                then[shard] = events[-1].number if events else last
                found += [replace(one, number=one.number * self._n + shard) for one in events]
        return sorted(found, key=lambda one: one.at), then

    async def one(self, number: int) -> list[Event]:
        """The event of a number, if it is kept."""
        mine, shard = divmod(number, self._n)
        found = await self._reader.store(shard).events(mine - 1, 1)
        return [replace(one, number=number) for one in found if one.number == mine]
