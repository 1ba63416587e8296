"""PostgresStore: everything in one schema of a PostgreSQL database. Two connections, one writes and one reads."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from recrawl.store.events import Event, EventLimits, Subscriber
from recrawl.store.holder import Holder
from recrawl.store.leases import Lease
from recrawl.store.listings import StoredListing
from recrawl.store.postgres import tables
from recrawl.store.postgres.address import Address
from recrawl.store.postgres.bodies import Bodies
from recrawl.store.postgres.events import EventTables
from recrawl.store.postgres.owner import Owner, Ownership, holder
from recrawl.store.postgres.reads import Reads
from recrawl.store.postgres.session import Access, Session, Sessions
from recrawl.store.postgres.writes import Writes
from recrawl.store.protocol import Batch, Copy, Outcome, SavedToo, Totals, Version
from recrawl.store.signals import PendingSignal
from recrawl.store.tables import Row, Source, Table, paged

P = ParamSpec("P")
T = TypeVar("T")


class PostgresStore:
    """A store in a PostgreSQL database, ``postgresql://user@host:port/database?schema=recrawl``.

    ``keep`` is how many bodies of each page are kept, ``events`` how many events. Tables that are not there are made,
    unless ``create`` is False. An ``exclusive`` store has the schema
    to itself among crawlers, on any machine: a second one is refused (`StoreInUseError`). Writes are applied in the
    order of the calls; reads do not wait for them. A connection that is lost is made again before the next call.
    ``access`` gives an owner and sessions that several schemas share; without it the store has its own.
    """

    def __init__(
        self,
        database: str,
        *,
        keep: int = 1,
        exclusive: bool = True,
        create: bool = True,
        events: EventLimits | None = None,
        access: Access | None = None,
    ) -> None:
        self.address = Address.parse(database)
        bodies, self._events = Bodies(keep if exclusive else 0), EventTables(events or EventLimits())
        self._writes, self._reads = Writes(bodies, self._events), Reads(bodies, self._events)
        self._owner: Ownership
        self._writer: Sessions
        self._reader: Sessions
        if access is not None:
            self._owner, self._writer, self._reader = access.owner, access.writer, access.reader
            return
        self._owner = Owner(self.address, exclusive=exclusive, create=create)
        self._writer = Session(self.address, "recrawl-store-write", self._owner.prepare, reading=False)
        try:
            self._reader = Session(self.address, "recrawl-store-read", _as_it_is, reading=True)
        except BaseException:
            self._writer.end()
            raise

    @property
    def name(self) -> str:
        """The address without a password."""
        return self.address.name

    def size(self) -> int:
        """Bytes of the tables and their indexes."""
        return self._reader.wait(self._reads.size)

    def announce(self, *lines: str) -> None:
        """Write lines that others may look for, such as what signals this process takes (`holder`)."""
        self._writer.wait(lambda connection: self._owner.announce(connection, lines))

    def holder(self) -> Holder | None:
        """The process that has the database to itself; None if there is none."""
        return self._reader.wait(lambda connection: holder(connection, self.address))

    async def _read(self, work: Callable[Concatenate[Any, P], Awaitable[T]], *args: P.args, **options: P.kwargs) -> T:
        return await self._reader.call(lambda connection: work(connection, *args, **options))

    # --- writing -----------------------------------------------------------------------------------------------------

    async def save(
        self, outcomes: Sequence[Outcome] = (), rows: Mapping[str, Any] | None = None, **more: Unpack[SavedToo]
    ) -> None:
        """See `Store.save`."""
        more["removed"], more["applied"] = list(more.get("removed", ())), list(more.get("applied", ()))
        batch = Batch(outcomes, rows, **more)
        await self._owned(lambda connection: self._writes.save(connection, batch))

    async def queue(self, commands: Sequence[Mapping[str, Any]]) -> None:
        """See `Store.queue`."""
        texts = [json.dumps(command) for command in commands]
        await self._owned(lambda connection: self._writes.queue(connection, texts))

    async def save_subscriber(self, subscriber: Subscriber) -> None:
        """See `Store.save_subscriber`."""
        await self._owned(lambda connection: self._writes.save_subscriber(connection, subscriber))

    async def remove_subscriber(self, name: str) -> None:
        """See `Store.remove_subscriber`."""
        await self._owned(lambda connection: self._writes.remove_subscriber(connection, name))

    async def _owned(self, write: Callable[[Any], Awaitable[T]]) -> T:
        """Write in a transaction that an owner who was followed by another cannot make."""

        async def work(connection: Any) -> T:
            await self._owner.begin(connection)
            return await write(connection)

        return await self._writer.call(work)

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
        return await self._read(self._events.read, after, many)

    async def newest_events(
        self, many: int = 50, *, url: str | None = None, kinds: Sequence[str] | None = None
    ) -> list[Event]:
        """See `Store.newest_events`."""
        return await self._read(self._events.newest, many, url, kinds)

    async def snapshot(self) -> AsyncIterator[Event]:
        """See `Store.snapshot`."""
        last, after = (await self.event_counts())["last"], 0
        while True:
            found, after = await self._read(self._events.snapshot, last, after)
            if not found:
                return
            for event in found:
                yield event

    async def subscribers(self) -> list[Subscriber]:
        """See `Store.subscribers`."""
        return await self._read(self._events.subscribers)

    async def event_counts(self) -> dict[str, int]:
        """See `Store.event_counts`."""
        return await self._read(self._events.totals)

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
        async for rows in paged(table, lambda after: self._read(tables.read, table, after)):
            yield rows

    async def restore(self, source: Source) -> dict[str, int]:
        """See `TableStore.restore`; the source is awaited in the thread that writes."""

        return await self._owned(lambda connection: tables.fill(connection, source))

    # --- the end -----------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """See `Store.close`: calls made before run to their end."""
        await self._reader.close()
        await self._writer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _as_it_is(connection: Any) -> None:
    """A connection that needs nothing before it reads: the writing one has checked the schema."""
