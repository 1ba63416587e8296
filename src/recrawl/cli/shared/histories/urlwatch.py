"""The stores of urlwatch (table ``CacheEntry``) and of its fork webchanges (table ``webchanges``), SQLite files.

A row is saved when a page has changed, when a check has failed, and when a page works again. Its page is known by the
SHA-1 of its address only: the list of jobs gives the addresses. One run checks all jobs, so a job without a row in a
run in which another job has one was unchanged then.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from recrawl.cli.shared.histories.checks import MOST, between
from recrawl.cli.shared.histories.entries import (
    LARGEST,
    BadEntryError,
    Losses,
    Record,
    digest_of,
    page_of,
    row,
    time_of,
)
from recrawl.cli.shared.histories.msgpack import unpack
from recrawl.errors import ParameterError

_DAMAGE = (sqlite3.Error, UnicodeError)  # messages about damage may be undecodable themselves
_RUN = 300.0  # seconds: rows of one run are not further apart
_LARGEST_LIST = 16 << 20  # bytes of a list of jobs
_GUID = re.compile(r"[0-9a-f]{40}")
_ADDRESS = re.compile(r"""^(?:-\s+)?(?:url|navigate|user_visible_url)\s*:\s*(.+?)\s*$""")
_LISTS = ("urls.yaml", "urls.txt", "jobs.yaml", "urls.yml", "jobs.yml")
SNAPSHOTS, NAMELESS = "broken snapshots, left out", "jobs whose address is not in the list of jobs, left out"
SECOND = "further jobs of the same page, left out"


class Saved(NamedTuple):
    """One row of a store: a digest, or None for a check that failed."""

    at: float
    digest: str | None


class UrlwatchStore:
    """The snapshots of a store as rows of a crawl log.

    ``jobs`` is the list of jobs (YAML, or one address per line); None looks for it beside the store. ``every`` is the
    time between two runs in seconds, where runs without any change are to be counted too. ``nameless`` keeps jobs whose
    address is not known, under the name ``urlwatch/<SHA-1>``.
    """

    def __init__(self, path: Path, losses: Losses, jobs: Path | None, every: float | None, nameless: bool) -> None:
        self.notes: list[str] = []
        self._path, self._losses, self._every, self._nameless = path, losses, every, nameless
        self._addresses = _addresses(_list_of(path) if jobs is None else [jobs], jobs is not None)

    def __iter__(self) -> Iterator[Record]:
        saved: dict[str, list[Saved]] = {}
        for guid, one in self._saved():
            saved.setdefault(guid, []).append(one)
        runs = _runs(one.at for rows in saved.values() for one in rows)
        if self._every is not None:
            runs = _with_between(runs, self._every)
        for url, rows in self._named(saved):
            yield from _rows(url, sorted(rows, key=lambda one: one.at), runs)
        self.notes = [
            "urlwatch keeps changes and failures only: a page counts as unchanged in a run in which another page has "
            f"an entry{'' if self._every else '; runs without any entry are not known (--every says their distance)'}",
            *self._losses.notes(),
        ]

    def _named(self, saved: dict[str, list[Saved]]) -> Iterator[tuple[str, list[Saved]]]:
        seen: set[str] = set()
        for guid, rows in saved.items():
            address = self._addresses.get(guid)
            if address is None and not self._nameless:
                self._losses.add(NAMELESS, f"job {guid}", "name the list with --jobs")
                continue
            try:
                url = f"urlwatch/{guid}" if address is None else page_of(address)
            except BadEntryError as bad:
                self._losses.add("jobs that are no web pages, left out", f"job {guid}", bad)
                continue
            if url in seen:
                self._losses.add(SECOND, f"job {guid}", url)
                continue
            seen.add(url)
            yield url, rows

    def _saved(self) -> Iterator[tuple[str, Saved]]:
        db = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            _guard(db)
            query, entry = _query(db, self._path)
            cursor = db.execute(query)
            while True:
                try:
                    cells = cursor.fetchone()
                except _DAMAGE as problem:
                    self._losses.add("damaged parts of the store, left out", "SQLite", problem)
                    return
                if cells is None:
                    return
                try:
                    yield entry(cells)
                except BadEntryError as bad:
                    self._losses.add(SNAPSHOTS, f"row {cells[0]}", bad)
        except _DAMAGE as problem:
            raise ParameterError(f"{self._path}: cannot be read as SQLite: {problem}") from None
        finally:
            db.close()


def _guard(db: sqlite3.Connection) -> None:
    """SQL of the file's own schema is not trusted, and no value may be larger than twice LARGEST."""
    db.text_factory = bytes
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * LARGEST)
    db.execute("PRAGMA trusted_schema = OFF")


