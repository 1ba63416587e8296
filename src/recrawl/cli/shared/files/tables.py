"""Tables of pages in CSV and Parquet files, read by column and written with further columns.

Messages count rows from 1: the first line after a CSV file's header is row 1, blank lines are not counted.
"""

from __future__ import annotations

import csv
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl._system.files import whole_file
from recrawl.cli.shared.files.outputs import check_folder
from recrawl.cli.shared.logs.text_lines import marked_encoding
from recrawl.errors import ParameterError

Array = NDArray[np.float64]
_PARQUET = (".parquet", ".pq")
_PIECE = 1 << 17  # rows of a piece
_BUFFER = 1 << 20  # bytes that are read of a column at a time
_DELIMITERS = {".csv": ",", ".tsv": "\t"}


class Table(ABC):
    """Named columns of a file, one row per page; ``first`` is the row of the file with which they begin."""

    def __init__(self, path: Path, names: list[str], first: int = 0) -> None:
        self.path = path
        self.names = names
        self._first = first

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def text(self, name: str) -> list[str]:
        """A column as text; empty cells are empty text."""

    @abstractmethod
    def numbers(self, name: str, default: float | None = None) -> Array:
        """A column as numbers. Empty cells become ``default``; without a default they are an error."""

    @abstractmethod
    def arrow(self) -> Any:
        """The table as a pyarrow table."""

    def error(self, name: str, row: int, problem: str) -> ParameterError:
        """An error that names the file, the column and the row (given from 0, named from 1)."""
        return ParameterError(f"{self.path}: column {name}, row {self._first + row + 1}: {problem}")

    def _parse(self, name: str, cells: list[str], default: float | None) -> Array:
        filled = cells if default is None else [cell if cell.strip() else str(default) for cell in cells]
        try:
            return np.array(filled, dtype=np.float64)
        except ValueError:
            row = next(row for row, cell in enumerate(filled) if not _is_number(cell))
            problem = f"{cells[row]!r} is not a number" if cells[row].strip() else "is empty"
            raise self.error(name, row, problem) from None


class CsvTable(Table):
    """A table of text cells; a column that was read as numbers is written to Parquet as numbers."""

    def __init__(self, path: Path, columns: dict[str, list[str]]) -> None:
        super().__init__(path, list(columns))
        self._columns = columns
        self._numbers: dict[str, Array] = {}

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def text(self, name: str) -> list[str]:
        return self._columns[name]

    def numbers(self, name: str, default: float | None = None) -> Array:
        self._numbers[name] = self._parse(name, self._columns[name], default)
        return self._numbers[name]

    def arrow(self) -> Any:
        pa = _pyarrow()
        columns: dict[str, Any] = dict(self._columns)
        for name, numbers in self._numbers.items():
            empty = np.array([not cell.strip() for cell in self._columns[name]])
            columns[name] = pa.array(numbers, mask=empty)
        return pa.table(columns)


class ParquetTable(Table):
    """A table of typed columns, held by pyarrow; a null is an empty cell."""

    def __init__(self, path: Path, table: Any, first: int = 0) -> None:
        super().__init__(path, list(table.column_names), first)
        self._table = table

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def text(self, name: str) -> list[str]:
        return ["" if cell is None else str(cell) for cell in self._table.column(name).to_pylist()]

    def numbers(self, name: str, default: float | None = None) -> Array:
        pa = _pyarrow()
        column = self._table.column(name)
        kinds = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal)
        if not any(is_kind(column.type) for is_kind in kinds):
            return self._parse(name, self.text(name), default)
        numbers = column.cast(pa.float64(), safe=False)
        if numbers.null_count:
            if default is None:
                raise self.error(name, int(np.argmax(numbers.is_null().to_numpy())), "is empty")
            numbers = numbers.fill_null(default)
        array: Array = numbers.to_numpy()
        return array

    def arrow(self) -> Any:
        return self._table


def read_table(path: Path, *, without: Collection[str] = ()) -> Table:
    """The table in a file, CSV or Parquet by its suffix; files without a known suffix are read as CSV.

    Columns of Parquet that are not needed, ``without``, are not read.
    """
    table = _read_parquet(path, without) if path.suffix.lower() in _PARQUET else _read_csv(path)
    if len(table) == 0:
        raise ParameterError(f"{path}: has a header but no rows")
    return table


def read_pieces(path: Path, *, without: Collection[str] = ()) -> Iterator[Table]:
    """The same table, of Parquet a few rows at a time: memory does not grow with the file."""
    if path.suffix.lower() not in _PARQUET:
        yield read_table(path)
        return
    pa, first = _pyarrow(), 0
    with _opened_parquet(path) as file:
        names = [name for name in file.schema_arrow.names if name not in without]
        _check_header(path, names)
        for batch in file.iter_batches(_PIECE, columns=names):
            yield ParquetTable(path, pa.Table.from_batches([batch]), first)
            first += batch.num_rows
    if not first:
        raise ParameterError(f"{path}: has a header but no rows")


