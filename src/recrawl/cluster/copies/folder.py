"""A backup of a cluster: a folder with an SQLite file for each shard, and a file that says what they are."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from recrawl._system.files import named
from recrawl.cluster.copies.sharded import Shape
from recrawl.errors import ParameterError, StoreError
from recrawl.store import BlockingStore, SqliteStore
from recrawl.store.opening import OwnedStore

SHAPE = "cluster.json"  # the file that makes a folder a backup of a cluster
_SUFFIX = ".cluster"
_ASIDE = (".lock", "-wal", "-shm")  # beside the file of a store


def is_folder(path: str | Path) -> bool:
    """Whether a path is a backup of a cluster."""
    return (Path(path) / SHAPE).is_file()


class ShardFolder:
    """The files of a backup; ``fresh`` ones are made, others read."""

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        self.path, self._fresh = path, fresh

    @property
    def name(self) -> str:
        """The folder."""
        return str(self.path)

    def shape(self) -> Shape:
        """What the backup is of."""
        try:
            said = json.loads((self.path / SHAPE).read_text())
            return Shape(int(said["shards"]), float(said["seconds"]), str(said["budget"]))
        except (OSError, ValueError, KeyError, TypeError):
            raise StoreError(f"{self.path}: is no backup of a cluster") from None

    @contextmanager
    def shard(self, shard: int) -> Iterator[BlockingStore[OwnedStore]]:
        """The store of a shard."""
        path = self.path / f"s{shard:02d}.db"
        if not self._fresh and not path.is_file():
            raise StoreError(f"{path}: is missing")
        with BlockingStore(SqliteStore(path, exclusive=self._fresh)) as store:
            yield store
        for end in _ASIDE:
            path.with_name(path.name + end).unlink(missing_ok=True)


@contextmanager
def whole_folder(goal: Path, shape: Shape) -> Iterator[ShardFolder]:
    """A folder to fill, which appears under its name when it is complete; a backup that is there is replaced."""
    if goal.exists() and not is_folder(goal):
        raise ParameterError(f"{goal}: is there already and is no backup of a cluster")
    if not goal.parent.is_dir():
        raise StoreError(f"{goal}: there is no such folder")
    partial = goal.with_name(f".{goal.name}.{os.getpid()}.part")
    with named(partial):
        partial.mkdir()
    try:
        yield ShardFolder(partial, fresh=True)
        with named(goal):
            (partial / SHAPE).write_text(json.dumps(asdict(shape)) + "\n")
            for path in sorted(partial.iterdir()):
                _to_disk(path)
            if goal.exists():
                shutil.rmtree(goal)
            os.replace(partial, goal)
            _to_disk(goal.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _to_disk(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def folder_name(schema: str, now: float) -> str:
    """The name of a backup in a folder of backups.

    >>> folder_name("news", 0.0)
    'news-19700101T000000Z.cluster'
    """
    return f"{schema}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now))}{_SUFFIX}"


def old_folders(schema: str, folder: Path, keep: int) -> list[Path]:
    """The backups of a cluster in a folder, but the newest."""
    form = re.compile(re.escape(schema) + r"-\d{8}T\d{6}Z" + re.escape(_SUFFIX), re.ASCII)
    found = sorted((one for one in folder.iterdir() if form.fullmatch(one.name)), key=lambda one: one.name)
    return found[: max(len(found) - keep, 0)]
