"""The SQL of `PostgresStore`, and how arrays of its columns are made and rows are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recrawl.store.columns import FLAGS, REALS, WHOLES
from recrawl.store.protocol import Copy, Outcome, body_key
from recrawl.store.tables import COPY, OBSERVATION

_TYPES = {float: "double precision", int: "bigint", bool: "boolean", str: "text", bytes: "bytea"}
FIXED = (*REALS, "shape", "rate", *WHOLES, *FLAGS)  # columns of pages of fixed width: never NULL
PAGE: dict[str, type] = {
    "key": bytes,
    "url": str,
    **dict.fromkeys((*REALS, "shape", "rate"), float),
    **dict.fromkeys(WHOLES, int),
    **dict.fromkeys(FLAGS, bool),
    "more": str,
}


def key_of(text: str) -> bytes:
    """By which a text of any length is found."""
    return body_key(text.encode())


def keys_of(texts: Iterable[str]) -> list[bytes]:
    """The keys of texts."""
    return [key_of(text) for text in texts]


def plain(text: str | None) -> str | None:
    """A text without NUL, which PostgreSQL cannot hold."""
    return text.replace("\0", "\ufffd") if text is not None and "\0" in text else text


def unnested(columns: Mapping[str, type], first: int = 1) -> str:
    """``unnest`` of one array per column, from a number of parameters on.

    >>> unnested({"page": int, "at": float})
    'unnest($1::bigint[], $2::double precision[])'
    """
    arrays = (f"${k}::{_TYPES[kind]}[]" for k, kind in enumerate(columns.values(), first))
    return f"unnest({', '.join(arrays)})"


def upsert(table: str, key: str, columns: Mapping[str, type], source: str | None = None) -> str:
    """Insert rows, or replace those with the same key: rows of arrays, or of a table."""
    names, keys = ", ".join(columns), key.split(", ")
    rest = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in keys)
    rows = f"SELECT {names} FROM {source or f'{unnested(columns)} AS given ({names})'}"
    return f"INSERT INTO {table} ({names}) {rows} ON CONFLICT ({key}) DO UPDATE SET {rest}"


def arrays(rows: Sequence[Sequence[Any]], n: int) -> list[list[Any]]:
    """Rows as one list per column."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(n)]


_KEYED = {"key": bytes, "name": str}
SET_PAGES = upsert("page", "key", PAGE)
STAGE = "CREATE TEMPORARY TABLE staged_page ON COMMIT DROP AS SELECT {} FROM page LIMIT 0".format(", ".join(PAGE))
SET_STAGED = upsert("page", "key", PAGE, "staged_page")
SET_NOTES = upsert("note", "key", {**_KEYED, "value": str})
SET_HOSTS = upsert("host", "key", {**_KEYED, "spacing": float, "concurrency": float, "held_until": float})
SET_COPIES = upsert("copy", "page", {"page": int, **COPY})
SET_LISTINGS = upsert("listing", "key", {"key": bytes, "url": str, "state": str, "entries": bytes})
SET_LISTING_STATES = (
    "INSERT INTO listing (key, url, state, entries) SELECT key, url, state, ''::bytea FROM "
    f"{unnested({'key': bytes, 'url': str, 'state': str})} AS given (key, url, state) "
    "ON CONFLICT (key) DO UPDATE SET state = excluded.state"
)
SET_SIGNALS = (
    "INSERT INTO signal (page, source, at, changed_at, resolution) "
    "SELECT page.id, source, at, changed_at, resolution FROM "
    f"{unnested({'key': bytes, 'source': int, 'at': float, 'changed_at': float, 'resolution': float})} "
    "AS given (key, source, at, changed_at, resolution) JOIN page ON page.key = given.key "
    "ON CONFLICT (page, source) DO UPDATE SET at = excluded.at, changed_at = excluded.changed_at, "
    "resolution = excluded.resolution"
)
LEASE = {"id": str, "url": str, "picked_at": float, "until": float, "state": str, "conditional": bool}
SET_LEASES = upsert("lease", "id", LEASE)
LEASES = f"SELECT {', '.join(LEASE)} FROM lease WHERE {{}} AND until > $2 ORDER BY id"
END_SIGNALS = (
    f"DELETE FROM signal USING {unnested({'page': int, 'began_at': float})} AS ended (page, began_at) "
    "WHERE signal.page = ended.page AND signal.at < ended.began_at"
)
KNOWN = (
    f"SELECT page.id, url, {', '.join(f'copy.{name}' for name in COPY)}, last_event.gone, last_event.digest, "
    "last_event.final_url FROM page LEFT JOIN copy ON copy.page = page.id "
    "LEFT JOIN last_event ON last_event.page = page.id WHERE key = ANY ($1::bytea[])"
)

