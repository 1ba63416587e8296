"""A folder or a ZIP file as named files. Nothing is unpacked to disk, links are not followed, reads are bounded."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import IO, Protocol

from recrawl.cli.shared.histories.entries import LARGEST, BadEntryError
from recrawl.errors import ParameterError

_MOST = 200_000  # files
_DEEPEST = 8  # folders within each other


class Tree(Protocol):
    """Files by their names, which are relative and separated by slashes."""

    names: list[str]  # sorted

    def open(self, name: str) -> IO[bytes]:
        """Open one of the files."""
        ...

    def modified_at(self, name: str) -> float | None:
        """When a file was written last; None if that is not known."""
        ...


class Folder:
    """The regular files of a folder and of the folders in it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.names: list[str] = []
        for base, folders, files in os.walk(path):
            inner = Path(base).relative_to(path)
            if len(inner.parts) >= _DEEPEST:
                folders.clear()
            names = [(inner / name).as_posix() for name in files]
            self.names += [name for name in names if (path / name).is_file() and not (path / name).is_symlink()]
            if len(self.names) > _MOST:
                raise ParameterError(f"{path}: has more than {_MOST} files")
        self.names.sort()

    def open(self, name: str) -> IO[bytes]:
        """Open one of the files."""
        return (self._path / name).open("rb")

    def modified_at(self, name: str) -> float | None:
        """When a file was written last."""
        return (self._path / name).stat().st_mtime


class Zipped:
    """The files of a ZIP file, without those whose names lead out of it."""

    def __init__(self, path: Path) -> None:
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as problem:
            raise ParameterError(f"{path}: is not a ZIP file, or cut off: {problem}") from None
        found = [one.filename for one in self._zip.infolist() if not one.is_dir() and _is_inside(one.filename)]
        if len(found) > _MOST:
            raise ParameterError(f"{path}: has more than {_MOST} files")
        self.names = sorted(set(found))

    def open(self, name: str) -> IO[bytes]:
        """Open one of the files."""
        return self._zip.open(name)

    def modified_at(self, name: str) -> float | None:
        """Not known: the times in ZIP files have no zone."""
        return None


def _is_inside(name: str) -> bool:
    """Whether a name in an archive is relative and stays below its beginning."""
    return not name.startswith("/") and ".." not in name.split("/")


def read(tree: Tree, name: str, limit: int = LARGEST) -> bytes:
    """The content of a file. BadEntryError if it cannot be read or has more bytes than the limit."""
    try:
        with tree.open(name) as file:
            data = file.read(limit + 1)
    except (OSError, KeyError, RuntimeError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as problem:
        raise BadEntryError(f"cannot be read: {problem}") from None
    if len(data) > limit:
        raise BadEntryError(f"has more than {limit >> 20} MiB")
    return data


def start_of(tree: Tree, name: str, n: int = 2048) -> bytes:
    """The first bytes of a file; empty if it cannot be read."""
    try:
        with tree.open(name) as file:
            return file.read(n)
    except (OSError, KeyError, RuntimeError, EOFError, ValueError, zipfile.BadZipFile, zlib.error):
        return b""
