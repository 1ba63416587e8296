"""Stored bodies as a WARC archive: what `recrawl export --bodies` writes and `recrawl import --bodies` reads."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import redirect_stderr
from datetime import UTC, datetime
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

from recrawl._system.files import whole_file
from recrawl.cli.shared.files.outputs import check_folder
from recrawl.errors import ParameterError
from recrawl.store import BlockingStore, Outcome, OwnedStore

_VERSION = "WARC/1.1"  # its dates have fractions of a second


def check_warc(path: Path) -> None:
    """Raise ParameterError if a WARC file could not be written."""
    if not path.name.lower().endswith((".warc", ".warc.gz")):
        raise ParameterError(f"{path}: the suffix of an archive must be .warc or .warc.gz")
    check_folder(path)
    _warcio()


def write_warc(stores: Iterable[BlockingStore[OwnedStore]], path: Path) -> int:
    """Write every stored body as a resource record (headers are not stored), and return their number."""
    n, writer_of = 0, _warcio().warcwriter.WARCWriter
    with whole_file(path) as partial, partial.open("wb") as file:
        writer = writer_of(file, gzip=path.name.lower().endswith(".gz"), warc_version=_VERSION)
        for store, url in ((one, url) for one in stores for url in one.urls()):
            copy = store.copies([url]).get(url)
            for version in store.versions(url):
                body = store.body(version.key) or b""
                kind = (copy.content_type if copy is not None else None) or "application/octet-stream"
                record = writer.create_warc_record(
                    url,
                    "resource",
                    payload=BytesIO(body),
                    length=len(body),
                    warc_content_type=kind,
                    warc_headers_dict={"WARC-Date": _date(version.fetched_at)},
                )
                writer.write_record(record)
                n += 1
    return n


class WarcBodies:
    """The bodies of an archive by page and time; each is read when it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path, self.n_used = path, 0
        self._places: dict[tuple[str, str], int] = {}
        iterator_of = _warcio().archiveiterator.ArchiveIterator
        with path.open("rb") as file, redirect_stderr(StringIO()):  # the package prints what it thinks of damage
            try:
                records = iterator_of(file)
                for record in records:
                    if record.rec_type == "resource":
                        url, date = (record.rec_headers.get_header(f"WARC-{name}") for name in ("Target-URI", "Date"))
                        self._places[str(url), str(date)] = records.get_record_offset()
            except Exception as problem:  # the package raises several kinds for damaged archives
                raise ParameterError(
                    f"{path}: is not WARC, or cut off: {str(problem).strip() or 'no record'}"
                ) from None

    def __len__(self) -> int:
        return len(self._places)

    def of(self, outcome: Outcome) -> bytes | None:
        """The body that a crawl fetched; None if the archive does not have it."""
        place = self._places.get((outcome.url, _date(outcome.began_at)))
        if place is None or not outcome.fetched:
            return None
        with self.path.open("rb") as file:
            file.seek(place)
            self.n_used += 1
            return bytes(next(iter(_warcio().archiveiterator.ArchiveIterator(file))).content_stream().read())


def _date(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _warcio() -> Any:
    try:
        import warcio
        import warcio.archiveiterator
        import warcio.warcwriter
    except ImportError:
        raise ParameterError("--bodies needs warcio: pip install 'recrawl[warc]'") from None
    return warcio
