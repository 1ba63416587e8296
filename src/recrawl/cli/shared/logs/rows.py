"""The rows of a crawl log of any form, as dictionaries of cells by role, with row numbers.

Tables (CSV, TSV, JSON lines, JSON arrays, Parquet) count rows after the header from 1. Access logs and CDX files count
lines. Histories of other tools (``histories``) count entries.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from recrawl.cli.shared.histories.entries import COLUMNS
from recrawl.cli.shared.logs.roles import Header, LogOptions, header_of
from recrawl.cli.shared.logs.shapes import AccessLog, BadLineError, CdxLog
from recrawl.cli.shared.logs.text_lines import TextLines
from recrawl.errors import ParameterError

Row = tuple[int, float, dict[str, Any]]  # row number, share of the file read, cells by role
_AND = "\x1f"  # between cells of several columns with one role


class LogRows:
    """Iterates over the rows of one log. ``header`` is known after the first row.

    ``complain`` raises ParameterError in strict reading, and counts a repair in lenient reading.
    """

    def __init__(self, path: Path, options: LogOptions, repairs: Counter[str]) -> None:
        self.path, self.options, self.repairs = path, options, repairs
        self.header = Header([], True, [])
        self.counted = "row"
        self.is_history = False  # a store of another tool: its rows are in no order
        self.notes: list[str] = []

    def __iter__(self) -> Iterator[Row]:
        from recrawl.cli.shared.histories.detect import history_at

        history = history_at(self.path, self.options, self.repairs)
        if history is not None:
            self.is_history, self.counted = True, "entry"
            self._take_header(COLUMNS)
            for number, cells in enumerate(history, 1):
                yield number, 0.0, self._record(cells[name] for name in COLUMNS)
            self.notes = history.notes
            return
        suffix = self._suffix()
        if suffix in (".parquet", ".pq"):
            yield from self._parquet_rows()
            return
        lines = TextLines(self.path, self.options.encoding, self._bad_line)
        try:
            yield from self._text_rows(lines, suffix)
        finally:
            lines.close()

    def complain(self, row: int, column: str, problem: str, repair: str) -> None:
        """Raise, or count a repair: a row that cannot be used as it is."""
        if not self.options.lenient:
            place = f"column {column}, {self.counted} {row}" if column else f"{self.counted} {row}"
            raise ParameterError(f"{self.path}: {place}: {problem}")
        self.repairs[repair] += 1

    def _bad_line(self, line: int, problem: str, repair: str) -> None:
        if not self.options.lenient:
            raise ParameterError(f"{self.path}: line {line}: {problem}")
        self.repairs[repair] += 1

    def _suffix(self) -> str:
        name = self.path.name.lower().removesuffix(".gz")
        return Path(name).suffix

    def _text_rows(self, lines: TextLines, suffix: str) -> Iterator[Row]:
        first = lines.first().lstrip("\ufeff")
        if suffix in (".jsonl", ".ndjson", ".jl") or first.lstrip().startswith("{"):
            return self._json_rows(lines)
        if first.lstrip().startswith("["):
            return self._array_rows(lines)
        if AccessLog.fits(first):
            return self._shaped_rows(lines, AccessLog(self.repairs))
        if CdxLog.fits(first):
            return self._shaped_rows(lines, self._cdx(first))
        return self._csv_rows(lines, "\t" if suffix == ".tsv" else _delimiter(first))

    def _cdx(self, first: str) -> CdxLog:
        try:
            return CdxLog(first)
        except BadLineError as problem:
            raise ParameterError(f"{self.path}: line 1: {problem}") from None

    def _take_header(self, names: Iterable[str]) -> None:
        self.header = header_of(self.path, list(names), self.options.columns)
        for name in self.header.unused if self.header.own else ():
            if not self.options.lenient:
                raise ParameterError(
                    f"{self.path}: row 0 (header): unknown column {name!r}; known are url, time, changed, signals, "
                    "signals_<source>, importance, status (--lenient ignores others)"
                )
            self.repairs[f"unknown column {name!r}, ignored"] += 1

    def _record(self, cells: Iterable[Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for role, cell in zip(self.header.roles, cells, strict=True):
            if role:
                found[role] = cell if role not in found else f"{found[role]}{_AND}{cell}"
        return found

    def _csv_rows(self, lines: TextLines, delimiter: str) -> Iterator[Row]:
        size, row = max(self.path.stat().st_size, 1), 0
        reader = csv.reader(lines, delimiter=delimiter)
        try:
            self._take_header(next(reader))
            for cells in reader:
                if not any(cells):
                    continue
                row += 1
                if len(cells) != len(self.header.roles):
                    self._bad_length(row, len(cells), lines.at_end())
                    continue
                yield row, min(1.0, lines.read / size), self._record(cells)
        except StopIteration:
            raise ParameterError(f"{self.path}: the file is empty") from None
        except csv.Error as problem:
            raise ParameterError(f"{self.path}: row {row + 1}: is not CSV: {problem}") from None

    def _json_rows(self, lines: TextLines) -> Iterator[Row]:
        """One object per line; the first line determines the columns."""
        size, row = max(self.path.stat().st_size, 1), 0
        names: list[str] = []
        for line in lines:
            if not line.strip():
                continue
            row += 1
            record = self._json_record(line, row, lines.at_end())
            if record is None:
                continue
            cells = {str(name).strip().lower(): value for name, value in record.items()}
            if not names:
                names = list(cells)
                self._take_header(names)
            for name in set(cells) - set(names) if self.header.own else ():
                self.complain(row, "", f"unknown column {name!r}, not in the first row", "unknown columns, ignored")
            yield row, min(1.0, lines.read / size), self._record(cells.get(name) for name in names)
        if not names:
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

    def _array_rows(self, lines: TextLines) -> Iterator[Row]:
        """One JSON array: of objects, or of arrays of which the first has the names, as CDX servers answer."""
        try:
            rows = json.loads("".join(lines))
        except json.JSONDecodeError as problem:
            raise ParameterError(f"{self.path}: line {problem.lineno}: is not JSON: {problem.msg}") from None
        except (ValueError, RecursionError):
            raise ParameterError(f"{self.path}: row 1: is not a JSON object or array of cells") from None
        named = bool(rows) and isinstance(rows[0], list)
        if not rows or not isinstance(rows[0], dict | list):
            raise ParameterError(f"{self.path}: row 1: is not a JSON object or array of cells")
        names = [str(name).strip().lower() for name in rows[0]]
        self._take_header(names)
        for row, one in enumerate(rows[1:] if named else rows, 1):
            if not isinstance(one, list if named else dict) or (named and len(one) != len(names)):
                self.complain(row, "", "is not like the first", "rows unlike the first, dropped")
                continue
            if isinstance(one, dict):
                cells = {str(name).strip().lower(): cell for name, cell in one.items()}
                one = [cells.get(name) for name in names]
            yield row, row / len(rows), self._record(one)

    def _shaped_rows(self, lines: TextLines, shape: AccessLog | CdxLog) -> Iterator[Row]:
        self.counted = "line"
        self._take_header(shape.names)
        return self._shaped(lines, shape)

    def _shaped(self, lines: TextLines, shape: AccessLog | CdxLog) -> Iterator[Row]:
        size = max(self.path.stat().st_size, 1)
        for line in lines:
            if not line.strip() or (lines.number == 1 and getattr(shape, "has_header", False)):
                continue
            try:
                record = shape.record(line)
            except BadLineError as bad:
                cut = "the last line is cut off: " if lines.at_end() and not line.endswith("\n") else ""
                self.complain(lines.number, "", f"{cut}{bad}", "lines of another form, dropped")
                continue
            if record is not None:
                yield lines.number, min(1.0, lines.read / size), self._record(record[name] for name in shape.names)

    def _bad_length(self, row: int, found: int, last: bool) -> None:
        fields = f"{found} field{'s' * (found != 1)}, not {len(self.header.roles)}"
        if last and found < len(self.header.roles):
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
        self._take_header(file.schema_arrow.names)
        row, total = 0, max(file.metadata.num_rows, 1)
        for batch in file.iter_batches(batch_size=65536):
            columns = [column.to_pylist() for column in batch.columns]
            for cells in zip(*columns, strict=True):
                row += 1
                yield row, row / total, self._record(cells)


def _delimiter(header: str) -> str:
    """The separator of a table: the first of comma, tab and semicolon that its header has."""
    return next((sign for sign in ",\t;" if sign in header), ",")
