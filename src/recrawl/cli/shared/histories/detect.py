"""Which history a path holds: by its content, not by its name."""

from __future__ import annotations

import zlib
from collections import Counter
from pathlib import Path

from recrawl.cli.shared.histories.changedetection import Datastore, base_of
from recrawl.cli.shared.histories.entries import History, Losses
from recrawl.cli.shared.histories.sitemaps import SavedSitemaps, is_sitemap
from recrawl.cli.shared.histories.trees import Folder, Tree, Zipped, start_of
from recrawl.cli.shared.histories.urlwatch import UrlwatchStore
from recrawl.cli.shared.histories.warc import WarcFiles
from recrawl.cli.shared.histories.warc_records import GZIP
from recrawl.cli.shared.logs.roles import LogOptions
from recrawl.errors import ParameterError

_START = 1 << 16
_SQLITE, _ZIP, _ZSTD, _WARC = b"SQLite format 3\0", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"WARC/"
_STORES = ("cache.db", "snapshots.db")  # in the folders of urlwatch and webchanges
_OTHERS = "files of another kind, left out"


def history_at(path: Path, options: LogOptions, repairs: Counter[str]) -> History | None:
    """The history at a path; None if the file is to be read as a log. ParameterError for a folder of other files."""
    losses = Losses(repairs)
    start = _start(path)
    if start is None:
        return None
    if path.is_dir():
        store = next((path / name for name in _STORES if (_start(path / name) or b"").startswith(_SQLITE)), None)
        return _of_tree(Folder(path), path, options, losses) if store is None else history_at(store, options, repairs)
    if start.startswith(_SQLITE):
        return UrlwatchStore(path, losses, options.jobs, options.every, options.nameless)
    if start.startswith(_ZIP):
        return _of_tree(Zipped(path), path, options, losses)
    if _is_warc(start):
        return WarcFiles({path.name: lambda: path.open("rb")}, losses)
    if start.startswith(_ZSTD):
        raise ParameterError(f"{path}: is packed with zstd; unpack it first")
    if b'"watching"' in start and (base := base_of(Folder(path.parent))) is not None:
        return Datastore(Folder(path.parent), base, losses, options.every)
    if is_sitemap(_unpacked(start)):
        raise ParameterError(f"{path}: is one sitemap; give the folder of sitemaps that were saved over time")
    return None


def _start(path: Path) -> bytes | None:
    """The first bytes of a file, none of a folder; None where the reader of logs says what is wrong."""
    try:
        if path.is_dir():
            return b""
        with path.open("rb") as file:
            return file.read(_START)
    except (OSError, ValueError):
        return None


def _of_tree(tree: Tree, path: Path, options: LogOptions, losses: Losses) -> History:
    base = base_of(tree)
    if base is not None:
        return Datastore(tree, base, losses, options.every)
    starts = {name: start_of(tree, name) for name in tree.names}
    archives = [name for name, start in starts.items() if _is_warc(start)]
    sitemaps = [name for name, start in starts.items() if is_sitemap(_unpacked(start))]
    chosen = archives or sitemaps
    if not chosen:
        raise ParameterError(
            f"{path}: has no history that is known: WARC files, sitemaps, "
            "a datastore of changedetection.io, or a store of urlwatch or webchanges"
        )
    for name in sorted(set(tree.names) - set(chosen)):
        losses.add(_OTHERS, name, "is not read")
    if archives:
        return WarcFiles({name: lambda name=name: tree.open(name) for name in archives}, losses)  # type: ignore[misc]
    return SavedSitemaps(tree, sitemaps, losses)


def _is_warc(start: bytes) -> bool:
    return start.startswith(_WARC) or (start.startswith(GZIP) and _unpacked(start).lstrip().startswith(_WARC))


def _unpacked(start: bytes) -> bytes:
    """The first bytes without gzip."""
    if not start.startswith(GZIP):
        return start
    try:
        return zlib.decompressobj(31).decompress(start, 4096)
    except zlib.error:
        return b""
