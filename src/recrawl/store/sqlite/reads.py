"""Reads: what `SqliteStore` answers, beside whatever is being written."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.estimate.sampling import draw
from recrawl.store.columns import NUMBERS, Gathered
from recrawl.store.events import Event, Subscriber
from recrawl.store.leases import HELD, Lease
from recrawl.store.listings import StoredListing
from recrawl.store.protocol import Changes, Copy, Outcome, Totals, Version
from recrawl.store.signals import PendingSignal
from recrawl.store.sqlite import statements as sql
from recrawl.store.sqlite import tables
from recrawl.store.sqlite.bodies import Bodies
from recrawl.store.sqlite.database import Database, select_in
from recrawl.store.sqlite.events import EventTables
from recrawl.store.sqlite.page_log import changes_since, writes_since
from recrawl.store.tables import Row, Table

MANY = 20_000  # rows read at a time


class Reads:
    """The blocking calls that read."""

    def __init__(self, database: Database, bodies: Bodies, events: EventTables) -> None:
        self._database, self._bodies, self._events = database, bodies, events

    def load(self, urls: Sequence[str] | None) -> dict[str, Any] | None:
        """See `Store.load`."""
        with self._at_once() as connection:
            saved = connection.execute("SELECT value FROM note WHERE name = 'engine'").fetchone()
            if saved is None:
                return None
            hosts = {name: tuple(rule) for name, *rule in connection.execute(sql.HOSTS)}
            gathered = _all_pages(connection) if urls is None else _some_pages(connection, urls)
        return gathered.loaded(saved[0], hosts)

    def changes_since(self, mark: str) -> Changes | None:
        """See `MarkedStore.changes_since`."""
        with self._at_once() as connection:
            return changes_since(connection, mark)

    def writes_since(self, mark: str) -> int:
        """See `MarkedStore.writes_since`."""
        with self._database.reading() as connection:
            return writes_since(connection, mark)

    def sample(self, most: int) -> tuple[list[str], NDArray[np.float64]]:
        """See `Store.sample`."""
        with self._at_once() as connection:
            found = np.fromiter(chain.from_iterable(connection.execute(sql.IMPORTANCE)), np.float64).reshape(-1, 2)
            drawn = draw(found[:, 1], most, np.random.default_rng(0))
            ids = found[drawn.rows, 0].astype(np.int64).tolist()
            urls = dict(select_in(connection, "SELECT id, url FROM page WHERE id", ids))
        return [urls[page] for page in ids], drawn.stands_for

    def totals(self, importance: float) -> Totals:
        """See `Store.totals`."""
        with self._database.reading() as connection:
            return Totals(*connection.execute(sql.TOTALS, (importance,)).fetchone())

    def urls(self, prefix: str = "", most: int | None = None) -> list[str]:
        """See `Store.urls`."""
        question, bounds = (sql.URLS_FROM, (prefix, prefix + "\U0010ffff")) if prefix else (sql.URLS, ())
        with self._database.reading() as connection:
            return [row[0] for row in connection.execute(question, (*bounds, -1 if most is None else most))]

    def signals(self, urls: Sequence[str] | None) -> list[PendingSignal]:
        """See `Store.signals`."""
        with self._database.reading() as connection:
            if urls is None:
                rows = connection.execute(f"{sql.SIGNALS} ORDER BY page, source").fetchall()
            else:
                rows = sorted(select_in(connection, f"{sql.SIGNALS} WHERE url", dict.fromkeys(urls)))
            return [PendingSignal(*row[2:]) for row in rows]

    def listings(self) -> list[StoredListing]:
        """See `Store.listings`."""
        with self._database.reading() as connection:
            return [StoredListing(url, json.loads(state)) for url, state in connection.execute(sql.LISTINGS)]

    def listing_entries(self, url: str) -> bytes:
        """See `Store.listing_entries`."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT entries FROM listing WHERE url = ?", (url,)).fetchone()
        return b"" if row is None else bytes(row[0])

    @contextmanager
    def _at_once(self) -> Iterator[sqlite3.Connection]:
        """The connection that reads, at one moment for all that is read."""
        with self._database.reading() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("COMMIT")

    def copies(self, urls: Iterable[str]) -> dict[str, Copy]:
        """See `Store.copies`."""
        with self._database.reading() as connection:
            return sql.copies(select_in(connection, sql.COPIES, urls))

    def observations(self, url: str | None, since: float | None, after: int) -> tuple[list[Outcome], int]:
        """At most MANY observations after one, and the number of the last (0: there are no more)."""
        given = {"url": url, "since": since, "after": after, "many": MANY}
        with self._database.reading() as connection:
            found = connection.execute(sql.observations(url, since), given).fetchall()
        return [sql.observed(row) for row in found], found[-1][0] if len(found) == MANY else 0

    def last_observation(self) -> Outcome | None:
        """See `Store.last_observation`."""
        with self._database.reading() as connection:
            row = connection.execute(sql.LAST_OBSERVATION).fetchone()
        return None if row is None else sql.observed(row)

    def failing(self, since: float) -> list[Outcome]:
        """See `Store.failing`."""
        with self._database.reading() as connection:
            return [sql.observed(row) for row in connection.execute(sql.FAILING, (since,))]

    def recent(self, since: float) -> dict[str, int]:
        """See `Store.recent`."""
        with self._database.reading() as connection:
            row = connection.execute(sql.RECENT, (since,)).fetchone()
        return dict(zip(("crawls", "changes", "failures", "flapping", "rolled_off"), row, strict=True))

    def requests(self, since: float, recently: float) -> list[tuple[str, int, int]]:
        """See `Store.requests`."""
        with self._database.reading() as connection:
            return connection.execute(sql.REQUESTS, (recently, since)).fetchall()

    def versions(self, url: str) -> list[Version]:
        """See `Store.versions`."""
        with self._database.reading() as connection:
            return [Version(url, *row) for row in connection.execute(sql.VERSIONS, (url,))]

    def body(self, key: bytes) -> bytes | None:
        """See `Store.body`."""
        with self._database.reading() as connection:
            return self._bodies.read(connection, key)

    def notes(self, prefix: str = "") -> dict[str, Any]:
        """See `Store.notes`."""
        with self._database.reading() as connection:
            found = connection.execute(sql.NOTES, (prefix, prefix + "\U0010ffff"))
            return {name: json.loads(text) for name, text in found if name != "engine"}

    def events(self, after: int, many: int) -> list[Event]:
        """See `Store.events`."""
        with self._database.reading() as connection:
            return self._events.read(connection, after, many)

    def newest_events(self, many: int, url: str | None, kinds: Sequence[str] | None) -> list[Event]:
        """See `Store.newest_events`."""
        with self._database.reading() as connection:
            return self._events.newest(connection, many, url, kinds)

    def snapshot(self, last: int, after: int) -> tuple[list[Event], int]:
        """Some of the pages that are there as events of number ``last``, after one page; and the last of these."""
        with self._database.reading() as connection:
            return self._events.snapshot(connection, last, after)

    def subscribers(self) -> list[Subscriber]:
        """See `Store.subscribers`."""
        with self._database.reading() as connection:
            return self._events.subscribers(connection)

    def event_counts(self) -> dict[str, int]:
        """See `Store.event_counts`."""
        with self._database.reading() as connection:
            return self._events.totals(connection)

    def leases(self, ids: Sequence[str] | None, after: float) -> list[Lease]:
        """See `Store.leases`."""
        with self._database.reading() as connection:
            if ids is None:
                found = list(connection.execute(f"{sql.LEASES} WHERE state = ?", (HELD,)))
            else:
                found = list(select_in(connection, f"{sql.LEASES} WHERE id", dict.fromkeys(ids)))
        leases = [sql.lease_of(row) for row in found]
        return sorted((lease for lease in leases if lease.until > after), key=lambda lease: lease.id)

    def table(self, table: Table, after: Row | None) -> list[Row]:
        """The next rows of a table (see `store.tables`)."""
        with self._database.reading() as connection:
            return tables.read(connection, table, after)

    def commands(self) -> list[tuple[int, dict[str, Any]]]:
        """See `Store.commands`."""
        with self._database.reading() as connection:
            found = connection.execute("SELECT id, value FROM command ORDER BY id")
            return [(number, json.loads(text)) for number, text in found]

    def counts(self) -> dict[str, int]:
        """See `Store.counts`."""
        tables = {"pages": "page", "copies": "copy", "observations": "observation", "bodies": "body"}
        with self._database.reading() as connection:
            return {
                name: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for name, table in tables.items()
            }

    def check(self) -> list[str]:
        """See `Store.check`: SQLite's own check, foreign keys, and bodies that no version has."""
        with self._database.reading() as connection:
            problems = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
            problems += [f"{row[0]}, row {row[1]}: refers to no {row[2]}" for row in connection.execute(sql.CHECK_KEYS)]
            loose = connection.execute(sql.LOOSE_BODIES).fetchone()[0]
            problems += self._events.check(connection)
        return problems + ([f"{loose} bodies belong to no page"] if loose else [])


def _all_pages(connection: sqlite3.Connection) -> Gathered:
    gathered = Gathered(connection.execute("SELECT count(*) FROM page").fetchone()[0])
    cursor = connection.execute(f"{sql.PAGE_NUMBERS} ORDER BY id")
    while len(numbers := np.fromiter(chain.from_iterable(islice(cursor, MANY)), np.float64)):
        columns = numbers.reshape(-1, len(NUMBERS)).T
        gathered.take_fixed(dict(zip(NUMBERS, columns, strict=True)))
    cursor = connection.execute(f"{sql.PAGE_TEXTS} ORDER BY id")
    while many := cursor.fetchmany(MANY):
        gathered.take_texts(*zip(*many, strict=True))
    return gathered


def _some_pages(connection: sqlite3.Connection, urls: Sequence[str]) -> Gathered:
    ids = sorted(row[0] for row in select_in(connection, "SELECT id FROM page WHERE url", dict.fromkeys(urls)))
    gathered = Gathered(len(ids))
    for first in range(0, len(ids), MANY):
        some = select_in(connection, f"{sql.PAGES} WHERE id", ids[first : first + MANY])
        gathered.take(list(some))
    return gathered
