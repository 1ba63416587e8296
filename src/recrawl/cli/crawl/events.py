"""``recrawl events``: events of pages as lines of JSON, from any event number on."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from recrawl._system.files import named, whole_file
from recrawl.cli.shared.options.crawl_options import Config, Database, settings_of, shared_store
from recrawl.cli.shared.options.interrupts import stop_requests
from recrawl.cli.shared.options.places import cluster_of, places_of
from recrawl.errors import ParameterError

if TYPE_CHECKING:
    from recrawl.crawl.config.settings import Settings
    from recrawl.store import BlockingStore, Event, OwnedStore

EPILOG = (
    "Example:  recrawl events --after 1200\n\nExample:  recrawl events --follow --output events.jsonl\n\n"
    "Example:  recrawl events --snapshot | load-into-index"
)
_LAST = 2**63 - 1  # the largest number of an event
_POLL = 0.5  # seconds between two reads of the database
_TAIL = 64 << 20  # bytes at the end of a file that are searched for its last line


def events(
    after: Annotated[
        int | None, typer.Option(help="Print events after this number.  [default: all]", min=0, max=_LAST)
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for further events, until Ctrl-C.")] = False,
    snapshot: Annotated[bool, typer.Option("--snapshot", help="First print every page as a new event.")] = False,
    output: Annotated[Path | None, typer.Option(help="Append to this file, after its last event.")] = None,
    config: Config = None,
    database: Database = None,
) -> None:
    """Print the events of pages (new, changed, redirected, gone), one JSON object per line, oldest first."""
    settings = settings_of(config, database=database)
    if snapshot and after is not None:
        raise ParameterError("--snapshot sets the first event: give it without --after")
    stop = stop_requests() if follow else [True]
    if cluster_of(settings) is not None:
        if after is not None or output is not None:
            raise ParameterError("a cluster numbers events per shard: --after and --output are not supported on one")
        _print_shards(settings, stop, snapshot=snapshot)
        return
    with shared_store(settings) as store:
        if snapshot:
            _write_snapshot(store, output)
        with _Lines(output) as lines:
            start = store.event_counts()["last"] if snapshot and output is None else lines.last(after, store)
            if snapshot and output is None:
                lines.write(store.snapshot())
            while True:
                start = _print(store, start, lines)
                if stop:
                    return
                time.sleep(_POLL)


def _print_shards(settings: Settings, stop: list[bool], *, snapshot: bool) -> None:
    """Print the events of all shards, each with its shard."""
    with places_of(settings) as places, _Lines(None) as lines:
        last = dict.fromkeys(range(len(places.places)), 0)
        while True:
            for shard, place in enumerate(places.places):
                with place.shared() as store:
                    if snapshot:
                        last[shard] = store.event_counts()["last"]
                        lines.write(store.snapshot(), shard=shard)
                    while found := store.events(last[shard]):
                        lines.write(found, shard=shard)
                        last[shard] = found[-1].number
            if stop:
                return
            snapshot = False
            time.sleep(_POLL)


def _write_snapshot(store: BlockingStore[OwnedStore], output: Path | None) -> None:
    """Write all pages to a file that does not exist or is empty. The file appears when it is complete."""
    if output is None or (output.exists() and output.stat().st_size):
        return
    with whole_file(output) as partial, _Lines(partial) as lines:
        lines.write(store.snapshot())


def _print(store: BlockingStore[OwnedStore], after: int, lines: _Lines) -> int:
    """Write all events after a number and return the number of the last one."""
    while found := store.events(after):
        if found[0].number > after + 1:
            missed = found[0].number - after - 1
            typer.echo(f"recrawl: {missed} events after number {after} are no longer stored", err=True)
        lines.write(found)
        after = found[-1].number
    return after


class _Lines:
    """Standard output, or a file of complete lines: a line that a killed process left incomplete is removed."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._name = path or "standard output"
        self._file: BinaryIO = sys.stdout.buffer if path is None else path.open("a+b")

    def last(self, after: int | None, store: BlockingStore[OwnedStore]) -> int:
        """The event number to continue after: the given one, or that of the last event in the file.

        ParameterError if that event is not of this database.
        """
        if self._path is None:
            return after or 0
        size = self._file.seek(0, os.SEEK_END)
        start = max(0, size - _TAIL)
        self._file.seek(start)
        tail = self._file.read()
        whole = tail[: tail.rfind(b"\n") + 1]
        if tail and not whole and start:
            raise ParameterError(f"{self._path}: has no line that ends")
        line = whole[:-1].rpartition(b"\n")[2]
        number = _number(line, self._path, store) if line and after is None else after or 0
        self._file.truncate(start + len(whole))
        return number

    def write(self, found: Iterable[Event], **more: int) -> None:
        """Write events, with ``more`` fields; in a file they are on disk when this returns."""
        with named(self._name):
            for event in found:
                text = json.dumps({**event.as_dict(), **more}, ensure_ascii=False)
                self._file.write(text.encode("utf-8", "replace") + b"\n")
            self._file.flush()
            if self._path is not None:
                os.fsync(self._file.fileno())

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None:
        if self._path is not None:
            self._file.close()


def _number(line: bytes, path: Path, store: BlockingStore[OwnedStore]) -> int:
    try:
        found: Any = json.loads(line)
        number, stream = int(found["number"]), str(found["id"]).partition(".")[0]
    except (ValueError, TypeError, KeyError):
        raise ParameterError(f"{path}: its last line is not an event; give another file, or --after") from None
    own = next(iter(store.events(0)), None) or next(iter(store.snapshot()), None)
    last = store.event_counts()["last"]
    if number > last or (own is not None and own.id.partition(".")[0] != stream):
        raise ParameterError(f"{path}: its events are of another database; give another file, or --after")
    return number
