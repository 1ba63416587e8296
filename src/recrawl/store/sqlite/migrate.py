"""Migrations: the schema as numbered SQL files, each applied once, in one transaction with the number it leads to."""

from __future__ import annotations

import sqlite3
from importlib.resources import files

from recrawl.errors import StoreError


def migrations() -> list[tuple[int, str]]:
    """Number and text of every migration, in order."""
    found = [file for file in (files("recrawl.store") / "migrations").iterdir() if file.name.endswith(".sql")]
    return sorted((int(file.name[:4]), file.read_text()) for file in found)


def version_of(connection: sqlite3.Connection) -> int:
    """The number of the last migration that was applied."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def newer_schema(name: str, at: int, last: int) -> StoreError:
    """The error for a database that a newer recrawl wrote."""
    return StoreError(
        f"{name}: its schema is version {at}, this recrawl knows only {last}; a newer recrawl wrote it: update recrawl"
    )


def migrate(connection: sqlite3.Connection, name: str, upto: int | None = None) -> int:
    """Bring a database up to date; how many migrations were applied. One from the future is refused."""
    known = migrations()
    at, last = version_of(connection), known[-1][0]
    if at > last:
        raise newer_schema(name, at, last)
    if at == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise StoreError(f"{name}: is a database, but not one of recrawl")
    due = [(number, text) for number, text in known if at < number <= (last if upto is None else upto)]
    for number, text in due:
        try:
            connection.executescript(f"BEGIN IMMEDIATE;\n{text}\nPRAGMA user_version = {number};\nCOMMIT;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.rollback()
            raise
    return len(due)
