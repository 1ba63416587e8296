"""A recorded trace in its folder: pages, changes and, where there are any, signals, as Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from recrawl._system.files import whole_file
from recrawl.errors import ParameterError
from recrawl.simulate.trace import Signals, Trace
from recrawl.simulate.worlds.events import offsets

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_TIMES = ("created", "obs_start", "obs_end")


class Record(NamedTuple):
    """What a folder holds, checked: pages in the order of their page_id, times in seconds since 1970."""

    key: list[str]
    group: list[str]
    importance: Array  # NaN: not known
    created: Array
    deleted: Array  # infinity: it stayed
    obs_start: Array
    obs_end: Array
    offset: Ids
    changed_at: Array
    signals: Signals | None


def read_record(folder: Path) -> Record:
    """All of a recorded trace, as it stands in its folder; ParameterError where it is broken."""
    path = folder / "pages.parquet"
    table = _table(path, ("page_id", "key", "group", "deleted", *_TIMES))
    ids = _ids(path, table)
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    if len(ids) == 0:
        raise ParameterError(f"{path}: has no pages")
    if (np.diff(ids) == 0).any():
        raise ParameterError(f"{path}: page_id {ids[int(np.argmax(np.diff(ids) == 0))]} is there twice")
    numbers = {name: _finite(path, table, name)[order] for name in _TIMES}
    deleted = _numbers(path, table, "deleted")[order]
    importance = _numbers(path, table, "importance")[order] if "importance" in table.column_names else None
    offset, changed_at = _changes(folder / "changes.parquet", ids)
    return Record(
        key=_text(table, "key", order),
        group=_text(table, "group", order),
        importance=np.full(len(ids), np.nan) if importance is None else importance,
        deleted=np.where(np.isnan(deleted), np.inf, deleted),
        offset=offset,
        changed_at=changed_at,
        signals=_signals(folder / "signals.parquet", ids),
        **numbers,
    )


def write_trace(folder: Path | str, trace: Trace, *, unit: float = 1.0) -> None:
    """Write a trace as a folder that ``read_trace`` reads; ``unit`` is how many seconds one unit of its time has.

    Pages that have no URL are named by their number.
    """
    pa, folder = pyarrow(), Path(folder)
    n = len(trace)
    stayed = trace.deleted_at >= trace.end
    span = {"created": trace.created_at, "obs_start": trace.created_at, "obs_end": trace.deleted_at}
    pages = {
        "page_id": np.arange(n, dtype=np.int32),
        "key": [str(i) for i in range(n)] if trace.url is None else [_key(url) for url in trace.url.tolist()],
        "group": ["all"] * n if trace.group is None else [str(group) for group in trace.group.tolist()],
        "importance": trace.importance,
        "deleted": pa.array(trace.deleted_at * unit, mask=stayed),
        **{name: column * unit for name, column in span.items()},
        "n_changes": trace.n_changes.astype(np.int32),
    }
    changed = np.repeat(np.arange(n, dtype=np.int32), trace.n_changes)
    tables = {"pages": pages, "changes": {"page_id": changed, "t": trace.changed_at * unit}}
    if trace.signals is not None:
        at, page, source, about = trace.signals
        lastmod = pa.array(about * unit, mask=np.isinf(about))
        moved = np.ones(len(at), np.bool_)
        tables["signals"] = {"page_id": page, "t": at * unit, "lastmod": lastmod, "lastmod_moved": moved}
        tables["signals"]["source"] = source
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in tables.items():
        with whole_file(folder / f"{name}.parquet") as partial:
            pa.parquet.write_table(pa.table(columns), partial)


def pyarrow() -> Any:
    """pyarrow with its Parquet part, loaded on first use."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise ParameterError("recorded traces need pyarrow: pip install 'recrawl[data]'") from None
    return pyarrow


def _changes(path: Path, ids: Ids) -> tuple[Ids, Array]:
    table = _table(path, ("page_id", "t"))
    page, at = _ids(path, table), _finite(path, table, "t")
    row = _rows(path, page, ids)
    falls = (np.diff(page) < 0) | ((np.diff(page) == 0) & (np.diff(at) < 0))
    if falls.any():
        raise ParameterError(f"{path}: row {int(np.argmax(falls)) + 2} is out of order: sort by page_id, then t")
    return offsets(np.bincount(row, minlength=len(ids))), at


def _signals(path: Path, ids: Ids) -> Signals | None:
    """Signals that a crawler could have seen: dates of last change that moved. Others are noise of a detector."""
    if not path.is_file():
        return None
    table = _table(path, ("page_id", "t"))
    if not {"lastmod", "lastmod_moved"} <= set(table.column_names):
        return None
    moved = table.column("lastmod_moved").fill_null(False).to_numpy().astype(np.bool_)
    at, about = _finite(path, table, "t"), _numbers(path, table, "lastmod")
    source = _numbers(path, table, "source") if "source" in table.column_names else np.zeros(len(at))
    page = _rows(path, _ids(path, table), ids)
    about = np.where(np.isnan(about), np.inf, about)
    return Signals.of(at[moved], page[moved], source[moved], about[moved])


def _table(path: Path, names: tuple[str, ...]) -> Any:
    pa = pyarrow()
    if not path.is_file():
        raise ParameterError(f"{path}: is not there; a recorded trace is a folder with pages and changes")
    try:
        table = pa.parquet.read_table(path)
    except pa.ArrowException as problem:
        raise ParameterError(f"{path}: is not Parquet: {str(problem).splitlines()[0]}") from None
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise ParameterError(f"{path}: has no column {', '.join(missing)}")
    return table


def _numbers(path: Path, table: Any, name: str) -> Array:
    """A column as numbers; NaN where it is null."""
    try:
        column: Array = table.column(name).cast("float64").to_numpy()
    except pyarrow().ArrowException:
        raise ParameterError(f"{path}: column {name} does not hold numbers") from None
    return column


def _finite(path: Path, table: Any, name: str) -> Array:
    column = _numbers(path, table, name)
    bad = ~np.isfinite(column)
    if bad.any():
        raise ParameterError(f"{path}: column {name}, row {int(np.argmax(bad)) + 1}: is not a finite number")
    return column


def _ids(path: Path, table: Any) -> Ids:
    return _finite(path, table, "page_id").astype(np.int64)


def _rows(path: Path, page: Ids, ids: Ids) -> Ids:
    row = np.minimum(np.searchsorted(ids, page), len(ids) - 1)
    unknown = ids[row] != page
    if unknown.any():
        first = int(np.argmax(unknown))
        raise ParameterError(f"{path}: row {first + 1} is of page {page[first]}, which pages.parquet does not have")
    return row


def _text(table: Any, name: str, order: Ids) -> list[str]:
    cells = table.column(name).to_pylist()
    return ["" if cells[row] is None else str(cells[row]) for row in order.tolist()]


def _key(url: str) -> str:
    parts = urlsplit(url)
    return unquote(parts.path.removeprefix("/")) if parts.scheme in ("http", "https") else url
