"""From the cells of a crawl log to checked columns: one row at a time, so that every complaint has its row number."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError

Array = NDArray[np.float64]

REQUIRED = ("url", "time", "changed")
OPTIONAL = ("importance", "status")
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
        self.path, self.lenient, self.repairs = path, lenient, repairs
        self.urls: list[str] = []
        self.sources: list[str] = []
        self._page: dict[str, int] = {}
        self._zone: str | None = None

    def read(self, progress: Callable[[float], None] | None = None) -> Columns:
        """All usable rows; progress gets the share read, from 0 to 1."""
        readers = {".parquet": self._parquet_rows, ".pq": self._parquet_rows}
        readers |= {".jsonl": self._json_rows, ".ndjson": self._json_rows}
        cells = readers.get(self.path.suffix.lower(), self._csv_rows)()
        width = 1024
        parsed: list[Cells] = []
        signals: list[list[float]] = []
        for row, share, record in cells:
            if row % width == 0 and progress is not None:
                progress(share)
            try:
                parsed.append(self._parse(record, row))
                signals.append([self._count(record, name) for name in self._signal_columns])
            except BadCellError as bad:
                del parsed[len(signals) :]
                self._complain(row, *bad.args)
        return self._columns(parsed, signals)

    def _columns(self, parsed: list[Cells], signals: list[list[float]]) -> Columns:
        page, time, changed, importance, failed, gone, row = zip(*parsed, strict=True) if parsed else ((),) * 7
        return Columns(
            np.array(page, np.int64),
            np.array(time, np.float64),
            np.array(changed, np.int8),
            np.array(signals, np.float64).reshape(len(page), len(self.sources)),
            np.array(importance, np.float64) if "importance" in self._names else None,
            np.array(failed, np.bool_),
            np.array(gone, np.bool_),
            np.array(row, np.int64),
        )

    def _complain(self, row: int, column: str, problem: str, repair: str) -> None:
        if not self.lenient:
            place = f"column {column}, row {row}" if column else f"row {row}"
            raise ParameterError(f"{self.path}: {place}: {problem}")
        self.repairs[repair] += 1

    def _take_header(self, names: list[str]) -> None:
        self._names = [name.strip().lower() for name in names]
        missing = [name for name in REQUIRED if name not in self._names]
        if missing:
            raise ParameterError(f"{self.path}: column {missing[0]} is missing; a crawl log has url, time and changed")
        doubled = [name for name, n in Counter(self._names).items() if n > 1]
        if doubled:
            raise ParameterError(f"{self.path}: column {doubled[0]} comes twice")
        self._signal_columns = [n for n in self._names if n == "signals" or n.startswith("signals_")]
        self.sources = [n.removeprefix("signals_") for n in self._signal_columns]
        known = {*REQUIRED, *OPTIONAL, *self._signal_columns}
        for name in self._names:
            if name not in known:
                self._complain_column(name)

    def _complain_column(self, name: str) -> None:
        if not self.lenient:
            raise ParameterError(
                f"{self.path}: row 0 (header): unknown column {name!r}; known are url, time, changed, signals, "
                "signals_<source>, importance, status (--lenient ignores others)"
            )
        self.repairs[f"unknown column {name!r}, ignored"] += 1

    def _csv_rows(self) -> Iterator[tuple[int, float, dict[str, Any]]]:
        size = max(self.path.stat().st_size, 1)
        with self.path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            lines = _Counted(file)
            reader = csv.reader(lines, delimiter="\t" if self.path.suffix.lower() == ".tsv" else ",")
            try:
                self._take_header(next(reader))
            except StopIteration:
                raise ParameterError(f"{self.path}: the file is empty") from None
            row = 0
            for cells in reader:
                if not any(cells):
                    continue
                row += 1
                if len(cells) != len(self._names):
                    self._bad_length(row, len(cells), lines)
                    continue
                yield row, min(1.0, lines.read / size), dict(zip(self._names, cells, strict=True))

    def _json_rows(self) -> Iterator[tuple[int, float, dict[str, Any]]]:
        """One object a line; the first says which columns there are."""
        size = max(self.path.stat().st_size, 1)
        with self.path.open(encoding="utf-8-sig", errors="replace") as file:
            lines, row = _Counted(file), 0
            for line in lines:
                if not line.strip():
                    continue
                row += 1
                record = self._json_record(line, row, lines.at_end())
                if record is None:
                    continue
                if not hasattr(self, "_names"):
                    self._take_header(list(record))
                cells = {str(name).strip().lower(): value for name, value in record.items()}
                for name in set(cells) - set(self._names):
                    self._complain(
                        row, "", f"unknown column {name!r}, not in the first row", "unknown columns, ignored"
                    )
                yield row, min(1.0, lines.read / size), {name: cells.get(name) for name in self._names}
            if not hasattr(self, "_names"):
                raise ParameterError(f"{self.path}: the file is empty")

    def _json_record(self, line: str, row: int, last: bool) -> dict[str, Any] | None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict) and record:
            return record
        if last:
            self._complain(row, "", "the last line is cut off: not a JSON object", "truncated last line, dropped")
        else:
            self._complain(row, "", "is not a JSON object", "rows that are not JSON objects, dropped")
        return None

    def _bad_length(self, row: int, found: int, lines: _Counted) -> None:
        fields = f"{found} field{'s' * (found != 1)}, not {len(self._names)}"
        if lines.at_end() and found < len(self._names):
            self._complain(row, "", f"the last line is cut off: {fields}", "truncated last line, dropped")
        else:
            self._complain(row, "", f"has {fields}", "rows with a wrong number of fields, dropped")

    def _parquet_rows(self) -> Iterator[tuple[int, float, dict[str, Any]]]:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise ParameterError("Parquet needs pyarrow: pip install 'recrawl[data]'") from None
        try:
            file = pq.ParquetFile(self.path)
        except (pa.ArrowInvalid, pa.ArrowException) as problem:
            raise ParameterError(f"{self.path}: not a Parquet file, or cut off: {problem}") from None
        self._take_header(list(file.schema_arrow.names))
        row, total = 0, max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(batch_size=65536):
            columns = [column.to_pylist() for column in batch.columns]
            for cells in zip(*columns, strict=True):
                row += 1
                yield row, row / total, dict(zip(self._names, cells, strict=True))

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


class _Counted:
    """The lines of a file, counting what was read."""

    def __init__(self, file: TextIO) -> None:
        self._file, self.read = file, 0
        self._next: str | None = file.readline()

    def __iter__(self) -> Iterator[str]:
        while self._next:
            line, self._next = self._next, self._file.readline()
            self.read += len(line)
            yield line.replace("\0", "")

    def at_end(self) -> bool:
        return not self._next
