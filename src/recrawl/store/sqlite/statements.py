"""The SQL of `SqliteStore`, and how rows of its tables are made and read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

from recrawl.store.columns import NUMBERS, TABLE
from recrawl.store.leases import Lease
from recrawl.store.protocol import Copy, Outcome
from recrawl.store.signals import PendingSignal
from recrawl.store.tables import COPY, OBSERVATION


def _marks(names: tuple[str, ...]) -> str:
    return ", ".join("?" * len(names))


def _upsert(table: str, key: str, names: tuple[str, ...]) -> str:
    rest = ", ".join(f"{name} = excluded.{name}" for name in names if name != key)
    columns = ", ".join(names)
    return f"INSERT INTO {table} ({columns}) VALUES ({_marks(names)}) ON CONFLICT ({key}) DO UPDATE SET {rest}"


_COPY, _OBSERVATION = tuple(COPY), tuple(OBSERVATION)

SET_NOTE = _upsert("note", "name", ("name", "value"))
SET_PAGE = _upsert("page", "url", TABLE)
UPDATE_PAGE = f"UPDATE page SET {', '.join(f'{name} = ?' for name in TABLE[1:])} WHERE id = ?"  # without its URL
SET_HOST = _upsert("host", "name", ("name", "spacing", "concurrency", "held_until"))
ADD_COPY = _upsert("copy", "page", ("page", *_COPY))
UPDATE_COPY = f"UPDATE copy SET {', '.join(f'{name} = ?' for name in _COPY)} WHERE page = ?"
ADD_OBSERVATION = (
    f"INSERT INTO observation (page, {', '.join(_OBSERVATION)}) VALUES ({_marks(('page', *_OBSERVATION))})"
)
_SIGNALS_AT_ONCE = 64  # rows of one statement: the interpreter is free for other threads while it runs


def set_signals(n: int) -> str:
    """The statement that writes n pending signals; those of URLs that are no page are left out."""
    values = ", ".join([f"({_marks(PendingSignal._fields)})"] * n)
    return (
        "INSERT INTO signal (page, source, at, changed_at, resolution) "
        "SELECT page.id, column2, column3, column4, column5 "
        f"FROM (VALUES {values}) CROSS JOIN page ON page.url = column1 WHERE true "
        "ON CONFLICT (page, source) DO UPDATE SET at = excluded.at, changed_at = excluded.changed_at, "
        "resolution = excluded.resolution"
    )


_SET_SIGNAL, _SET_SIGNALS = set_signals(1), set_signals(_SIGNALS_AT_ONCE)
ANY_SIGNAL = "SELECT EXISTS (SELECT 1 FROM signal)"
END_SIGNALS = "DELETE FROM signal WHERE page = ? AND at < ?"
SET_LISTING = _upsert("listing", "url", ("url", "state", "entries"))
SET_LISTING_STATE = (
    "INSERT INTO listing (url, state, entries) VALUES (?, ?, x'') "
    "ON CONFLICT (url) DO UPDATE SET state = excluded.state"
)  # fmt: skip
LISTINGS = "SELECT url, state FROM listing ORDER BY url"
SIGNALS = (
    "SELECT signal.page AS page, source, url, source, at, signal.changed_at, resolution "
    "FROM signal JOIN page ON page.id = signal.page"
)
PAGES = f"SELECT {', '.join(TABLE)} FROM page"
PAGE_NUMBERS = f"SELECT {', '.join(NUMBERS)} FROM page"
PAGE_TEXTS = "SELECT url, more FROM page"
URLS = "SELECT url FROM page ORDER BY id LIMIT ?"
URLS_FROM = "SELECT url FROM (SELECT id, url FROM page WHERE url >= ? AND url < ? LIMIT ?) ORDER BY id"
IMPORTANCE = "SELECT id, importance FROM page ORDER BY id"
TOTALS = (
    "SELECT count(*), coalesce(sum(failures > 0), 0), coalesce(sum(times_gone > 0), 0), max(fetched_at), "
    "coalesce(sum(watched_from != 0.0), 0), coalesce(sum(importance >= ?), 0) FROM page"
)
HOSTS = "SELECT name, spacing, concurrency, held_until FROM host"
COPIES = (
    f"SELECT url, {', '.join(f'copy.{name}' for name in _COPY)} FROM page JOIN copy ON copy.page = page.id WHERE url"
)
PAGES_AS_STORED = (
    "SELECT page.id, url, last_event.gone, last_event.digest, last_event.final_url, "
    f"{', '.join(f'copy.{name}' for name in _COPY)} FROM page LEFT JOIN copy ON copy.page = page.id "
    "LEFT JOIN last_event ON last_event.page = page.id WHERE url"
)
VERSIONS = (
    "SELECT version.fetched_at, version.key, size FROM version JOIN body ON body.key = version.key "
    "JOIN page ON page.id = version.page WHERE url = ? ORDER BY version.id DESC"
)
RECENT = (
    "SELECT count(*), coalesce(sum(changed), 0), count(failure), coalesce(sum(flapping), 0), "
    "coalesce(sum(rolled_off), 0) FROM observation WHERE began_at >= ?"
)
REQUESTS = (
    "SELECT url, sum(requests), sum(requests * (began_at >= ?)) FROM observation "
    "JOIN page ON page.id = observation.page WHERE began_at >= ? GROUP BY observation.page"
)
NOTES = "SELECT name, value FROM note WHERE name >= ? AND name < ? ORDER BY name"
_LEASE = Lease._fields
SET_LEASE = _upsert("lease", "id", _LEASE)
LEASES = f"SELECT {', '.join(_LEASE)} FROM lease"
CHECK_KEYS = "PRAGMA foreign_key_check"
LOOSE_BODIES = "SELECT count(*) FROM body WHERE NOT EXISTS (SELECT 1 FROM version WHERE version.key = body.key)"


_OBSERVED = (
    f"SELECT observation.id, url, {', '.join(f'observation.{name}' for name in _OBSERVATION)} "
    "FROM observation JOIN page ON page.id = observation.page"
)
LAST_OBSERVATION = f"{_OBSERVED} ORDER BY observation.id DESC LIMIT 1"
FAILING = (
    f"{_OBSERVED} WHERE observation.failure IS NOT NULL AND observation.id IN "
    "(SELECT (SELECT max(id) FROM observation WHERE observation.page = some.id) FROM "
    "(SELECT id FROM page WHERE failures > 0 UNION "
    "SELECT page FROM observation WHERE began_at >= ? AND failure = 'robots') AS some) ORDER BY observation.id"
)


def observations(url: str | None, since: float | None) -> str:
    """The question for observations after one, of all pages or one, from a time on."""
    where = "WHERE observation.id > :after"
    where += " AND url = :url" if url is not None else ""
    where += " AND began_at >= :since" if since is not None else ""
    return f"{_OBSERVED} {where} ORDER BY observation.id LIMIT :many"


def observed(row: tuple[Any, ...]) -> Outcome:
    """An outcome from a row of observations."""
    values = dict(zip(_OBSERVATION, row[2:], strict=True))
    for name in ("gone", "flapping", "rolled_off"):
        values[name] = bool(values[name])
    values["changed"] = None if values["changed"] is None else bool(values["changed"])
    return Outcome(url=row[1], **values)


_observed_cells, _copied_cells = attrgetter(*_OBSERVATION), attrgetter(*_COPY)


def observation_cells(page: int, outcome: Outcome) -> tuple[Any, ...]:
    """A row of observations from an outcome."""
    return (page, *_observed_cells(outcome))


def lease_of(row: tuple[Any, ...]) -> Lease:
    """A lease from a row of LEASES."""
    name, url, picked_at, until, state, conditional = row
    return Lease(name, url, picked_at, until, state, bool(conditional))


def save_signals(connection: sqlite3.Connection, signals: Sequence[PendingSignal]) -> None:
    """Write pending signals, the later of two about one page and source."""
    whole = len(signals) - len(signals) % _SIGNALS_AT_ONCE
    groups = (signals[first : first + _SIGNALS_AT_ONCE] for first in range(0, whole, _SIGNALS_AT_ONCE))
    connection.executemany(_SET_SIGNALS, (list(chain.from_iterable(group)) for group in groups))
    connection.executemany(_SET_SIGNAL, signals[whole:])


def copy_cells(page: int, copy: Copy) -> tuple[Any, ...]:
    """The values of ADD_COPY."""
    return (page, *_copied_cells(copy))


def renewed_cells(page: int, copy: Copy) -> tuple[Any, ...]:
    """The values of UPDATE_COPY."""
    return (*_copied_cells(copy), page)


def copies(rows: Iterable[tuple[Any, ...]]) -> dict[str, Copy]:
    """Copies by URL, from rows of COPIES."""
    return {row[0]: Copy(*row) for row in rows}