def _query(db: sqlite3.Connection, path: Path) -> tuple[str, Any]:
    """The question that gives a store's rows, and the function that reads one of them."""
    listed = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    tables = {name.decode("utf-8", "replace") for (name,) in listed}
    if "CacheEntry" in tables:
        names = {cells[1].decode("utf-8", "replace") for cells in db.execute("PRAGMA table_info('CacheEntry')")}
        tries = "tries" if "tries" in names else "0"
        data = f"CASE WHEN length(data) > {LARGEST} THEN NULL ELSE data END"
        return f"SELECT rowid, guid, timestamp, {data}, {tries} FROM CacheEntry", _entry
    if "webchanges" in tables:
        data = f"CASE WHEN length(msgpack_data) > {LARGEST} THEN NULL ELSE msgpack_data END"
        return f"SELECT rowid, uuid, timestamp, {data} FROM webchanges", _packed_entry
    if "outcomes" in tables or "pages" in tables:
        raise ParameterError(f"{path}: is a database; write its log with recrawl export --observations")
    known = ", ".join(sorted(tables)[:8]) or "none"
    raise ParameterError(f"{path}: is SQLite, but no store of urlwatch or webchanges; its tables are {known[:200]}")


def _entry(cells: tuple[Any, ...]) -> tuple[str, Saved]:
    _, guid, at, data, tries = cells
    return _guid(guid), _state(at, data, tries)


def _packed_entry(cells: tuple[Any, ...]) -> tuple[str, Saved]:
    _, guid, at, packed = cells
    try:
        found = unpack(packed) if isinstance(packed, bytes) else None
    except ValueError as problem:
        raise BadEntryError(f"its data {problem}") from None
    if not isinstance(found, dict):
        raise BadEntryError("has no data")
    return _guid(guid), _state(at, found.get("d"), found.get("t"))


def _guid(cell: object) -> str:
    text = cell.decode("ascii", "replace") if isinstance(cell, bytes) else str(cell)
    if not _GUID.fullmatch(text):
        raise BadEntryError(f"{text[:60]!r} is not a SHA-1")
    return text


def _state(at: object, data: object, tries: object) -> Saved:
    """Lines count, not how they end: that is how the tool compares."""
    moment = time_of(at)
    if isinstance(tries, int) and tries > 0:
        return Saved(moment, None)
    text = data.encode("utf-8", "replace") if isinstance(data, str) else data
    if not isinstance(text, bytes):
        raise BadEntryError("has no data")
    return Saved(moment, digest_of(b"\n".join(text.splitlines())))


def _runs(times: Iterable[float]) -> list[float]:
    """The time at which each run began."""
    runs: list[float] = []
    before = -float("inf")
    for at in sorted(times):
        if at - before > _RUN:
            runs.append(at)
        before = at
    return runs


def _with_between(runs: list[float], every: float) -> list[float]:
    found = runs[:1]
    for before, after in pairwise(runs):
        found += [*between(before, after, max(every, (after - before) / MOST)), after]
    return found


def _rows(url: str, saved: list[Saved], runs: list[float]) -> Iterator[Record]:
    """The rows of a job, and an unchanged one for each later run in which it has none."""
    for one, after in zip(saved, [*saved[1:], None], strict=True):
        if one.digest is None:
            yield row(url, one.at, failure="error")
            continue  # a failing job has a row in every run
        yield row(url, one.at, digest=one.digest)
        mine = bisect_right(runs, one.at)
        end = len(runs) if after is None else bisect_right(runs, after.at) - 1
        quiet = runs[mine:end]
        step = -(-len(quiet) // MOST) or 1
        for at in quiet[::-1][::step][::-1]:
            yield row(url, at, digest=one.digest)


def _list_of(path: Path) -> list[Path]:
    """Where the list of jobs may be: beside the store, or in the folder of settings."""
    folder = path.absolute().parent
    places = [folder, folder.parent.parent / ".config" / folder.name]
    return [place / name for place in places for name in _LISTS]


def _addresses(lists: list[Path], required: bool) -> dict[str, str]:
    """Addresses by their SHA-1, from every line that may hold one: what is none matches no digest."""
    found: dict[str, str] = {}
    for path in lists:
        try:
            with path.open("rb") as file:
                text = file.read(_LARGEST_LIST).decode("utf-8", "replace")
        except OSError:
            if required:
                raise
            continue
        for line in text.splitlines():
            for address in _candidates(line):
                found[hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()] = address
    return found


def _candidates(line: str) -> list[str]:
    """Texts of a line that may be an address: a value of YAML, with and without quotes, or the first word.

    >>> _candidates("url: 'https://a.example/?q=#1'  # daily")
    ["'https://a.example/?q=#1'  # daily", "'https://a.example/?q=#1'", 'https://a.example/?q=#1']
    """
    match = _ADDRESS.match(line.strip())
    if match is None:
        return line.split()[:1]
    value = match[1]
    bare = re.split(r"\s#", value, maxsplit=1)[0].strip()
    found = [value, bare]
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "'\"":
        found.append(bare[1:-1])
    return found
