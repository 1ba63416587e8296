"""Lock: one writer per database. The operating system releases it when the process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from recrawl._files import named
from recrawl.errors import StoreInUseError


class Lock:
    """An exclusive lock on a file beside the database; the file holds the id of the process that has the lock."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._file, 32).decode("ascii", "replace").strip()
            os.close(self._file)
            owner = f"process {holder}" if holder.isdigit() else "another process"
            name = str(path).removesuffix(".lock")
            raise StoreInUseError(f"{name}: in use by {owner}; only one run at a time") from None
        try:
            with named(path):
                os.ftruncate(self._file, 0)
                os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            self.release()
            raise

    def release(self) -> None:
        """Release the lock."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1
