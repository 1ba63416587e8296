"""BlockingStore: a store for programs without an event loop, such as commands and scripts."""

from __future__ import annotations

import asyncio
import math
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Self, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import StoreError
from recrawl.store.events import Event, Subscriber
from recrawl.store.leases import Lease
from recrawl.store.listings import StoredListing
from recrawl.store.protocol import Copy, Outcome, SavedToo, Store, Totals, Version
from recrawl.store.signals import PendingSignal

T = TypeVar("T")
S = TypeVar("S", bound=Store, covariant=True)

_MANY = 1000  # items of an iterator awaited at a time


class BlockingStore(Generic[S]):
    """The calls of a store, each run to its end on an event loop of its own. ``store`` is the store behind it.

    >>> from recrawl.store import MemoryStore
    >>> with BlockingStore(MemoryStore()) as store:
    ...     store.counts()["pages"]
    0
    """

    def __init__(self, store: S) -> None:
        self.store = store
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        weakref.finalize(self, self._loop.close)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run anything that awaits the store, from outside of event loops."""
        if self._loop.is_closed():
            work.close()
            raise StoreError("the store is closed")
        return self._runner.run(work)

    def save(
        self, outcomes: Sequence[Outcome] = (), rows: Mapping[str, Any] | None = None, **more: Unpack[SavedToo]
    ) -> None:
        """See `Store.save`."""
        self.run(self.store.save(outcomes, rows, **more))

    def load(self, urls: Iterable[str] | None = None) -> dict[str, Any] | None:
        """See `Store.load`."""
        return self.run(self.store.load(urls))

    def sample(self, most: int) -> tuple[list[str], NDArray[np.float64]]:
        """See `Store.sample`."""
        return self.run(self.store.sample(most))

    def totals(self, *, importance: float = math.inf) -> Totals:
        """See `Store.totals`."""
        return self.run(self.store.totals(importance=importance))

    def urls(self, prefix: str = "", *, most: int | None = None) -> list[str]:
        """See `Store.urls`."""
        return self.run(self.store.urls(prefix, most=most))

    def copies(self, urls: Iterable[str]) -> dict[str, Copy]:
        """See `Store.copies`."""
        return self.run(self.store.copies(urls))

    def observations(self, url: str | None = None, *, since: float | None = None) -> Iterator[Outcome]:
        """See `Store.observations`."""
        return self._each(self.store.observations(url, since=since))

    def last_observation(self) -> Outcome | None:
        """See `Store.last_observation`."""
        return self.run(self.store.last_observation())

    def failing(self, since: float) -> list[Outcome]:
        """See `Store.failing`."""
        return self.run(self.store.failing(since))

    def recent(self, since: float) -> dict[str, int]:
        """See `Store.recent`."""
        return self.run(self.store.recent(since))

    def requests(self, since: float, recently: float) -> list[tuple[str, int, int]]:
        """See `Store.requests`."""
        return self.run(self.store.requests(since, recently))

    def versions(self, url: str) -> list[Version]:
        """See `Store.versions`."""
        return self.run(self.store.versions(url))

    def body(self, key: bytes) -> bytes | None:
        """See `Store.body`."""
        return self.run(self.store.body(key))

    def notes(self, prefix: str = "") -> dict[str, Any]:
        """See `Store.notes`."""
        return self.run(self.store.notes(prefix))

    def events(self, after: int = 0, many: int = 200) -> list[Event]:
        """See `Store.events`."""
        return self.run(self.store.events(after, many))

    def newest_events(
        self, many: int = 50, *, url: str | None = None, kinds: Sequence[str] | None = None
    ) -> list[Event]:
        """See `Store.newest_events`."""
        return self.run(self.store.newest_events(many, url=url, kinds=kinds))

    def snapshot(self) -> Iterator[Event]:
        """See `Store.snapshot`."""
        return self._each(self.store.snapshot())

    def subscribers(self) -> list[Subscriber]:
        """See `Store.subscribers`."""
        return self.run(self.store.subscribers())

    def save_subscriber(self, subscriber: Subscriber) -> None:
        """See `Store.save_subscriber`."""
        self.run(self.store.save_subscriber(subscriber))

    def remove_subscriber(self, name: str) -> None:
        """See `Store.remove_subscriber`."""
        self.run(self.store.remove_subscriber(name))

    def event_counts(self) -> dict[str, int]:
        """See `Store.event_counts`."""
        return self.run(self.store.event_counts())

    def signals(self, urls: Iterable[str] | None = None) -> list[PendingSignal]:
        """See `Store.signals`."""
        return self.run(self.store.signals(urls))

    def listings(self) -> list[StoredListing]:
        """See `Store.listings`."""
        return self.run(self.store.listings())

    def listing_entries(self, url: str) -> bytes:
        """See `Store.listing_entries`."""
        return self.run(self.store.listing_entries(url))

    def queue(self, commands: Sequence[Mapping[str, Any]]) -> None:
        """See `Store.queue`."""
        self.run(self.store.queue(commands))

    def leases(self, ids: Iterable[str] | None = None, *, after: float = -math.inf) -> list[Lease]:
        """See `Store.leases`."""
        return self.run(self.store.leases(ids, after=after))

    def commands(self) -> list[tuple[int, dict[str, Any]]]:
        """See `Store.commands`."""
        return self.run(self.store.commands())

    def counts(self) -> dict[str, int]:
        """See `Store.counts`."""
        return self.run(self.store.counts())

    def check(self) -> list[str]:
        """See `Store.check`."""
        return self.run(self.store.check())

    def close(self) -> None:
        """See `Store.close`."""
        if not self._loop.is_closed():
            self.run(self.store.close())
            self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _each(self, items: AsyncIterator[T]) -> Iterator[T]:
        """The items of an asynchronous iterator, awaited many at a time."""
        try:
            while some := self.run(_some(items)):
                yield from some
        finally:
            if isinstance(items, AsyncGenerator) and not self._loop.is_closed():
                self.run(_end(items))


async def _end(items: AsyncGenerator[Any, None]) -> None:
    await items.aclose()


async def _some(items: AsyncIterator[T]) -> list[T]:
    found: list[T] = []
    async for item in items:
        found.append(item)
        if len(found) == _MANY:
            break
    return found
