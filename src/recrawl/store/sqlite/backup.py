"""Backup: a copy of a database at one moment, while a crawl writes to it.

The copy is made inside one read transaction. The write-ahead log lets the crawl go on writing meanwhile, and keeps what
it writes until the copy is complete. The copy is checked and opened before it gets its name.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from recrawl._system.files import whole_file
from recrawl.errors import ParameterError, StoreError
from recrawl.store.sqlite.lock import holder_of
from recrawl.store.sqlite.migrate import migrations, newer_schema, version_of

_STEP = 4096  # pages of the file that are copied at a time
Progress = Callable[[int, int], None]  # gets copied pages of the file, and all of them


class Backup(NamedTuple):
    """What a backup holds."""

    path: Path
    size: int  # bytes
    pages: int
    observations: int


def back_up(database: str | Path, to: str | Path, *, progress: Progress | None = None) -> Backup:
    """Copy a database to a file, which appears when it is complete; a file that is there is replaced."""
    source, goal = Path(database), Path(to)
    if not source.is_file():
        raise StoreError(f"{database}: there is no such database")
    if not goal.parent.is_dir():
        raise StoreError(f"{to}: there is no such folder")
    if goal.exists() and (goal.samefile(source) or holder_of(goal) is not None):
        raise ParameterError(f"{to}: is a database in use: give another name")
    with whole_file(goal) as partial:
        try:
            _copy(source, partial, progress)
            return _checked(partial, goal)
        except sqlite3.Error as problem:
            raise StoreError(f"{to}: {problem}") from None
        finally:
            for suffix in ("-wal", "-shm", "-journal"):
                partial.with_name(partial.name + suffix).unlink(missing_ok=True)


def backup_name(database: str | Path, now: float) -> str:
    """The name of a backup in a folder.

    >>> backup_name("data/recrawl.db", 0.0)
    'recrawl-19700101T000000Z.db'
    """
    path = Path(database)
    return f"{path.stem}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now))}{path.suffix or '.db'}"


def old_backups(database: str | Path, folder: Path, keep: int) -> list[Path]:
    """The backups of a database in a folder, but the newest."""
    path = Path(database)
    form = re.compile(re.escape(path.stem) + r"-\d{8}T\d{6}Z" + re.escape(path.suffix or ".db"), re.ASCII)
    found = sorted((one for one in folder.iterdir() if form.fullmatch(one.name)), key=lambda one: one.name)
    return found[: max(len(found) - keep, 0)]


def _copy(source: Path, partial: Path, progress: Progress | None) -> None:
    """Copy what a database holds now; what is written meanwhile is not copied, nor does it begin the copy again."""
    with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)) as there:
        try:
            last = migrations()[-1][0]
            if (at := version_of(there)) > last:
                raise newer_schema(str(source), at, last)
            there.execute("BEGIN")
            if not there.execute("SELECT count(*) FROM sqlite_master WHERE name = 'observation'").fetchone()[0]:
                raise StoreError(f"{source}: is not a database of recrawl")
        except sqlite3.DatabaseError as problem:
            raise StoreError(f"{source}: {problem}") from None
        with closing(sqlite3.connect(partial, isolation_level=None)) as here:

            def copied(_: int, remaining: int, total: int) -> None:
                if progress is not None:
                    progress(total - remaining, total)

            there.backup(here, pages=_STEP, progress=copied)
        there.execute("ROLLBACK")


def _checked(partial: Path, goal: Path) -> Backup:
    """Open the copy, check all of it, and write it to the disk."""
    with closing(sqlite3.connect(partial, isolation_level=None)) as copy:
        problems = [row[0] for row in copy.execute("PRAGMA integrity_check") if row[0] != "ok"]
        problems += [f"row {row[1]} of {row[0]} refers to nothing" for row in copy.execute("PRAGMA foreign_key_check")]
        if problems:
            raise StoreError(f"{goal}: the copy is damaged: {problems[0]}")
        pages, observations = (
            copy.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("page", "observation")
        )
    with open(partial, "rb") as file:
        os.fsync(file.fileno())
    return Backup(goal, partial.stat().st_size, pages, observations)
