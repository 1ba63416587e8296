"""What the readers of other tools' histories share: rows of a crawl log, bounds, and the count of broken entries.

A broken entry loses only itself. It is counted as a repair, and the first of each kind is described.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Protocol

from recrawl.errors import ParameterError
from recrawl.urls import canonical

COLUMNS = ("url", "time", "changed", "status", "failure", "gone", "digest", "last_modified")
LARGEST = 32 << 20  # bytes of one entry, unpacked
_EARLIEST = 631152000.0  # 1990: times before are no times of crawls
Record = dict[str, Any]  # cells by name of COLUMNS


class BadEntryError(Exception):
    """One entry of a history cannot be used; the text says why."""


class History(Protocol):
    """A history of crawls: rows in any order of pages and times."""

    notes: list[str]  # what a reader of the report should know, after iteration

    def __iter__(self) -> Iterator[Record]:
        """The rows of a crawl log."""
        ...


class Losses:
    """Counts entries that are left out, and keeps the first of each kind."""

    def __init__(self, repairs: Counter[str]) -> None:
        self._repairs = repairs
        self._first: dict[str, str] = {}

    def add(self, what: str, place: str, problem: object) -> None:
        """Count one entry of a kind such as "broken records, left out"."""
        self._repairs[what] += 1
        self._first.setdefault(what, f"{_short(place)}: {_short(str(problem))}")

    def notes(self) -> list[str]:
        """One sentence for each kind, with its first entry."""
        return [f"{what}: the first is {first}" for what, first in self._first.items()]


def page_of(url: object) -> str:
    """The canonical URL of a page. BadEntryError for what is none."""
    if not isinstance(url, str):
        raise BadEntryError("has no URL")
    try:
        return canonical(url)
    except ParameterError as problem:
        raise BadEntryError(str(problem)) from None


def time_of(value: object) -> float:
    """A time in seconds since 1970. BadEntryError for other values, and for times before 1990 and in the future."""
    try:
        at = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        at = float("nan")
    if not at >= _EARLIEST:
        raise BadEntryError(f"{str(value)[:40]!r} is not a time of a crawl")
    if at > time.time() + 60.0:
        raise BadEntryError(f"its time {at:.0f} lies in the future")
    return at


def row(url: str, at: float, **cells: Any) -> Record:
    """A row of a crawl log; cells that are not given are empty."""
    return {**dict.fromkeys(COLUMNS), "url": url, "time": at, **cells}


def digest_of(data: bytes) -> str:
    """The digest of a content."""
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def unpacked(data: bytes, coding: str, limit: int = LARGEST) -> bytes:
    """Bytes without a coding, ``gzip`` or ``br``; what does not begin like gzip is not packed with it."""
    from recrawl.crawl.http.encoding import BadCoding, Body, TooLarge

    if coding == "gzip" and not data.startswith(b"\x1f\x8b"):
        return data
    body = Body(coding, limit)
    try:
        body.feed(data)
        return body.whole()
    except TooLarge:
        raise BadEntryError(f"has more than {limit >> 20} MiB, unpacked") from None
    except BadCoding as problem:
        raise BadEntryError(f"its {coding} data are damaged: {problem}") from None


def _short(text: str) -> str:
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= 200 else f"{line[:199]}…"
