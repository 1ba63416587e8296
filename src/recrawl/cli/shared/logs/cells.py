"""Checked columns from the cells of a crawl log, parsed row by row, so that every error names its row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.cli.shared.logs.roles import COMPARED, LogOptions
from recrawl.cli.shared.logs.rows import LogRows
from recrawl.cli.shared.logs.times import written_time

Array = NDArray[np.float64]

GONE = (404.0, 410.0)  # statuses of pages that are not there any more
NOT_MODIFIED = 304.0
TRUE, FALSE = {"1", "true", "yes", "y", "t", "1.0"}, {"0", "false", "no", "n", "f", "0.0"}


class Parsed(NamedTuple):
    """One row; ``codes`` number the contents of the columns that changes are computed from (−1 = empty)."""

    page: int
    time: float
    changed: int
    importance: float
    failed: bool
    gone: bool
    not_modified: bool
    status: float
    codes: list[int]
    row: int


@dataclass(frozen=True)
class Columns:
    """Parsed rows: page number, time in seconds UTC, changed (−1 = empty), importance, failed, gone, not modified,
    status, codes of contents, row, signals.
    """

    page: NDArray[np.int64]
    time: Array
    changed: NDArray[np.int8]
    importance: Array
    failed: NDArray[np.bool_]
    gone: NDArray[np.bool_]
    not_modified: NDArray[np.bool_]
    status: Array
    codes: NDArray[np.int64]
    row: NDArray[np.int64]
    signals: Array

    def take(self, order: NDArray[np.int64]) -> Columns:
        """The rows in another order."""
        return Columns(*(getattr(self, column.name)[order] for column in fields(self)))


class BadCellError(Exception):
    """One cell cannot be used: its column, what is wrong, and the name of the repair that drops its row."""


class LogReader:
    """Reads one log, strict or lenient; ``urls``, ``sources`` and ``details`` are known after ``read``.

    ``details`` are the cells of each row as written, if recrawl exported the log.
    """

    def __init__(self, path: Path, options: LogOptions, repairs: Counter[str]) -> None:
        self.lenient, self.repairs = options.lenient, repairs
        self.rows = LogRows(path, options, repairs)
        self.urls: list[str] = []
        self.sources: list[str] = []
        self.details: list[dict[str, Any]] = []
        self._page: dict[str, int] = {}
        self._zone: str | None = None
        self._codes: list[dict[str, int]] = [{} for _ in COMPARED]
        self._tags: dict[str, int] = {}

    def read(self, progress: Callable[[float], None] | None = None) -> Columns:
        """All usable rows. ``progress`` is called with the share read, from 0 to 1."""
        width = 1024
        parsed: list[Parsed] = []
        signals: list[list[float]] = []
        for row, share, record in self.rows:
            if row % width == 0 and progress is not None:
                progress(share)
            try:
                parsed.append(self._parse(record, row))
                signals.append([self._count(record, name) for name in self.rows.header.signals])
            except BadCellError as bad:
                del parsed[len(signals) :]
                self.rows.complain(row, *bad.args)
                continue
            if self.rows.header.exported:
                self.details.append(record)
        self.sources = [name.removeprefix("signals_") for name in self.rows.header.signals]
        return self._columns(parsed, signals)

    def _columns(self, parsed: list[Parsed], signals: list[list[float]]) -> Columns:
        n = len(parsed)
        columns = Parsed(*zip(*parsed, strict=True)) if parsed else Parsed(*((),) * len(Parsed._fields))  # type: ignore[arg-type]
        return Columns(
            np.array(columns.page, np.int64),
            np.array(columns.time, np.float64),
            np.array(columns.changed, np.int8),
            np.array(columns.importance, np.float64),
            np.array(columns.failed, np.bool_),
            np.array(columns.gone, np.bool_),
            np.array(columns.not_modified, np.bool_),
            np.array(columns.status, np.float64),
            np.array(columns.codes, np.int64).reshape(n, 1 + len(COMPARED)),
            np.array(columns.row, np.int64),
            np.array(signals, np.float64).reshape(n, len(self.sources)),
        )

    def _parse(self, record: dict[str, Any], row: int) -> Parsed:
        url = _text(record["url"], "url")
        if not url:
            raise BadCellError("url", "is empty", "rows without url, dropped")
        time = self._time(record["time"])
        changed = _flag(record.get("changed"), "changed")
        status = self._number(record.get("status"), "status")
        gone = status in GONE or _flag(record.get("gone"), "gone") > 0
        failed = status >= 400 or status < 100 or gone or bool(_text(record.get("failure"), "failure"))
        importance = self._number(record.get("importance"), "importance")
        codes = self._compared(record, status == NOT_MODIFIED)
        page = self._page.setdefault(url, len(self._page))
        if page == len(self.urls):
            self.urls.append(url)
        return Parsed(page, time, changed, importance, failed, gone, status == NOT_MODIFIED, status, codes, row)

    def _compared(self, record: dict[str, Any], not_modified: bool) -> list[int]:
        """Codes of the contents, and of the kind of digest: digests of two kinds are not compared."""
        found = []
        for role, codes in zip(COMPARED, self._codes, strict=True):
            text = _text(record.get(role), role)
            if role == "etag":
                text = _bare_etag(text)
            if not text.strip("-\x1f ") or (role == "length" and not_modified):
                found.append(-1)
            else:
                found.append(codes.setdefault(text, len(codes)))
        tag = _text(record.get("digest"), "digest").rpartition(":")[0]
        return [*found, self._tags.setdefault(tag, len(self._tags))]

    def _time(self, cell: Any) -> float:
        if isinstance(cell, datetime):
            return (cell if cell.tzinfo else cell.replace(tzinfo=UTC)).timestamp()
        text = _text(cell, "time")
        try:
            value = float(text)
        except ValueError:
            return self._date(text)
        if len(text) == 14 and (moment := written_time(text)) is not None:
            return moment.at
        if not abs(value) < 1e15:
            raise BadCellError("time", f"{text!r} is not a time", "rows with a bad time, dropped")
        self._same_zone("seconds since 1970", text)
        if abs(value) > 1e11:
            if not self.lenient:
                raise BadCellError("time", f"{text} looks like milliseconds; seconds since 1970 are expected", "")
            self.repairs["times in milliseconds, divided by 1000"] += 1
            return value / 1000
        return value

    def _date(self, text: str) -> float:
        moment = written_time(text)
        if moment is None:
            problem = f"{text!r} is neither seconds since 1970 nor an ISO 8601 time" if text else "is empty"
            raise BadCellError("time", problem, "rows with a bad time, dropped")
        if moment.zone is not None:
            self._same_zone(moment.zone, text)
        return moment.at

    def _same_zone(self, zone: str, text: str) -> None:
        if self._zone is None:
            self._zone = zone
        if zone != self._zone:
            if not self.lenient:
                raise BadCellError("time", f"{text!r} has {zone}, rows before it {self._zone}: mixed time zones", "")
            self.repairs["times in another zone than the first, converted to UTC"] += 1

    def _number(self, cell: Any, name: str) -> float:
        text = _text(cell, name)
        if not text or text == "-":
            return float("nan")
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < np.inf:
            raise BadCellError(name, f"{text!r} is not a number of at least 0", f"rows with a bad {name}, dropped")
        return value

    def _count(self, record: dict[str, Any], name: str) -> float:
        value = self._number(record[name], name)
        return 0.0 if value != value else value


def _text(cell: Any, name: str) -> str:
    if isinstance(cell, dict | list) and name != "digest":
        raise BadCellError(name, "is not a single value", f"rows with a bad {name}, dropped")
    return str("" if cell is None else cell).strip()


def _bare_etag(text: str) -> str:
    """An entity tag without marks of weakness and compression, which differ for the same content.

    >>> _bare_etag('W/"5f1-gzip"'), _bare_etag('"5f1"')
    ('5f1', '5f1')
    """
    return text.removeprefix("W/").strip('"').removesuffix("-gzip").removesuffix("-br").removesuffix("-df").rstrip("-")


def _flag(cell: Any, name: str) -> int:
    if isinstance(cell, bool):
        return int(cell)
    text = _text(cell, name).lower()
    if not text:
        return -1
    if text in TRUE:
        return 1
    if text in FALSE:
        return 0
    raise BadCellError(name, f"{text[:80]!r} is neither true nor false", f"rows with a bad {name}, dropped")
