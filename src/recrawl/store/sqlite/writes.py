"""Writes: what `SqliteStore` writes, each call in one transaction."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from recrawl.store.columns import cells, whole
from recrawl.store.events import Event, LastEvent, Subscriber, event_of, last_event_after, removed_event
from recrawl.store.listings import StoredListing
from recrawl.store.protocol import Batch, Copy, Outcome
from recrawl.store.sqlite import statements as sql
from recrawl.store.sqlite import tables
from recrawl.store.sqlite.bodies import Bodies
from recrawl.store.sqlite.database import Database, select_in
from recrawl.store.sqlite.events import EventTables
from recrawl.store.sqlite.page_log import PageLog
from recrawl.store.tables import Source


class Writes:
    """The blocking calls that write."""

    def __init__(self, database: Database, bodies: Bodies, events: EventTables) -> None:
        self._database, self._bodies, self._events = database, bodies, events
        self._log = PageLog(database)

    def save(self, batch: Batch) -> None:
        """See `Store.save`."""
        with self._database.transaction() as connection:
            outcomes, rows, removed = batch.outcomes, batch.rows, list(batch.removed)
            stored = Stored(connection, {outcome.url for outcome in outcomes})
            if rows is not None:
                _save_rows(connection, rows, stored.pages)
            sql.save_signals(connection, batch.signals)
            if outcomes:
                self._save_outcomes(connection, outcomes, stored)
            for name, value in (batch.notes or {}).items():
                if value is None:
                    connection.execute("DELETE FROM note WHERE name = ?", (name,))
                else:
                    connection.execute(sql.SET_NOTE, (name, json.dumps(value)))
            _save_listings(connection, batch.listings)
            connection.executemany(sql.SET_LEASE, batch.leases)
            if batch.leases_before is not None:
                connection.execute("DELETE FROM lease WHERE until < ?", (batch.leases_before,))
            for url in removed:
                self._remove(connection, url, batch.removed_at)
            if self._log.is_kept:
                urls = [*(() if rows is None else rows["url"]), *(signal.url for signal in batch.signals)]
                self._log.note(connection, stored.pages, urls, removed)
            connection.executemany("DELETE FROM command WHERE id = ?", [(number,) for number in batch.applied])

    def restore(self, source: Source) -> dict[str, int]:
        """See `TableStore.restore`; the source is awaited in this thread."""
        with self._database.transaction() as connection:
            return asyncio.run(tables.fill(connection, source))

    def set_mark(self) -> str:
        """See `MarkedStore.set_mark`."""
        with self._database.transaction() as connection:
            return self._log.mark(connection)

    def drop_marks(self, before: str | None) -> None:
        """See `MarkedStore.drop_marks`."""
        with self._database.transaction() as connection:
            self._log.drop(connection, before)

    def queue(self, commands: Sequence[Mapping[str, Any]]) -> None:
        """See `Store.queue`."""
        texts = [(json.dumps(command),) for command in commands]
        with self._database.transaction() as connection:
            connection.executemany("INSERT INTO command (value) VALUES (?)", texts)

    def save_subscriber(self, subscriber: Subscriber) -> None:
        """See `Store.save_subscriber`."""
        with self._database.transaction() as connection:
            self._events.set_subscriber(connection, subscriber)

    def remove_subscriber(self, name: str) -> None:
        """See `Store.remove_subscriber`."""
        with self._database.transaction() as connection:
            self._events.remove_subscriber(connection, name)

    def _save_outcomes(self, connection: sqlite3.Connection, outcomes: Sequence[Outcome], stored: Stored) -> None:
        stored.look(connection, {outcome.url for outcome in outcomes if outcome.url not in stored.pages})
        pages, copies = stored.pages, stored.copies
        known = [outcome for outcome in outcomes if outcome.url in pages]
        connection.executemany(sql.ADD_OBSERVATION, [sql.observation_cells(pages[o.url], o) for o in known])
        if connection.execute(sql.ANY_SIGNAL).fetchone()[0]:
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
        new = [sql.copy_cells(pages[url], copies[url]) for url in changed - stored.copied]
        old = [sql.renewed_cells(pages[url], copies[url]) for url in changed & stored.copied]
        connection.executemany(sql.ADD_COPY, new)
        connection.executemany(sql.UPDATE_COPY, old)
        self._save_events(connection, known, stored)

    def _save_events(self, connection: sqlite3.Connection, outcomes: list[Outcome], stored: Stored) -> None:
        last, events = stored.last, list[tuple[int, Event]]()
        for outcome in outcomes:
            page = stored.pages[outcome.url]
            event = event_of(last.get(page), outcome)
            if event is not None:
                events.append((page, event))
                last[page] = last_event_after(event)
        if events:
            self._events.add(connection, events)
            self._events.trim(connection, max(event.at for _, event in events))

    def _remove(self, connection: sqlite3.Connection, url: str, at: float) -> None:
        found = connection.execute("SELECT id FROM page WHERE url = ?", (url,)).fetchone()
        if found is not None:
            last = self._events.last_events(connection, [found[0]]).get(found[0])
            if (event := removed_event(last, url, at)) is not None:
                self._events.add(connection, [(found[0], event)])
                self._events.trim(connection, at)
            self._bodies.trim(connection, found[0], 0)
            connection.execute("DELETE FROM page WHERE id = ?", found)


class Stored:
    """The pages of some URLs that are stored: by URL, with their copies; by number, what their last events said."""

    def __init__(self, connection: sqlite3.Connection, urls: Set[str]) -> None:
        self.pages, self.copies = dict[str, int](), dict[str, Copy]()
        self.copied, self.last = set[str](), dict[int, LastEvent]()
        self.look(connection, urls)

    def look(self, connection: sqlite3.Connection, urls: Set[str]) -> None:
        """Read the pages of further URLs."""
        for page, url, gone, digest, final_url, fetched_at, *rest in select_in(connection, sql.PAGES_AS_STORED, urls):
            self.pages[url] = page
            if gone is not None:
                self.last[page] = LastEvent(bool(gone), digest, final_url)
            if fetched_at is not None:
                self.copies[url] = Copy(url, fetched_at, *rest)
                self.copied.add(url)


def _save_rows(connection: sqlite3.Connection, rows: Mapping[str, Any], pages: Mapping[str, int]) -> None:
    """Write rows: by their numbers those of pages that are known to be stored, which is quicker than by URL."""
    if pages:
        all_cells = list(cells(rows))
        known = [(*row[1:], pages[row[0]]) for row in all_cells if row[0] in pages]
        connection.executemany(sql.UPDATE_PAGE, known)
        connection.executemany(sql.SET_PAGE, [row for row in all_cells if row[0] not in pages])
    else:
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