def check_writable(path: Path) -> None:
    """Raise ParameterError if a table could not be written."""
    if path.suffix.lower() not in (*_DELIMITERS, *_PARQUET):
        raise ParameterError(f"{path}: the suffix of an output table must be .csv, .tsv or .parquet")
    if path.suffix.lower() in _PARQUET:
        _pyarrow()
    check_folder(path)


def write_table(table: Table, path: Path, extra: Mapping[str, Array | list[str]]) -> None:
    """Write a table with further columns, replacing those of the same name; NaN becomes an empty cell."""
    if path.suffix.lower() in _PARQUET:
        _write_parquet(table, path, extra)
        return
    kept = [name for name in table.names if name not in extra]
    columns: list[list[str]] = [table.text(name) for name in kept]
    columns += [_written(column) for column in extra.values()]
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=_DELIMITERS[path.suffix.lower()], lineterminator="\n")
        writer.writerow([*kept, *extra])
        writer.writerows(zip(*columns, strict=True))


def _written(column: Array | list[str]) -> list[str]:
    return column if isinstance(column, list) else ["" if math.isnan(x) else repr(x) for x in column.tolist()]


def _read_csv(path: Path) -> CsvTable:
    try:
        with path.open("rb") as file:
            encoding = marked_encoding(file.read(4)) or "utf-8"
        with path.open(encoding=encoding, newline="") as file:
            reader = csv.reader(file, delimiter=_DELIMITERS.get(path.suffix.lower(), ","), strict=True)
            rows = (row for row in reader if row)
            names = [name.strip() for name in next(rows, [])]
            body = _same_length(path, names, rows)
    except UnicodeDecodeError:
        raise ParameterError(f"{path}: is not UTF-8 text") from None
    except csv.Error as problem:
        raise ParameterError(f"{path}: is not CSV: {problem}") from None
    except OSError as problem:
        raise unreadable(path, problem) from None
    _check_header(path, names)
    columns = [list(column) for column in zip(*body, strict=True)] if body else [[] for _ in names]
    return CsvTable(path, dict(zip(names, columns, strict=True)))


def _same_length(path: Path, names: list[str], rows: Any) -> list[list[str]]:
    body: list[list[str]] = list(rows)
    for index, row in enumerate(body):
        if len(row) != len(names):
            raise ParameterError(f"{path}: row {index + 1} has {len(row)} cells, the header has {len(names)}")
    return body


def _check_header(path: Path, names: list[str]) -> None:
    if not names:
        raise ParameterError(f"{path}: is empty")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ParameterError(f"{path}: has two columns named {twice!r}")


@contextmanager
def _opened_parquet(path: Path) -> Iterator[Any]:
    """A file of Parquet; what goes wrong while it is read is said in one line."""
    pa = _pyarrow()
    from pyarrow import parquet

    try:
        with path.open("rb") as file:
            yield parquet.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
    except OSError as problem:
        raise unreadable(path, problem) from None
    except pa.ArrowException as problem:
        raise ParameterError(f"{path}: is not Parquet: {first_line(problem)}") from None


def _read_parquet(path: Path, without: Collection[str] = ()) -> ParquetTable:
    with _opened_parquet(path) as file:
        table = file.read([name for name in file.schema_arrow.names if name not in without])
    _check_header(path, list(table.column_names))
    return ParquetTable(path, table)


def _write_parquet(table: Table, path: Path, extra: Mapping[str, Array | list[str]]) -> None:
    pa = _pyarrow()
    from pyarrow import parquet

    out = table.arrow()
    out = out.drop_columns([name for name in table.names if name in extra])
    for name, column in extra.items():
        out = out.append_column(name, pa.array(column, from_pandas=True))
    with whole_file(path) as partial:
        parquet.write_table(out, partial)


def unreadable(path: Path, problem: OSError) -> ParameterError:
    """The error for a file that the system could not open."""
    return ParameterError(f"{path}: cannot be read: {problem.strerror or first_line(problem)}")


def first_line(problem: Exception) -> str:
    """The first line of an exception's message."""
    return (str(problem).splitlines() or [type(problem).__name__])[0]


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ParameterError("Parquet needs pyarrow: pip install 'recrawl[data]'") from None
    return pyarrow


def _is_number(cell: str, parse: Callable[[str], object] = float) -> bool:
    try:
        parse(cell)
    except ValueError:
        return False
    return True
