"""Sharded: what a copy of a cluster is read from, shard by shard, and written to."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from recrawl.store import BlockingStore
from recrawl.store.opening import OwnedStore
from recrawl.store.tables import copy_store


@dataclass(frozen=True)
class Shape:
    """A cluster without its rows: number of shards, seconds of a lease, and the budget in words."""

    shards: int
    seconds: float
    budget: str


class Sharded(Protocol):
    """Shards whose tables can be read or, of a goal, filled."""

    @property
    def name(self) -> str:
        """The place as it is printed."""

    def shard(self, shard: int) -> AbstractContextManager[BlockingStore[OwnedStore]]:
        """The store of a shard; it is closed at the end."""


def copy_shards(origin: Sharded, goal: Sharded, n_shards: int) -> dict[str, int]:
    """Copy all shards to empty ones and compare them row by row; the rows of each table, all shards together."""
    counts = Counter[str]()
    for shard in range(n_shards):
        with origin.shard(shard) as source, goal.shard(shard) as target:
            counts.update(target.run(copy_store(source.store, target.store)))
    return dict(counts)
