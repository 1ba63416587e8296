"""Reads: what `SqliteStore` answers, beside whatever is being written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from recrawl.store.columns import Gathered
from recrawl.store.events import Event, Subscriber
from recrawl.store.protocol import Copy, Outcome, Version
from recrawl.store.sqlite import statements as sql
from recrawl.store.sqlite.bodies import Bodies
from recrawl.store.sqlite.database import Database, select_in
from recrawl.store.sqlite.events import EventTables

MANY = 20_000  # rows read at a time


class Reads:
    """The blocking calls that read."""

    def __init__(self, database: Database, bodies: Bodies, events: EventTables) -> None:
        self._database, self._bodies, self._events = database, bodies, events

    def load(self) -> dict[str, Any] | None:
        """See `Store.load`."""
        with self._database.reading() as connection:
            connection.execute("BEGIN")  # one moment for all that is read
            try:
                saved = connection.execute("SELECT value FROM note WHERE name = 'engine'").fetchone()
                if saved is None:
                    return None
                hosts = {name: tuple(rule) for name, *rule in connection.execute(sql.HOSTS)}
                gathered = Gathered(connection.execute("SELECT count(*) FROM page").fetchone()[0])
                cursor = connection.execute(sql.PAGES)
                while many := cursor.fetchmany(MANY):
                    gathered.take(many)
            finally:
                connection.execute("COMMIT")
        return {**json.loads(saved[0]), "hosts": hosts, **gathered.rows()}

    def urls(self) -> list[str]:
        """See `Store.urls`."""
        with self._database.reading() as connection:
            return [row[0] for row in connection.execute("SELECT url FROM page ORDER BY id")]

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

    def commands(self) -> list[tuple[int, dict[str, Any]]]:
        """See `Store.commands`."""
        with self._database.reading() as connection:
            found = connection.execute("SELECT id, value FROM post ORDER BY id")
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
