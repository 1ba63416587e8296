"""Files that recrawl writes: each appears when it is complete, and an error names it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def named(path: str | Path) -> Iterator[None]:
    """Name a file in the OSError of a call that does not: "No space left on device" alone says nothing."""
    try:
        yield
    except OSError as problem:
        if problem.filename is not None:
            raise
        raise OSError(problem.errno, problem.strerror or " ".join(str(problem).split()), str(path)) from None


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """The path to write to: a temporary file that replaces ``path`` at the end, and is deleted if anything raises.

    The temporary file has the suffix of ``path`` and is in the same folder. A link is followed, and what is not a
    regular file (a pipe, a device) is written directly. An OSError names ``path``.
    """
    goal = Path(os.path.realpath(path))
    if goal.exists() and not goal.is_file():
        with named(path):
            yield Path(path)
        return
    partial = goal.with_name(f".{goal.stem}.{os.getpid()}.part{goal.suffix}")
    try:
        yield partial
        if goal.exists():
            shutil.copymode(goal, partial)
        os.replace(partial, goal)
    except OSError as problem:
        if problem.filename not in (None, str(partial), os.fsencode(partial)):
            raise
        raise OSError(problem.errno, problem.strerror or " ".join(str(problem).split()), str(path)) from None
    finally:
        partial.unlink(missing_ok=True)
