"""Checked columns from the cells of a crawl log, parsed row by row, so that every error names its row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.cli.shared.log_rows import LogRows

Array = NDArray[np.float64]

Cells = tuple[int, float, int, float, bool, bool, int]
GONE = (404.0, 410.0)  # statuses of pages that are not there any more
TRUE, FALSE = {"1", "true", "yes", "y", "t", "1.0"}, {"0", "false", "no", "n", "f", "0.0"}


@dataclass(frozen=True)
class Columns:
    """Parsed rows: page number, time in seconds UTC, changed (−1 = empty), signals, importance, failed, gone, row."""

    page: NDArray[np.int64]
    time: Array
    changed: NDArray[np.int8]
    signals: Array
    importance: Array | None
    failed: NDArray[np.bool_]
    gone: NDArray[np.bool_]
    row: NDArray[np.int64]

    def take(self, order: NDArray[np.int64]) -> Columns:
        """The rows in another order."""
        importance = None if self.importance is None else self.importance[order]
        return Columns(
            self.page[order],
            self.time[order],
            self.changed[order],
            self.signals[order],
            importance,
            self.failed[order],
            self.gone[order],
            self.row[order],
        )


class BadCellError(Exception):
    """One cell cannot be used: its column, what is wrong, and the name of the repair that drops its row."""


class LogReader:
    """Reads one log, strict or lenient; ``urls`` and ``sources`` are known after ``read``."""

    def __init__(self, path: Path, lenient: bool, repairs: Counter[str]) -> None:
        self.lenient, self.repairs = lenient, repairs
        self._rows = LogRows(path, lenient, repairs)
        self.urls: list[str] = []
        self.sources: list[str] = []
        self._page: dict[str, int] = {}
        self._zone: str | None = None

    def read(self, progress: Callable[[float], None] | None = None) -> Columns:
        """All usable rows. ``progress`` is called with the share read, from 0 to 1."""
        width = 1024
        parsed: list[Cells] = []
        signals: list[list[float]] = []
        for row, share, record in self._rows:
            if row % width == 0 and progress is not None:
                progress(share)
            try:
                parsed.append(self._parse(record, row))
                signals.append([self._count(record, name) for name in self._rows.signal_columns])
            except BadCellError as bad:
                del parsed[len(signals) :]
                self._rows.complain(row, *bad.args)
        self.sources = [name.removeprefix("signals_") for name in self._rows.signal_columns]
        return self._columns(parsed, signals)

    def _columns(self, parsed: list[Cells], signals: list[list[float]]) -> Columns:
        page, time, changed, importance, failed, gone, row = zip(*parsed, strict=True) if parsed else ((),) * 7
        return Columns(
            np.array(page, np.int64),
            np.array(time, np.float64),
            np.array(changed, np.int8),
            np.array(signals, np.float64).reshape(len(page), len(self.sources)),
            np.array(importance, np.float64) if "importance" in self._rows.names else None,
            np.array(failed, np.bool_),
            np.array(gone, np.bool_),
            np.array(row, np.int64),
        )

    def _parse(self, record: dict[str, Any], row: int) -> Cells:
        url = str(record["url"] or "").strip()
        if not url:
            raise BadCellError("url", "is empty", "rows without url, dropped")
        time = self._time(record["time"])
        changed = _flag(record["changed"])
        status = self._number(record.get("status"), "status")
        failed = status >= 400 or status < 100  # not where it is NaN
        importance = self._number(record.get("importance"), "importance")
        page = self._page.setdefault(url, len(self._page))
        if page == len(self.urls):
            self.urls.append(url)
        return page, time, changed, importance, failed, status in GONE, row

    def _time(self, cell: Any) -> float:
        if isinstance(cell, datetime):
            return (cell if cell.tzinfo else cell.replace(tzinfo=UTC)).timestamp()
        text = str("" if cell is None else cell).strip()
        try:
            value = float(text)
        except ValueError:
            return self._date(text)
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
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            problem = f"{text!r} is neither seconds since 1970 nor an ISO 8601 time" if text else "is empty"
            raise BadCellError("time", problem, "rows with a bad time, dropped") from None
        shift = when.utcoffset()
        self._same_zone("no time zone" if shift is None else f"UTC offset {shift.total_seconds() / 3600:+g} h", text)
        return (when if shift is not None else when.replace(tzinfo=UTC)).timestamp()

    def _same_zone(self, zone: str, text: str) -> None:
        if self._zone is None:
            self._zone = zone
        if zone != self._zone:
            if not self.lenient:
                raise BadCellError("time", f"{text!r} has {zone}, rows before it {self._zone}: mixed time zones", "")
            self.repairs["times in another zone than the first, converted to UTC"] += 1

    def _number(self, cell: Any, name: str) -> float:
        text = str("" if cell is None else cell).strip()
        if not text:
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


def _flag(cell: Any) -> int:
    if isinstance(cell, bool):
        return int(cell)
    text = str("" if cell is None else cell).strip().lower()
    if not text:
        return -1
    if text in TRUE:
        return 1
    if text in FALSE:
        return 0
    raise BadCellError("changed", f"{text!r} is neither true nor false", "rows with a bad changed, dropped")
