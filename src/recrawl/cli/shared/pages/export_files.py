"""Export of a database to CSV and Parquet. A file appears when it is complete."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from recrawl._system.files import whole_file
from recrawl.cli.shared.files.outputs import check_outputs
from recrawl.cli.shared.pages.page_states import PAGE, page_rows
from recrawl.engine import Engine
from recrawl.errors import ParameterError
from recrawl.schedule.exact import access
from recrawl.store import BlockingStore, OwnedStore

_BATCH = 20_000
OBSERVATION = {
    "url": "string",
    "time": "double",
    "changed": "bool",
    "status": "int64",
    "took": "double",
    "failure": "string",
    "gone": "bool",
    "final_url": "string",
    "digest": "string",
    "etag": "string",
    "last_modified": "string",
    "content_type": "string",
    "requests": "int64",
    "flapping": "bool",
    "rolled_off": "bool",
    "importance": "double",
}


def check_table(path: Path) -> None:
    """Raise ParameterError if a table could not be written."""
    check_outputs(path, None)
    if path.suffix.lower() != ".csv":
        _pyarrow()


def write_observations(parts: Iterable[tuple[BlockingStore[OwnedStore], Engine]], path: Path) -> int:
    """Write every crawl, one row each, with the importance of its page, and return their number."""

    def rows() -> Iterator[tuple[Any, ...]]:
        for store, engine in parts:
            ids = engine.ids()
            importance = dict(zip(engine.url(ids), access.importance(engine.scheduler, ids).tolist(), strict=True))
            for outcome in store.observations():
                known = {"time": outcome.began_at, "importance": importance.get(outcome.url)}
                yield tuple(known[name] if name in known else getattr(outcome, name) for name in OBSERVATION)

    return _write(path, OBSERVATION, rows())


def write_pages(engines: Iterable[Engine], path: Path, now: float) -> int:
    """Write every page, one row each, and return their number. Rates are per day."""
    return _write(path, PAGE, chain.from_iterable(page_rows(engine, now) for engine in engines))


def _write(path: Path, names: dict[str, str], rows: Iterable[tuple[Any, ...]]) -> int:
    with whole_file(path) as partial:
        return (
            _write_csv(partial, names, rows) if path.suffix.lower() == ".csv" else _write_parquet(partial, names, rows)
        )


def _write_csv(path: Path, names: dict[str, str], rows: Iterable[tuple[Any, ...]]) -> int:
    n = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for row in rows:
            writer.writerow([str(cell).lower() if isinstance(cell, bool) else cell for cell in row])
            n += 1
    return n


def _write_parquet(path: Path, names: dict[str, str], rows: Iterable[tuple[Any, ...]]) -> int:
    pa, pq = _pyarrow()
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in names.items()])
    iterator, n = iter(rows), 0
    with pq.ParquetWriter(path, schema) as writer:
        while many := list(islice(iterator, _BATCH)):
            columns = dict(zip(names, zip(*many, strict=True), strict=True))
            writer.write_table(pa.table({name: list(column) for name, column in columns.items()}, schema=schema))
            n += len(many)
    return n


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ParameterError("Parquet needs pyarrow: pip install 'recrawl[data]'") from None
    return pa, pq
