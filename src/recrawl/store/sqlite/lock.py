"""Lock: one writer per database. The operating system releases it when the process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from recrawl._system.files import named
from recrawl.errors import StoreError, StoreInUseError
from recrawl.store.holder import Holder


def holder_of(database: str | Path) -> Holder | None:
    """The process that has a database to itself; None if there is none."""
    path = _lock_of(Path(database))
    if not path.is_file():
        return None
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        return _read(file)
    finally:
        os.close(file)


def _lock_of(database: Path) -> Path:
    return database.with_name(database.name + ".lock")


def _read(file: int) -> Holder:
    first, *lines = os.pread(file, 256, 0).decode("ascii", "replace").split("\n")
    return Holder(int(first) if first.isdigit() else None, tuple(filter(None, lines)))


class Lock:
    """An exclusive lock on a file beside the database; the file holds the id of the process that has the lock,
    and the lines that the process announced."""

    def __init__(self, database: Path) -> None:
        path = _lock_of(database)
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as problem:
            raise StoreError(f"{path}: {problem.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = _read(self._file).pid
            os.close(self._file)
            owner = f"process {pid}" if pid is not None else "another process"
            raise StoreInUseError(f"{database}: in use by {owner}; only one run at a time") from None
        self._path = path
        try:
            self.announce()
        except OSError:
            self.release()
            raise

    def announce(self, *lines: str) -> None:
        """Write the id of this process and lines that others may look for (`holder_of`)."""
        with named(self._path):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, "".join(f"{line}\n" for line in (os.getpid(), *lines)).encode(), 0)

    def release(self) -> None:
        """Release the lock."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1
