"""The rows of a crawl log in CSV, TSV, JSONL or Parquet, as dictionaries of cells with row numbers."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from recrawl.errors import ParameterError

REQUIRED = ("url", "time", "changed")
OPTIONAL = ("importance", "status")
Row = tuple[int, float, dict[str, Any]]  # row number from 1, share of the file read, cells by column


class LogRows:
    """Iterates over the rows of one log. ``names`` and ``signal_columns`` are known after the first row.

    ``complain`` raises ParameterError in strict reading, and counts a repair in lenient reading.
    """

    def __init__(self, path: Path, lenient: bool, repairs: Counter[str]) -> None:
        self.path, self.lenient, self.repairs = path, lenient, repairs
        self.names: list[str] = []
        self.signal_columns: list[str] = []

    def __iter__(self) -> Iterator[Row]:
        readers = {".parquet": self._parquet_rows, ".pq": self._parquet_rows}
        readers |= {".jsonl": self._json_rows, ".ndjson": self._json_rows}
        return readers.get(self.path.suffix.lower(), self._csv_rows)()

    def complain(self, row: int, column: str, problem: str, repair: str) -> None:
        """Raise, or count a repair: a row that cannot be used as it is."""
        if not self.lenient:
            place = f"column {column}, row {row}" if column else f"row {row}"
            raise ParameterError(f"{self.path}: {place}: {problem}")
        self.repairs[repair] += 1

    def _take_header(self, names: list[str]) -> None:
        self.names = [name.strip().lower() for name in names]
        missing = [name for name in REQUIRED if name not in self.names]
        if missing:
            raise ParameterError(f"{self.path}: column {missing[0]} is missing; a crawl log has url, time and changed")
        doubled = [name for name, n in Counter(self.names).items() if n > 1]
        if doubled:
            raise ParameterError(f"{self.path}: column {doubled[0]} comes twice")
        self.signal_columns = [n for n in self.names if n == "signals" or n.startswith("signals_")]
        known = {*REQUIRED, *OPTIONAL, *self.signal_columns}
        for name in self.names:
            if name not in known:
                self._complain_column(name)

    def _complain_column(self, name: str) -> None:
        if not self.lenient:
            raise ParameterError(
                f"{self.path}: row 0 (header): unknown column {name!r}; known are url, time, changed, signals, "
                "signals_<source>, importance, status (--lenient ignores others)"
            )
        self.repairs[f"unknown column {name!r}, ignored"] += 1

    def _csv_rows(self) -> Iterator[Row]:
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
                if len(cells) != len(self.names):
                    self._bad_length(row, len(cells), lines)
                    continue
                yield row, min(1.0, lines.read / size), dict(zip(self.names, cells, strict=True))

    def _json_rows(self) -> Iterator[Row]:
        """One object per line; the first line determines the columns."""
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
                if not self.names:
                    self._take_header(list(record))
                cells = {str(name).strip().lower(): value for name, value in record.items()}
                for name in set(cells) - set(self.names):
                    self.complain(row, "", f"unknown column {name!r}, not in the first row", "unknown columns, ignored")
                yield row, min(1.0, lines.read / size), {name: cells.get(name) for name in self.names}
            if not self.names:
                raise ParameterError(f"{self.path}: the file is empty")

    def _json_record(self, line: str, row: int, last: bool) -> dict[str, Any] | None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict) and record:
            return record
        if last:
            self.complain(row, "", "the last line is cut off: not a JSON object", "truncated last line, dropped")
        else:
            self.complain(row, "", "is not a JSON object", "rows that are not JSON objects, dropped")
        return None

    def _bad_length(self, row: int, found: int, lines: _Counted) -> None:
        fields = f"{found} field{'s' * (found != 1)}, not {len(self.names)}"
        if lines.at_end() and found < len(self.names):
            self.complain(row, "", f"the last line is cut off: {fields}", "truncated last line, dropped")
        else:
            self.complain(row, "", f"has {fields}", "rows with a wrong number of fields, dropped")

    def _parquet_rows(self) -> Iterator[Row]:
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
                yield row, row / total, dict(zip(self.names, cells, strict=True))


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
