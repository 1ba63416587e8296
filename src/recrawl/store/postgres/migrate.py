"""Migrations of PostgreSQL: numbered SQL files, each applied once, in one transaction with the number it leads to."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from recrawl.errors import StoreError, StoreMissingError
from recrawl.store.postgres.address import Address
from recrawl.store.sqlite.migrate import newer_schema

CLUSTER = "cluster"  # the table that makes a schema a cluster's
_VERSION = "recrawl_schema_version"


def migrations() -> list[tuple[int, str]]:
    """Number and text of every migration, in order."""
    folder = files("recrawl.store.postgres") / "migrations"
    return sorted((int(file.name[:4]), file.read_text()) for file in folder.iterdir() if file.name.endswith(".sql"))


async def version_of(connection: Any, address: Address) -> int | None:
    """The number of the last migration that was applied; 0: none; None: there is no such schema."""
    if await connection.fetchval("SELECT to_regnamespace($1)", address.schema) is None:
        return None
    if await connection.fetchval("SELECT to_regclass($1)", f"{address.schema}.{_VERSION}") is None:
        return 0
    return int(await connection.fetchval(f"SELECT number FROM {address.schema}.{_VERSION}"))


async def migrate(connection: Any, address: Address, *, create: bool = True) -> int:
    """Bring a schema up to date, and make it; how many migrations were applied. One from the future is refused."""
    await _check_no_cluster(connection, address)
    known = migrations()
    at, last = await version_of(connection, address), known[-1][0]
    if not at and not create:
        raise _missing(address)
    if at is not None and at > last:
        raise newer_schema(address.name, at, last)
    if at == 0 and await connection.fetchval(
        "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace($1)::oid", address.schema
    ):
        raise StoreError(f"{address.name}: schema {address.schema} has tables, but not those of recrawl")
    async with connection.transaction():
        if not at:
            await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {address.schema}")
            await connection.execute(f"CREATE TABLE {_VERSION} (number integer NOT NULL)")
            await connection.execute(f"INSERT INTO {_VERSION} VALUES (0)")
    due = [(number, text) for number, text in known if number > (at or 0)]
    for number, text in due:
        async with connection.transaction():
            await connection.execute(text)
            await connection.execute(f"UPDATE {_VERSION} SET number = {number}")
    return len(due)


async def check_version(connection: Any, address: Address) -> None:
    """Raise StoreError unless the schema is there and up to date."""
    await _check_no_cluster(connection, address)
    at, last = await version_of(connection, address), migrations()[-1][0]
    if not at:
        raise _missing(address)
    if at > last:
        raise newer_schema(address.name, at, last)
    if at != last:
        raise StoreError(f"{address.name}: its schema is version {at}, not {last}; recrawl run brings it up to date")


async def _check_no_cluster(connection: Any, address: Address) -> None:
    if await connection.fetchval("SELECT to_regclass($1)", f"{address.schema}.{CLUSTER}") is not None:
        raise StoreError(f"{address.name}: is a cluster of shards, which this command does not support")


def _missing(address: Address) -> StoreMissingError:
    return StoreMissingError(f"{address.name}: there is no such database; recrawl add makes one")
