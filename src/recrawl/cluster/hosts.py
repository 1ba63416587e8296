"""Hosts of shards: which shard a page belongs to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.names.addresses import host_of
from recrawl.errors import StoreUnreachableError
from recrawl.schedule.shards import shard_of
from recrawl.store.protocol import Store

_PAUSE = 0.2  # seconds between two attempts to write


def place_of(url: str) -> str:
    """What decides the shard of a page: its host, without a leading www, so that redirects between both stay inside.

    >>> place_of("https://www.example.org/a"), place_of("http://example.org:8080/")
    ('example.org', 'example.org')
    """
    return host_of(url).removeprefix("www.")


def shards_of(urls: Sequence[str], n_shards: int) -> NDArray[np.int64]:
    """The shard of each page."""
    return shard_of([place_of(url) for url in urls], n_shards) if len(urls) else np.zeros(0, np.int64)


class HostsOfShard:
    """Whether URLs are of a shard's hosts; remembers what it was asked."""

    def __init__(self, shard: int, n_shards: int) -> None:
        self._shard, self._n, self._known = shard, n_shards, dict[str, bool]()

    def __call__(self, url: str) -> bool:
        """Whether the shard has the URL's host."""
        place = place_of(url)
        if place not in self._known:
            if len(self._known) > 100_000:
                self._known.clear()
            self._known[place] = int(shard_of([place], self._n)[0]) == self._shard
        return self._known[place]


class OtherShards:
    """See `Others`: commands go to the queue of the shard that has the host of a URL.

    While the database is away they wait, as long as ``may_wait`` says (it raises when the shard is lost).
    """

    def __init__(
        self, is_own: HostsOfShard, n_shards: int, store_of: Callable[[int], Store], may_wait: Callable[[], bool]
    ) -> None:
        self._is_own, self._n, self._store_of, self._may_wait = is_own, n_shards, store_of, may_wait

    def has(self, url: str) -> bool:
        """Whether the host of a URL is another shard's."""
        return not self._is_own(url)

    async def send(self, url: str, command: Mapping[str, Any]) -> None:
        """Queue a command for the owner of a shard."""
        shard = int(shards_of([url], self._n)[0])
        while True:
            try:
                return await self._store_of(shard).queue([command])
            except StoreUnreachableError:
                if not self._may_wait():
                    raise
            await asyncio.sleep(_PAUSE)