PREFIXED = "left({0}, 500) >= left($1, 500) AND left({0}, 500) <= left($2, 500) AND {0} >= $1 AND {0} < $2"
URLS_FROM = f"SELECT url FROM (SELECT id, url FROM page WHERE {PREFIXED.format('url')} LIMIT $3) AS chosen ORDER BY id"
URLS = "SELECT url FROM page ORDER BY id LIMIT $1"
SIGNALS = (
    "SELECT url, source, at, signal.changed_at, resolution FROM signal JOIN page ON page.id = signal.page "
    "{} ORDER BY page, source"
)
TOTALS = (
    "SELECT count(*), count(*) FILTER (WHERE failures > 0), count(*) FILTER (WHERE times_gone > 0), max(fetched_at), "
    "count(*) FILTER (WHERE watched_from != 0.0), count(*) FILTER (WHERE importance >= $1) FROM page"
)
COPIES = (
    f"SELECT url, {', '.join(f'copy.{name}' for name in COPY)} FROM page JOIN copy ON copy.page = page.id "
    "WHERE key = ANY ($1::bytea[])"
)
VERSIONS = (
    "SELECT version.fetched_at, version.key, size FROM version JOIN body ON body.key = version.key "
    "JOIN page ON page.id = version.page WHERE page.key = $1 ORDER BY version.id DESC"
)
RECENT = (
    "SELECT count(*), count(*) FILTER (WHERE changed), count(failure), count(*) FILTER (WHERE flapping), "
    "count(*) FILTER (WHERE rolled_off) FROM observation WHERE began_at >= $1"
)
REQUESTS = (
    "SELECT url, n, n_recent FROM (SELECT page, sum(requests)::bigint AS n, "
    "coalesce(sum(requests) FILTER (WHERE began_at >= $1), 0)::bigint AS n_recent FROM observation "
    "WHERE began_at >= $2 GROUP BY page) AS made JOIN page ON page.id = made.page ORDER BY made.page"
)
NOTES = f"SELECT name, value FROM note WHERE {PREFIXED.format('name')} AND name != 'engine' ORDER BY name"
LOOSE_BODIES = "SELECT count(*) FROM body WHERE NOT EXISTS (SELECT 1 FROM version WHERE version.key = body.key)"
_OBSERVED = (
    f"SELECT observation.id, url, {', '.join(f'observation.{name}' for name in OBSERVATION)} "
    "FROM observation JOIN page ON page.id = observation.page"
)
LAST_OBSERVATION = f"{_OBSERVED} ORDER BY observation.id DESC LIMIT 1"
FAILING = (
    f"{_OBSERVED} WHERE observation.failure IS NOT NULL AND observation.id IN "
    "(SELECT (SELECT max(id) FROM observation WHERE observation.page = chosen.id) FROM "
    "(SELECT id FROM page WHERE failures > 0 UNION "
    "SELECT page FROM observation WHERE began_at >= $1 AND failure = 'robots') AS chosen) ORDER BY observation.id"
)


def observations(url: str | None, since: float | None, after: int, many: int) -> tuple[str, list[Any]]:
    """The question for observations after one, of all pages or one, from a time on; and its parameters."""
    where = "WHERE observation.id > $1"
    given: list[Any] = [after, many]
    if url is not None:
        given.append(key_of(url))
        where += f" AND page.key = ${len(given)}"
    if since is not None:
        given.append(since)
        where += f" AND began_at >= ${len(given)}"
    return f"{_OBSERVED} {where} ORDER BY observation.id LIMIT $2", given


def observed(row: Sequence[Any]) -> Outcome:
    """An outcome from a row of observations."""
    return Outcome(url=row[1], **dict(zip(OBSERVATION, row[2:], strict=True)))


def observation_cells(page: int, outcome: Outcome) -> tuple[Any, ...]:
    """A row of observations from an outcome."""
    cells = (getattr(outcome, name) for name in OBSERVATION)
    return (page, *(plain(cell) if isinstance(cell, str) else cell for cell in cells))


def copy_cells(page: int, copy: Copy) -> tuple[Any, ...]:
    """A row of copies."""
    cells = (getattr(copy, name) for name in COPY)
    return (page, *(plain(cell) if isinstance(cell, str) else cell for cell in cells))
