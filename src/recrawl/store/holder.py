"""Holder: the process that has a database to itself."""

from __future__ import annotations

from typing import NamedTuple


class Holder(NamedTuple):
    """The process that has a database to itself, the lines that it has announced, and its machine (None: this one)."""

    pid: int | None
    announced: tuple[str, ...] = ()
    host: str | None = None
