"""Writes: what `PostgresStore` writes, each call in one transaction; many rows in one statement."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from recrawl.store.columns import TABLE, cells, whole
from recrawl.store.events import LastEvent, Subscriber
from recrawl.store.leases import Lease
from recrawl.store.listings import StoredListing
from recrawl.store.postgres import statements as sql
from recrawl.store.postgres.bodies import Bodies
from recrawl.store.postgres.events import EventTables, changes_of, removals_of
from recrawl.store.protocol import Batch, Copy, Outcome
from recrawl.store.signals import PendingSignal
from recrawl.store.tables import COPY, OBSERVATION

_STAGED = 2000  # from so many rows on, COPY to a table of its own and one statement from there are faster than arrays
_MANY = 20_000
_PLACES = [TABLE.index(name) for name in sql.PAGE if name != "key"]


@dataclass(frozen=True)
class Known:
    """What the database knows of pages: ids, newest copies, last events."""

    ids: dict[str, int]
    copies: dict[str, Copy]
    last: dict[int, LastEvent]

    @classmethod
    async def read(cls, connection: Any, urls: Iterable[str]) -> Known:
        """Those of the URLs that are pages."""
        known, n = cls({}, {}, {}), len(COPY)
        for page, url, *rest in await connection.fetch(sql.KNOWN, sql.keys_of(urls)):
            known.ids[url] = page
            if rest[0] is not None:
                known.copies[url] = Copy(url, *rest[:n])
            if rest[n] is not None:
                known.last[page] = LastEvent(*rest[n:])
        return known


class Writes:
    """The statements of one call of `Store`, on a connection in a transaction."""

    def __init__(self, bodies: Bodies, events: EventTables) -> None:
        self._bodies, self._events = bodies, events

    async def save(self, connection: Any, batch: Batch) -> None:
        """See `Store.save`."""
        if batch.rows is not None:
            await _save_rows(connection, batch.rows)
        await _save_signals(connection, batch.signals)
        if batch.outcomes:
            await self._save_outcomes(connection, batch.outcomes)
        await _save_notes(connection, batch.notes or {})
        await _save_listings(connection, batch.listings)
        await _save_leases(connection, batch.leases, batch.leases_before)
        if removed := list(batch.removed):
            await self._remove(connection, removed, batch.removed_at)
        if applied := list(batch.applied):
            await connection.execute("DELETE FROM command WHERE id = ANY ($1::bigint[])", applied)

    async def queue(self, connection: Any, texts: Sequence[str]) -> None:
        """See `Store.queue`."""
        add = f"INSERT INTO command (value) SELECT value FROM {sql.unnested({'value': str})} WITH ORDINALITY"
        await connection.execute(f"{add} AS given (value, n) ORDER BY n", list(texts))

    async def save_subscriber(self, connection: Any, subscriber: Subscriber) -> None:
        """See `Store.save_subscriber`."""
        await self._events.set_subscriber(connection, subscriber)

    async def remove_subscriber(self, connection: Any, name: str) -> None:
        """See `Store.remove_subscriber`."""
        await self._events.remove_subscriber(connection, name)

    async def _save_outcomes(self, connection: Any, outcomes: Sequence[Outcome]) -> None:
        known = await Known.read(connection, {outcome.url for outcome in outcomes})
        mine = [(known.ids[outcome.url], outcome) for outcome in outcomes if outcome.url in known.ids]
        records = [sql.observation_cells(page, outcome) for page, outcome in mine]
        await connection.copy_records_to_table("observation", records=records, columns=("page", *OBSERVATION))
        ended = [(page, outcome.began_at) for page, outcome in mine if outcome.failure is None]
        await connection.execute(sql.END_SIGNALS, *sql.arrays(ended, 2))
        copies, changed = known.copies, dict[str, int]()
        for page, outcome in mine:
            if outcome.fetched:
                before = copies.get(outcome.url)
                copies[outcome.url] = Copy.first(outcome) if before is None else before.after(outcome)
                changed[outcome.url] = page
        written = [sql.copy_cells(page, copies[url]) for url, page in changed.items()]
        await connection.execute(sql.SET_COPIES, *sql.arrays(written, 1 + len(COPY)))
        bodies = [(page, outcome.began_at, outcome.body) for page, outcome in mine if outcome.body is not None]
        await self._bodies.save(connection, bodies)
        await self._events.add(connection, changes_of(mine, known.last))

    async def _remove(self, connection: Any, urls: Sequence[str], at: float) -> None:
        known = await Known.read(connection, urls)
        pages = [(known.ids[url], url) for url in dict.fromkeys(urls) if url in known.ids]
        await self._events.add(connection, removals_of(pages, known.last, at))
        ids = [page for page, _ in pages]
        await self._bodies.trim(connection, ids, 0)
        await connection.execute("DELETE FROM page WHERE id = ANY ($1::bigint[])", ids)


async def _save_rows(connection: Any, rows: Mapping[str, Any]) -> None:
    records = (_record(cell) for cell in cells(rows))
    if len(rows["url"]) >= _STAGED:
        await connection.execute(sql.STAGE)
        await connection.copy_records_to_table("staged_page", records=records, columns=tuple(sql.PAGE))
        await connection.execute(sql.SET_STAGED)
        await connection.execute("DROP TABLE staged_page")
    elif some := list(islice(records, _STAGED)):
        await connection.execute(sql.SET_PAGES, *sql.arrays(some, len(sql.PAGE)))
    hosts = [(sql.key_of(name), name, *map(float, rule)) for name, rule in rows["hosts"].items()]
    await connection.execute(sql.SET_HOSTS, *sql.arrays(hosts, 5))
    await connection.execute(sql.SET_NOTES, [sql.key_of("engine")], ["engine"], [whole(rows)])


def _record(cell: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row of the table of pages, from cells in the order of `columns.TABLE`."""
    url, *values, fixed_rate, paused, more = (cell[place] for place in _PLACES)
    return (sql.key_of(url), url, *values, bool(fixed_rate), bool(paused), more)


