"""SqliteStore: everything in one file. Write-ahead log, one writer, one transaction per batch of outcomes."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from recrawl.errors import StoreError
from recrawl.store.events import Event, EventLimits, Follower, event_of, removed_event
from recrawl.store.protocol import Copy, Outcome, Version
from recrawl.store.sqlite import statements as sql
from recrawl.store.sqlite.bodies import Bodies
from recrawl.store.sqlite.columns import Gathered, cells, whole
from recrawl.store.sqlite.events import EventTables
from recrawl.store.sqlite.lock import Lock
from recrawl.store.sqlite.migrate import migrate, migrations, version_of

_WAIT = 10.0  # seconds for another process that is writing
_MANY = 20_000  # rows read at a time
_ASKED = 500  # URLs in one question


class SqliteStore:
    """A store in an SQLite file; ``keep`` is how many bodies of each page are kept, ``events`` how many events.

    A store that is not a ``visit`` has the database to itself among crawlers: a second one is refused. A visit reads,
    and leaves posts for the crawler that runs.
    """

    inline = False  # calls may take long: they belong in a thread

    def __init__(
        self, path: str | Path, *, keep: int = 1, visit: bool = False, events: EventLimits | None = None
    ) -> None:
        self.path = Path(path)
        self._bodies = Bodies(0 if visit else keep)
        self._events = EventTables(events or EventLimits())
        self._lock: Lock | None = None
        self._mutex, self._reading_mutex = threading.RLock(), threading.RLock()
        self._closed = False
        if visit and not self.path.is_file():
            raise StoreError(f"{path}: there is no such database; recrawl add makes one")
        if not self.path.parent.is_dir():
            raise StoreError(f"{path}: there is no such folder")
        if not visit:
            self._lock = Lock(self.path.with_name(self.path.name + ".lock"))
        try:
            self._writer = self._connect()
            self._begin(visit)
            self._reader = self._connect()
        except sqlite3.Error as problem:
            self._release()
            raise self._failure(problem) from None
        except StoreError:
            self._release()
            raise

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
        for pragma in ("foreign_keys = ON", "synchronous = FULL", "journal_size_limit = 67108864"):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _begin(self, visit: bool) -> None:
        if visit:
            at, last = version_of(self._writer), migrations()[-1][0]
            if at != last:
                raise StoreError(
                    f"{self.path}: its schema is version {at}, not {last}; recrawl run brings it up to date"
                )
            return
        self._writer.execute("PRAGMA journal_mode = WAL")
        migrate(self._writer, str(self.path))

    # --- writing -----------------------------------------------------------------------------------------------------

    def save(
        self,
        outcomes: Sequence[Outcome] = (),
        rows: Mapping[str, Any] | None = None,
        *,
        notes: Mapping[str, Any] | None = None,
        removed: Iterable[str] = (),
        taken: Iterable[int] = (),
        at: float | None = None,
    ) -> None:
        """See `Store.save`."""
        with self._transaction() as connection:
            if rows is not None:
                self._save_rows(connection, rows)
            if outcomes:
                self._save_outcomes(connection, outcomes)
            for name, value in (notes or {}).items():
                if value is None:
                    connection.execute("DELETE FROM note WHERE name = ?", (name,))
                else:
                    connection.execute(sql.SET_NOTE, (name, json.dumps(value)))
            for url in removed:
                self._forget(connection, url, time.time() if at is None else at)
            connection.executemany("DELETE FROM post WHERE id = ?", [(number,) for number in taken])

    def post(self, posts: Sequence[Mapping[str, Any]]) -> None:
        """See `Store.post`."""
        texts = [(json.dumps(post),) for post in posts]
        with self._transaction() as connection:
            connection.executemany("INSERT INTO post (value) VALUES (?)", texts)

    def _save_rows(self, connection: sqlite3.Connection, rows: Mapping[str, Any]) -> None:
        connection.executemany(sql.SET_PAGE, cells(rows))
        connection.executemany(sql.SET_HOST, [(name, *rule) for name, rule in rows["hosts"].items()])
        connection.execute(sql.SET_NOTE, ("engine", json.dumps(whole(rows))))

    def _save_outcomes(self, connection: sqlite3.Connection, outcomes: Sequence[Outcome]) -> None:
        urls = {outcome.url for outcome in outcomes}
        pages = dict(self._ask(connection, "SELECT url, id FROM page WHERE url", urls))
        copies = self._copies(connection, urls)
        known = [outcome for outcome in outcomes if outcome.url in pages]
        connection.executemany(sql.ADD_OBSERVATION, [sql.observation_cells(pages[o.url], o) for o in known])
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
        told = self._events.told(connection, list({page for page, _ in outcomes}))
        newest = None
        for page, outcome in outcomes:
            event = event_of(told.get(page), outcome)
            if event is not None:
                told[page] = self._events.add(connection, page, event)
                newest = max(event.at, newest or event.at)
        if newest is not None:
            self._events.trim(connection, newest)

    def _forget(self, connection: sqlite3.Connection, url: str, at: float) -> None:
        found = connection.execute("SELECT id FROM page WHERE url = ?", (url,)).fetchone()
        if found is not None:
            told = self._events.told(connection, [found[0]]).get(found[0])
            if (event := removed_event(told, url, at)) is not None:
                self._events.add(connection, found[0], event)
                self._events.trim(connection, at)
            self._bodies.trim(connection, found[0], 0)
            connection.execute("DELETE FROM page WHERE id = ?", found)

    # --- reading -----------------------------------------------------------------------------------------------------

    def load(self) -> dict[str, Any] | None:
        """See `Store.load`."""
        with self._reading() as connection:
            connection.execute("BEGIN")  # one moment for all that is read
            try:
                saved = connection.execute("SELECT value FROM note WHERE name = 'engine'").fetchone()
                if saved is None:
                    return None
                hosts = {name: tuple(rule) for name, *rule in connection.execute(sql.HOSTS)}
                gathered = Gathered(connection.execute("SELECT count(*) FROM page").fetchone()[0])
                cursor = connection.execute(sql.PAGES)
                while many := cursor.fetchmany(_MANY):
                    gathered.take(many)
            finally:
                connection.execute("COMMIT")
        return {**json.loads(saved[0]), "hosts": hosts, **gathered.rows()}

    def urls(self) -> list[str]:
        """See `Store.urls`."""
        with self._reading() as connection:
            return [row[0] for row in connection.execute("SELECT url FROM page ORDER BY id")]

    def copies(self, urls: Iterable[str]) -> dict[str, Copy]:
        """See `Store.copies`."""
        with self._reading() as connection:
            return self._copies(connection, urls)

    def _copies(self, connection: sqlite3.Connection, urls: Iterable[str]) -> dict[str, Copy]:
        return {row[0]: Copy(*row) for row in self._ask(connection, sql.COPIES, urls)}

    def observations(self, url: str | None = None, *, since: float | None = None) -> Iterator[Outcome]:
        """See `Store.observations`."""
        after = 0
        while True:
            with self._reading() as connection:
                given = {"url": url, "since": since, "after": after, "many": _MANY}
                found = connection.execute(sql.observations(url, since), given).fetchall()
            yield from (sql.observed(row) for row in found)
            if len(found) < _MANY:
                return
            after = found[-1][0]

    def last_observation(self) -> Outcome | None:
        """See `Store.last_observation`."""
        with self._reading() as connection:
            row = connection.execute(sql.LAST_OBSERVATION).fetchone()
        return None if row is None else sql.observed(row)

    def failing(self, since: float) -> list[Outcome]:
        """See `Store.failing`."""
        with self._reading() as connection:
            return [sql.observed(row) for row in connection.execute(sql.FAILING, (since,))]

    def recent(self, since: float) -> dict[str, int]:
        """See `Store.recent`."""
        with self._reading() as connection:
            row = connection.execute(sql.RECENT, (since,)).fetchone()
        return dict(zip(("crawls", "changes", "failures", "flapping", "rolled_off"), row, strict=True))

    def versions(self, url: str) -> list[Version]:
        """See `Store.versions`."""
        with self._reading() as connection:
            return [Version(url, *row) for row in connection.execute(sql.VERSIONS, (url,))]

    def body(self, key: bytes) -> bytes | None:
        """See `Store.body`."""
        with self._reading() as connection:
            return self._bodies.read(connection, key)

    def noted(self, prefix: str = "") -> dict[str, Any]:
        """See `Store.noted`."""
        with self._reading() as connection:
            found = connection.execute(sql.NOTES, (prefix, prefix + "\U0010ffff"))
            return {name: json.loads(text) for name, text in found if name != "engine"}

    def events(self, after: int = 0, many: int = 200) -> list[Event]:
        """See `Store.events`."""
        with self._reading() as connection:
            return self._events.read(connection, after, many)

    def standing(self) -> Iterator[Event]:
        """See `Store.standing`."""
        last, after = self.event_counts()["last"], 0
        while True:
            with self._reading() as connection:
                found, after = self._events.standing(connection, last, after)
            if not found:
                return
            yield from found

    def followers(self) -> list[Follower]:
        """See `Store.followers`."""
        with self._reading() as connection:
            return self._events.followers(connection)

    def follow(self, follower: Follower) -> None:
        """See `Store.follow`."""
        with self._transaction() as connection:
            self._events.set_follower(connection, follower)

    def event_counts(self) -> dict[str, int]:
        """See `Store.event_counts`."""
        with self._reading() as connection:
            return self._events.totals(connection)

    def posts(self) -> list[tuple[int, dict[str, Any]]]:
        """See `Store.posts`."""
        with self._reading() as connection:
            found = connection.execute("SELECT id, value FROM post ORDER BY id")
            return [(number, json.loads(text)) for number, text in found]

    def counts(self) -> dict[str, int]:
        """See `Store.counts`."""
        tables = {"pages": "page", "copies": "copy", "observations": "observation", "bodies": "body"}
        with self._reading() as connection:
            return {
                name: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for name, table in tables.items()
            }

    def check(self) -> list[str]:
        """See `Store.check`: SQLite's own check, foreign keys, and bodies that no version has."""
        with self._reading() as connection:
            words = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
            words += [f"{row[0]}, row {row[1]}: refers to no {row[2]}" for row in connection.execute(sql.CHECK_KEYS)]
            loose = connection.execute(sql.LOOSE_BODIES).fetchone()[0]
            words += self._events.check(connection)
        return words + ([f"{loose} bodies belong to no page"] if loose else [])

    # --- the connection ----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """See `Store.close`."""
        with self._mutex, self._reading_mutex:
            if not self._closed:
                self._closed = True
                self._reader.close()
                self._writer.close()
                self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._mutex:
            self._check_open()
            connection = self._writer
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException as problem:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if isinstance(problem, sqlite3.Error):
                    raise self._failure(problem) from None
                raise

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._reading_mutex:
            self._check_open()
            try:
                yield self._reader
            except sqlite3.Error as problem:
                raise self._failure(problem) from None

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.path}: is closed")

    def _failure(self, problem: sqlite3.Error) -> StoreError:
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return StoreError(f"{self.path}: the disk is full; the last batch was not written, all before it was")
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreError(f"{self.path}: another process keeps it locked (waited {_WAIT:g} s)")
        return StoreError(f"{self.path}: {problem}")

    @staticmethod
    def _ask(connection: sqlite3.Connection, question: str, urls: Iterable[str]) -> Iterator[tuple[Any, ...]]:
        asked = list(urls)
        for first in range(0, len(asked), _ASKED):
            part = asked[first : first + _ASKED]
            marks = ", ".join("?" * len(part))
            yield from connection.execute(f"{question} IN ({marks})", part)
