"""SqliteStore: everything in one file. Blocking calls run in two threads of its own, one writes and one reads."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from recrawl._system.worker import Worker
from recrawl.store.events import Event, EventLimits, Subscriber
from recrawl.store.holder import Holder
from recrawl.store.leases import Lease
from recrawl.store.listings import StoredListing
from recrawl.store.protocol import Batch, Changes, Copy, Outcome, SavedToo, Totals, Version
from recrawl.store.signals import PendingSignal
from recrawl.store.sqlite.bodies import Bodies
from recrawl.store.sqlite.database import Database
from recrawl.store.sqlite.events import EventTables
from recrawl.store.sqlite.lock import holder_of
from recrawl.store.sqlite.reads import Reads
from recrawl.store.sqlite.writes import Writes
from recrawl.store.tables import Row, Source, Table, paged

P = ParamSpec("P")
T = TypeVar("T")


class SqliteStore:
    """A store in an SQLite file; ``keep`` is how many bodies of each page are kept, ``events`` how many events.

    An ``exclusive`` store has the database to itself among crawlers: a second one is refused (`StoreInUseError`). One
    that is not exclusive reads, and queues commands for the running crawler. Writes are applied in the order of the
    calls; reads do not wait for them.
    """

    def __init__(
        self, path: str | Path, *, keep: int = 1, exclusive: bool = True, events: EventLimits | None = None
    ) -> None:
        self.path = Path(path)
        bodies, tables = Bodies(keep if exclusive else 0), EventTables(events or EventLimits())
        self._database = Database(path, exclusive=exclusive)
        self._writes, self._reads = Writes(self._database, bodies, tables), Reads(self._database, bodies, tables)
        self._writer, self._reader = Worker("recrawl-store-write"), Worker("recrawl-store-read")

    async def _write(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        self._database.check_open()
        return await self._writer.call(work, *args, **options)

    async def _read(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        self._database.check_open()
        return await self._reader.call(work, *args, **options)

    @property
    def name(self) -> str:
        """The file."""
        return str(self.path)

    def size(self) -> int:
        """Bytes of the file."""
        return self.path.stat().st_size

    def announce(self, *lines: str) -> None:
        """Write lines to the lock of an exclusive store, such as what signals its process takes (`holder_of`)."""
        self._database.announce(*lines)

    def holder(self) -> Holder | None:
        """The process that has the database to itself; None if there is none."""
        return holder_of(self.path)

    # --- writing -----------------------------------------------------------------------------------------------------

    async def save(
        self, outcomes: Sequence[Outcome] = (), rows: Mapping[str, Any] | None = None, **more: Unpack[SavedToo]
    ) -> None:
        """See `Store.save`."""
        more["removed"], more["applied"] = list(more.get("removed", ())), list(more.get("applied", ()))
        await self._write(self._writes.save, Batch(outcomes, rows, **more))

    async def queue(self, commands: Sequence[Mapping[str, Any]]) -> None:
        """See `Store.queue`."""
        await self._write(self._writes.queue, commands)

    async def save_subscriber(self, subscriber: Subscriber) -> None:
        """See `Store.save_subscriber`."""
        await self._write(self._writes.save_subscriber, subscriber)

    async def remove_subscriber(self, name: str) -> None:
        """See `Store.remove_subscriber`."""
        await self._write(self._writes.remove_subscriber, name)

    # --- marks -------------------------------------------------------------------------------------------------------

    @property
    def checkpoint_path(self) -> Path:
        """See `MarkedStore.checkpoint_path`."""
        return self.path.with_name(f"{self.path.name}.checkpoint")

    async def set_mark(self) -> str:
        """See `MarkedStore.set_mark`."""
        return await self._write(self._writes.set_mark)

    async def drop_marks(self, before: str | None = None) -> None:
        """See `MarkedStore.drop_marks`."""
        await self._write(self._writes.drop_marks, before)

    async def changes_since(self, mark: str) -> Changes | None:
        """See `MarkedStore.changes_since`."""
        return await self._read(self._reads.changes_since, mark)

    async def writes_since(self, mark: str) -> int:
        """See `MarkedStore.writes_since`."""
        return await self._read(self._reads.writes_since, mark)

    # --- reading -----------------------------------------------------------------------------------------------------

    async def load(self, urls: Iterable[str] | None = None) -> dict[str, Any] | None:
        """See `Store.load`."""
        return await self._read(self._reads.load, None if urls is None else list(urls))

    async def sample(self, most: int) -> tuple[list[str], NDArray[np.float64]]:
        """See `Store.sample`."""
        return await self._read(self._reads.sample, most)

    async def totals(self, *, importance: float = math.inf) -> Totals:
        """See `Store.totals`."""
        return await self._read(self._reads.totals, importance)

    async def urls(self, prefix: str = "", *, most: int | None = None) -> list[str]:
        """See `Store.urls`."""
        return await self._read(self._reads.urls, prefix, most)

    async def copies(self, urls: Iterable[str]) -> dict[str, Copy]:
        """See `Store.copies`."""
        return await self._read(self._reads.copies, list(urls))

    async def observations(self, url: str | None = None, *, since: float | None = None) -> AsyncIterator[Outcome]:
        """See `Store.observations`."""
        after: int | None = None
        while after != 0:
            found, after = await self._read(self._reads.observations, url, since, after or 0)
            for outcome in found:
                yield outcome

    async def last_observation(self) -> Outcome | None:
        """See `Store.last_observation`."""
        return await self._read(self._reads.last_observation)

    async def failing(self, since: float) -> list[Outcome]:
        """See `Store.failing`."""
        return await self._read(self._reads.failing, since)

    async def recent(self, since: float) -> dict[str, int]:
        """See `Store.recent`."""
        return await self._read(self._reads.recent, since)

    async def requests(self, since: float, recently: float) -> list[tuple[str, int, int]]:
        """See `Store.requests`."""
        return await self._read(self._reads.requests, since, recently)

    async def versions(self, url: str) -> list[Version]:
        """See `Store.versions`."""
        return await self._read(self._reads.versions, url)

    async def body(self, key: bytes) -> bytes | None:
        """See `Store.body`."""
        return await self._read(self._reads.body, key)

    async def notes(self, prefix: str = "") -> dict[str, Any]:
        """See `Store.notes`."""
        return await self._read(self._reads.notes, prefix)

    async def events(self, after: int = 0, many: int = 200) -> list[Event]:
        """See `Store.events`."""
        return await self._read(self._reads.events, after, many)

    async def newest_events(
        self, many: int = 50, *, url: str | None = None, kinds: Sequence[str] | None = None
    ) -> list[Event]:
        """See `Store.newest_events`."""
        return await self._read(self._reads.newest_events, many, url, None if kinds is None else list(kinds))

    async def snapshot(self) -> AsyncIterator[Event]:
        """See `Store.snapshot`."""
        last, after = (await self.event_counts())["last"], 0
        while True:
            found, after = await self._read(self._reads.snapshot, last, after)
            if not found:
                return
            for event in found:
                yield event

    async def subscribers(self) -> list[Subscriber]:
        """See `Store.subscribers`."""
        return await self._read(self._reads.subscribers)

    async def event_counts(self) -> dict[str, int]:
        """See `Store.event_counts`."""
        return await self._read(self._reads.event_counts)

    async def signals(self, urls: Iterable[str] | None = None) -> list[PendingSignal]:
        """See `Store.signals`."""
        return await self._read(self._reads.signals, None if urls is None else list(urls))

    async def listings(self) -> list[StoredListing]:
        """See `Store.listings`."""
        return await self._read(self._reads.listings)

    async def listing_entries(self, url: str) -> bytes:
        """See `Store.listing_entries`."""
        return await self._read(self._reads.listing_entries, url)

    async def leases(self, ids: Iterable[str] | None = None, *, after: float = -math.inf) -> list[Lease]:
        """See `Store.leases`."""
        return await self._read(self._reads.leases, None if ids is None else list(ids), after)

    async def commands(self) -> list[tuple[int, dict[str, Any]]]:
        """See `Store.commands`."""
        return await self._read(self._reads.commands)

    async def counts(self) -> dict[str, int]:
        """See `Store.counts`."""
        return await self._read(self._reads.counts)

    async def check(self) -> list[str]:
        """See `Store.check`."""
        return await self._read(self._reads.check)

    # --- copies ------------------------------------------------------------------------------------------------------

    async def table_rows(self, table: Table) -> AsyncIterator[list[Row]]:
        """See `TableStore.table_rows`."""
        async for rows in paged(table, lambda after: self._read(self._reads.table, table, after)):
            yield rows

    async def restore(self, source: Source) -> dict[str, int]:
        """See `TableStore.restore`."""
        return await self._write(self._writes.restore, source)

    # --- the end -----------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """See `Store.close`: calls made before run to their end."""
        if self._database.end():
            try:
                await self._writer.call(self._close)
            finally:
                self._writer.close()

    def _close(self) -> None:
        self._reader.close(wait=True)
        self._database.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