async def _save_signals(connection: Any, signals: Iterable[PendingSignal]) -> None:
    newest = {(signal.url, signal.source): signal for signal in signals}
    if newest:
        given = [(sql.key_of(one.url), one.source, one.at, one.changed_at, one.resolution) for one in newest.values()]
        await connection.execute(sql.SET_SIGNALS, *sql.arrays(given, 5))


async def _save_notes(connection: Any, notes: Mapping[str, Any]) -> None:
    given = [(sql.key_of(name), name, json.dumps(value)) for name, value in notes.items() if value is not None]
    if given:
        await connection.execute(sql.SET_NOTES, *sql.arrays(given, 3))
    if deleted := [sql.key_of(name) for name, value in notes.items() if value is None]:
        await connection.execute("DELETE FROM note WHERE key = ANY ($1::bytea[])", deleted)


async def _save_leases(connection: Any, leases: Iterable[Lease], before: float | None) -> None:
    newest = {lease.id: [getattr(lease, name) for name in sql.LEASE] for lease in leases}
    if newest:
        await connection.execute(sql.SET_LEASES, *sql.arrays(list(newest.values()), len(sql.LEASE)))
    if before is not None:
        await connection.execute("DELETE FROM lease WHERE until < $1", before)


async def _save_listings(connection: Any, listings: Iterable[StoredListing]) -> None:
    for one in listings:  # few, and large: one after the other
        key = sql.key_of(one.url)
        if one.state is None:
            await connection.execute("DELETE FROM listing WHERE key = $1", key)
        elif one.entries is None:
            await connection.execute(sql.SET_LISTING_STATES, [key], [one.url], [json.dumps(one.state)])
        else:
            given = ([key], [one.url], [json.dumps(one.state)], [one.entries])
            await connection.execute(sql.SET_LISTINGS, *given)
