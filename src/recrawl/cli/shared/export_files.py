"""Export of a database to CSV, Parquet and WARC. A file appears when it is complete."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from datetime import UTC, datetime
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from recrawl._files import whole_file
from recrawl.cli.shared.outputs import check_folder, check_outputs
from recrawl.errors import ParameterError
from recrawl.store import BlockingStore, SqliteStore

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
}
PAGE = {
    "url": "string",
    "importance": "double",
    "change_rate": "double",
    "evidence": "double",
    "n_crawls": "int64",
    "n_changes": "int64",
    "fetched_at": "double",
    "failures": "int64",
    "times_gone": "int64",
    "paused": "bool",
}


def check_table(path: Path) -> None:
    """Raise ParameterError if a table could not be written."""
    check_outputs(path, None)
    if path.suffix.lower() != ".csv":
        _pyarrow()


def check_warc(path: Path) -> None:
    """Raise ParameterError if a WARC file could not be written."""
    if not path.name.lower().endswith((".warc", ".warc.gz")):
        raise ParameterError(f"{path}: the suffix of an archive must be .warc or .warc.gz")
    check_folder(path)
    _warcio()


def write_observations(store: BlockingStore[SqliteStore], path: Path) -> int:
    """Write every crawl, one row each, and return their number."""
    rows = (
        tuple(outcome.began_at if name == "time" else getattr(outcome, name) for name in OBSERVATION)
        for outcome in store.observations()
    )
    return _write(path, OBSERVATION, rows)


def write_pages(store: BlockingStore[SqliteStore], path: Path) -> int:
    """Write every page, one row each, and return their number.

    Rates are per second; a page without a copy has no ``fetched_at``.
    """
    rows = store.load()
    if rows is None:
        return _write(path, PAGE, ())
    rows["fetched_at"] = [at if at > -math.inf else None for at in np.asarray(rows["fetched_at"]).tolist()]
    columns = [value.tolist() if isinstance(value := rows[name], np.ndarray) else value for name in PAGE]
    return _write(path, PAGE, zip(*columns, strict=True))


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


def write_warc(store: BlockingStore[SqliteStore], path: Path) -> int:
    """Write every stored body as a resource record (headers are not stored), and return their number."""
    writer_of = _warcio()
    n = 0
    with whole_file(path) as partial, partial.open("wb") as file:
        writer = writer_of(file, gzip=path.name.lower().endswith(".gz"))
        for url in store.urls():
            copy = store.copies([url]).get(url)
            for version in store.versions(url):
                body = store.body(version.key) or b""
                kind = (copy.content_type if copy is not None else None) or "application/octet-stream"
                date = datetime.fromtimestamp(version.fetched_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                record = writer.create_warc_record(
                    url,
                    "resource",
                    payload=BytesIO(body),
                    length=len(body),
                    warc_content_type=kind,
                    warc_headers_dict={"WARC-Date": date},
                )
                writer.write_record(record)
                n += 1
    return n


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ParameterError("Parquet needs pyarrow: pip install 'recrawl[data]'") from None
    return pa, pq


def _warcio() -> Any:
    try:
        from warcio.warcwriter import WARCWriter
    except ImportError:
        raise ParameterError("--bodies needs warcio: pip install 'recrawl[warc]'") from None
    return WARCWriter
