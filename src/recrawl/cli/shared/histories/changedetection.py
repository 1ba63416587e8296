"""The datastore of changedetection.io, a folder or the ZIP file of a backup.

A watch is an entry of ``url-watches.json``, or since later versions ``<uuid>/watch.json``. Each has a folder with
``history.txt``: one line "time,file" for each snapshot, of which a new one is kept only when the watch has changed. The
checks in between follow from the number of checks and the time of the last one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from recrawl.cli.shared.histories.checks import between, bounded
from recrawl.cli.shared.histories.entries import (
    LARGEST,
    BadEntryError,
    Losses,
    Record,
    digest_of,
    page_of,
    row,
    time_of,
    unpacked,
)
from recrawl.cli.shared.histories.trees import Tree, read, start_of

_ALL, _ONE, _LINES = "url-watches.json", "watch.json", "history.txt"
_OTHER_LINES = re.compile(r"history-[\w.-]{1,60}\.txt")
_LARGEST_INDEX = 256 << 20  # bytes of url-watches.json
_UNITS = {"weeks": 604800.0, "days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
_USUAL = 3 * 3600.0  # the tool's own default
WATCHES, SNAPSHOTS = "broken watches, left out", "broken snapshots, left out"
SECOND = "further watches of the same page, left out"


class Snapshot(NamedTuple):
    """A kept content."""

    at: float
    digest: str


class Datastore:
    """The watches of a datastore as rows of a crawl log."""

    def __init__(self, tree: Tree, base: str, losses: Losses, every: float | None = None) -> None:
        self.notes: list[str] = []
        self._tree, self._base, self._losses, self._every = tree, base, losses, every
        self._files: dict[str, set[str]] = {}
        for name in tree.names:
            folder, _, file = name.rpartition("/")
            self._files.setdefault(folder, set()).add(file)
        self._usual = _USUAL

    def __iter__(self) -> Iterator[Record]:
        seen: set[str] = set()
        for uuid, watch in self._watches():
            place = f"watch {uuid}"
            try:
                url = page_of(_plain_url(watch.get("url")))
            except BadEntryError as bad:
                self._losses.add(WATCHES, place, bad)
                continue
            if url in seen:
                self._losses.add(SECOND, place, url)
                continue
            rows = self._rows(url, watch, self._snapshots(uuid))
            if rows:
                seen.add(url)
            yield from rows
        self.notes = [
            "changedetection.io keeps changes only: checks without a change are taken to lie between them at equal "
            "distances",
            *self._losses.notes(),
        ]

    def _watches(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every watch with the name of its folder; its own file counts before the common one."""
        for index in ("changedetection.json", _ALL):
            if index in self._files.get(self._base, ()):
                self._take_settings(index)
        own = [folder for folder, files in self._files.items() if _ONE in files and self._parent(folder) == self._base]
        for folder in sorted(own):
            try:
                yield folder.rpartition("/")[2], _object(read(self._tree, f"{folder}/{_ONE}", LARGEST))
            except BadEntryError as bad:
                self._losses.add(WATCHES, f"{folder}/{_ONE}", bad)
        names = {folder.rpartition("/")[2] for folder in own}
        for uuid, watch in self._common().items():
            if uuid in names:
                continue
            if not isinstance(watch, dict):
                self._losses.add(WATCHES, f"watch {uuid}", "is not a JSON object")
                continue
            yield uuid, watch

    def _common(self) -> dict[str, Any]:
        if _ALL not in self._files.get(self._base, ()):
            return {}
        try:
            watching = _object(read(self._tree, self._name(_ALL), _LARGEST_INDEX)).get("watching")
        except BadEntryError as bad:
            self._losses.add(WATCHES, self._name(_ALL), bad)
            return {}
        return watching if isinstance(watching, dict) else {}

    def _take_settings(self, index: str) -> None:
        try:
            settings = _object(read(self._tree, self._name(index), _LARGEST_INDEX)).get("settings")
        except BadEntryError:
            return
        requests = settings.get("requests") if isinstance(settings, dict) else None
        if isinstance(requests, dict):
            self._usual = _seconds(requests.get("time_between_check")) or self._usual

    def _snapshots(self, uuid: str) -> list[Snapshot]:
        folder = self._name(uuid)
        files = self._files.get(folder, set())
        lines = _LINES if _LINES in files else next(iter(sorted(filter(_OTHER_LINES.fullmatch, files))), None)
        if lines is None:
            return []
        try:
            text = read(self._tree, f"{folder}/{lines}").decode("utf-8", "replace")
        except BadEntryError as bad:
            self._losses.add(SNAPSHOTS, f"{folder}/{lines}", bad)
            return []
        found = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip():
                continue
            try:
                found.append(self._snapshot(folder, files, line))
            except BadEntryError as bad:
                self._losses.add(SNAPSHOTS, f"{folder}/{lines}, line {number}", bad)
        return sorted(found)

    def _snapshot(self, folder: str, files: set[str], line: str) -> Snapshot:
        """One line of a history. Earlier versions write whole paths: only the last part counts."""
        at, comma, written = line.strip().partition(",")
        name = PurePosixPath(written.replace("\\", "/")).name
        if not comma or not name:
            raise BadEntryError("is not a time and a file")
        moment = time_of(at)
        if name not in files:
            raise BadEntryError(f"{name} is not in the folder of the watch")
        data = read(self._tree, f"{folder}/{name}")
        return Snapshot(moment, digest_of(unpacked(data, "br") if name.endswith(".br") else data))

    def _rows(self, url: str, watch: dict[str, Any], kept: list[Snapshot]) -> list[Record]:
        if not kept:
            return []
        last = max(_time(watch.get("last_checked")), kept[-1].at)
        every = bounded(self._distance(watch, kept[0].at, last), last - kept[0].at)
        found = [row(url, kept[0].at, digest=kept[0].digest)]
        for before, after in pairwise(kept):
            found += [row(url, at, digest=before.digest) for at in between(before.at, after.at, every)]
            found.append(row(url, after.at, digest=after.digest))
        if last > kept[-1].at:
            found += [row(url, at, digest=kept[-1].digest) for at in between(kept[-1].at, last, every)]
            ended = {"failure": "error"} if watch.get("last_error") else {"digest": kept[-1].digest}
            found.append(row(url, last, **ended))
        return found

    def _distance(self, watch: dict[str, Any], first: float, last: float) -> float:
        """Seconds between two checks: as the user says, by their number, or as they are set."""
        if self._every is not None:
            return self._every
        n, created = _number(watch.get("check_count")), _time(watch.get("date_created"))
        begun = created if 0 < created <= first else first
        if n > 1 and last > begun:
            return (last - begun) / (n - 1)
        own = 0.0 if watch.get("time_between_check_use_default") else _seconds(watch.get("time_between_check"))
        return own or self._usual

    def _name(self, name: str) -> str:
        return f"{self._base}/{name}" if self._base else name

    @staticmethod
    def _parent(folder: str) -> str:
        return folder.rpartition("/")[0]


def base_of(tree: Tree) -> str | None:
    """The folder within a tree that is a datastore; None if there is none."""
    found = []
    for name in tree.names:
        folder, _, file = name.rpartition("/")
        if file == _ALL and b'"watching"' in start_of(tree, name, 1 << 20):
            found.append(folder)
        elif file == _ONE and folder and b'"url"' in start_of(tree, name, 1 << 20):
            found.append(folder.rpartition("/")[0])
    return min(found, key=len) if found else None


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadEntryError("is not a JSON object")
    return found


def _plain_url(url: object) -> object:
    return url.strip().removeprefix("source:") if isinstance(url, str) else url


def _number(value: object) -> float:
    """A number of a watch; 0 where there is none."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e11
    return float(value) if good else 0.0  # type: ignore[arg-type]


def _time(value: object) -> float:
    """A time of a watch; 0 where there is none."""
    try:
        return time_of(value)
    except BadEntryError:
        return 0.0


def _seconds(spans: object) -> float:
    """A span given by weeks, days, hours, minutes and seconds; 0 if it is not set."""
    return sum(_number(spans.get(unit)) * size for unit, size in _UNITS.items()) if isinstance(spans, dict) else 0.0
