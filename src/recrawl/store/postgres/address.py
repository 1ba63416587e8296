"""Addresses of PostgreSQL databases: ``postgresql://user:password@host:port/database?schema=name``."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from recrawl.errors import ParameterError

SCHEMES = ("postgresql://", "postgres://")
SCHEMA = "recrawl"  # where the tables are, unless the address says otherwise
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def is_postgres(database: str) -> bool:
    """Whether a database is the address of a PostgreSQL server rather than a file.

    >>> is_postgres("postgresql://localhost/crawl"), is_postgres("recrawl.db")
    (True, False)
    """
    return database.strip().startswith(SCHEMES)


def shown(database: str) -> str:
    """A database as it is printed: without the password of an address.

    >>> shown("postgresql://me:secret@db.example:5433/crawl?schema=news&password=secret")
    'postgresql://me@db.example:5433/crawl?schema=news'
    """
    if not is_postgres(database):
        return database
    try:
        parts = urlsplit(database.strip())
    except ValueError:
        return "postgresql://…"
    user, at, host = parts.netloc.rpartition("@")
    kept = [(name, value) for name, value in parse_qsl(parts.query) if "pass" not in name.lower()]
    netloc = user.partition(":")[0] + at + host
    return urlunsplit((parts.scheme, netloc, parts.path, urlencode(kept, safe="/"), ""))


@dataclass(frozen=True)
class Address:
    """An address in parts: what is printed, what asyncpg is given, and the schema that holds the tables."""

    name: str
    dsn: str = field(repr=False)
    schema: str = SCHEMA

    @classmethod
    def parse(cls, database: str) -> Address:
        """Read an address; raise ParameterError if it cannot be one."""
        name = shown(database)
        try:
            parts = urlsplit(database.strip())
            port = parts.port
        except ValueError:
            raise ParameterError(f"{name}: is no address of a database: postgresql://user@host:port/database") from None
        if port == 0 or not (parts.path.strip("/") or "dbname" in parts.query):
            raise ParameterError(f"{name}: names no database: postgresql://user@host:port/database")
        query = dict(parse_qsl(parts.query))
        schema = query.pop("schema", SCHEMA)
        if not _NAME.fullmatch(schema):
            raise ParameterError(f"{name}: schema {schema[:80]!r} must be lower-case letters, digits and _")
        return cls(name, urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(query), "")), schema)

    def lock_key(self, purpose: str) -> int:
        """The number of an advisory lock of this schema, as PostgreSQL takes it (64 bits with a sign)."""
        digest = hashlib.blake2b(f"recrawl {purpose} {self.schema}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True)
