"""Writes: what `SqliteStore` writes, each call in one transaction."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recrawl.store.columns import cells, whole
from recrawl.store.events import Subscriber, event_of, removed_event
from recrawl.store.leases import Lease
from recrawl.store.listings import StoredListing
from recrawl.store.protocol import Copy, Outcome
from recrawl.store.signals import PendingSignal
from recrawl.store.sqlite import statements as sql
from recrawl.store.sqlite.bodies import Bodies
from recrawl.store.sqlite.database import Database, select_in
from recrawl.store.sqlite.events import EventTables


class Writes:
    """The blocking calls that write."""

    def __init__(self, database: Database, bodies: Bodies, events: EventTables) -> None:
        self._database, self._bodies, self._events = database, bodies, events

    def save(
        self,
        outcomes: Sequence[Outcome] = (),
        rows: Mapping[str, Any] | None = None,
        *,
        notes: Mapping[str, Any] | None = None,
        removed: Iterable[str] = (),
        applied: Iterable[int] = (),
        at: float | None = None,
        signals: Sequence[PendingSignal] = (),
        listings: Sequence[StoredListing] = (),
        leases: Sequence[Lease] = (),
        leases_before: float | None = None,
    ) -> None:
        """See `Store.save`."""
        with self._database.transaction() as connection:
            if rows is not None:
                _save_rows(connection, rows)
            connection.executemany(sql.SET_SIGNAL, [sql.signal_cells(signal) for signal in signals])
            if outcomes:
                self._save_outcomes(connection, outcomes)
            for name, value in (notes or {}).items():
                if value is None:
                    connection.execute("DELETE FROM note WHERE name = ?", (name,))
                else:
                    connection.execute(sql.SET_NOTE, (name, json.dumps(value)))
            _save_listings(connection, listings)
            connection.executemany(sql.SET_LEASE, [sql.lease_cells(lease) for lease in leases])
            if leases_before is not None:
                connection.execute("DELETE FROM lease WHERE until < ?", (leases_before,))
            for url in removed:
                self._remove(connection, url, time.time() if at is None else at)
            connection.executemany("DELETE FROM post WHERE id = ?", [(number,) for number in applied])

    def queue(self, commands: Sequence[Mapping[str, Any]]) -> None:
        """See `Store.queue`."""
        texts = [(json.dumps(command),) for command in commands]
        with self._database.transaction() as connection:
            connection.executemany("INSERT INTO post (value) VALUES (?)", texts)

    def save_subscriber(self, subscriber: Subscriber) -> None:
        """See `Store.save_subscriber`."""
        with self._database.transaction() as connection:
            self._events.set_subscriber(connection, subscriber)

    def _save_outcomes(self, connection: sqlite3.Connection, outcomes: Sequence[Outcome]) -> None:
        urls = {outcome.url for outcome in outcomes}
        pages = dict(select_in(connection, "SELECT url, id FROM page WHERE url", urls))
        copies = sql.copies(select_in(connection, sql.COPIES, urls))
        known = [outcome for outcome in outcomes if outcome.url in pages]
        connection.executemany(sql.ADD_OBSERVATION, [sql.observation_cells(pages[o.url], o) for o in known])
        ended = [(pages[outcome.url], outcome.began_at) for outcome in known if outcome.failure is None]
        connection.executemany(sql.END_SIGNALS, ended)
        changed = set()
        for outcome in known:
            if outcome.fetched:
                before = copies.get(outcome.url)
                copies[outcome.url] = Copy.first(outcome) if before is None else before.after(outcome)
                changed.add(outcome.url)
            if outcome.body is not None:
                self._bodies.save(connection, pages[outcome.url], outcome.began_at, outcome.body)
        connection.executemany(sql.SET_COPY, [sql.copy_cells(pages[url], copies[url]) for url in changed])
        self._save_events(connection, [(pages[outcome.url], outcome) for outcome in known])

    def _save_events(self, connection: sqlite3.Connection, outcomes: list[tuple[int, Outcome]]) -> None:
        last = self._events.last_events(connection, list({page for page, _ in outcomes}))
        newest = None
        for page, outcome in outcomes:
            event = event_of(last.get(page), outcome)
            if event is not None:
                last[page] = self._events.add(connection, page, event)
                newest = max(event.at, newest or event.at)
        if newest is not None:
            self._events.trim(connection, newest)

    def _remove(self, connection: sqlite3.Connection, url: str, at: float) -> None:
        found = connection.execute("SELECT id FROM page WHERE url = ?", (url,)).fetchone()
        if found is not None:
            last = self._events.last_events(connection, [found[0]]).get(found[0])
            if (event := removed_event(last, url, at)) is not None:
                self._events.add(connection, found[0], event)
                self._events.trim(connection, at)
            self._bodies.trim(connection, found[0], 0)
            connection.execute("DELETE FROM page WHERE id = ?", found)


def _save_rows(connection: sqlite3.Connection, rows: Mapping[str, Any]) -> None:
    connection.executemany(sql.SET_PAGE, cells(rows))
    connection.executemany(sql.SET_HOST, [(name, *rule) for name, rule in rows["hosts"].items()])
    connection.execute(sql.SET_NOTE, ("engine", whole(rows)))


def _save_listings(connection: sqlite3.Connection, listings: Iterable[StoredListing]) -> None:
    for one in listings:
        if one.state is None:
            connection.execute("DELETE FROM listing WHERE url = ?", (one.url,))
        elif one.entries is None:
            connection.execute(sql.SET_LISTING_STATE, (one.url, json.dumps(one.state)))
        else:
            connection.execute(sql.SET_LISTING, (one.url, json.dumps(one.state), one.entries))
