"""Checkpoints: the state of an engine in a file, which only the same source code reads again.

A checkpoint saves time, it is never the only place of anything: one that is damaged or was written by other code is not
used, and the engine is built from stored rows instead.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from recrawl._system.trees import DamagedFileError, read_about, read_tree, write_tree
from recrawl.engine.engine import Engine
from recrawl.errors import RecrawlError

FORMAT = 1
_PARTS = ("engine", "schedule/exact", "estimate", "model")  # packages that a state depends on


@cache
def source_stamp() -> str:
    """A hash of the source code that a state depends on."""
    found = hashlib.blake2b(digest_size=16)
    for part in _PARTS:
        _add_folder(found, files("recrawl").joinpath(part))
    return found.hexdigest()


def _add_folder(found: hashlib.blake2b, folder: Traversable) -> None:
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        if file.is_dir() and file.name != "__pycache__":
            _add_folder(found, file)
        elif file.name.endswith(".py"):
            found.update(file.name.encode() + file.read_bytes())


def write_checkpoint(engine: Engine, path: Path, about: Mapping[str, Any]) -> None:
    """Write an engine's state, and plain values that are to be known before it is read; it is on disk then."""
    with path.open("wb") as file:
        write_tree(file, engine.live_state(), {"format": FORMAT, "source": source_stamp(), **about})
        file.flush()
        os.fsync(file.fileno())


def checkpoint_about(path: Path) -> dict[str, Any]:
    """What a checkpoint was written with; DamagedFileError if this code cannot read it."""
    about = read_about(path)
    if about.get("format") != FORMAT:
        raise DamagedFileError(f"it has format {about.get('format')}, this version reads {FORMAT}")
    if about.get("source") != source_stamp():
        raise DamagedFileError("another version wrote it")
    return about


def read_checkpoint(path: Path) -> Engine:
    """The engine of a checkpoint; DamagedFileError if it is damaged."""
    try:
        return Engine.restore(read_tree(path))
    except (RecrawlError, KeyError, TypeError, IndexError) as problem:
        raise DamagedFileError(f"its state is not complete ({problem})") from None
