"""Tables in several files: which files they are, and where a function is called with each of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recrawl._system.processes import worker_processes
from recrawl.cli.shared.options.extras import need
from recrawl.errors import ParameterError

Call = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]  # (work, parts): what work returns for each


@contextmanager
def calling(processes: int, ray: str | None = None) -> Iterator[Call]:
    """How a function is called with each part: here, in further processes, or on the Ray cluster at an address."""
    if ray is not None:
        from recrawl.contrib.ray import connected, mapped

        with connected(ray) as processors:
            yield lambda work, parts: mapped(work, parts, processors)
    elif processes <= 1:
        yield lambda work, parts: list(map(work, parts))
    else:
        with worker_processes(processes) as pool:
            yield lambda work, parts: list(pool.map(work, parts))


def expanded(paths: Sequence[Path]) -> list[Path]:
    """The files of patterns such as ``parts/*.parquet`` that the shell did not expand; others as they are."""
    found: list[Path] = []
    for path in paths:
        matched = sorted(path.parent.glob(path.name)) if "*" in path.name and not path.exists() else [path]
        if not matched:
            raise ParameterError(f"{path}: there is no such file")
        found += matched
    names = [path.name for path in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ParameterError(f"two parts are named {twice}: their names must differ")
    return found


def check_processes(processes: int) -> None:
    """Raise ParameterError if there are far more processes than this machine can run."""
    most = 4 * (os.cpu_count() or 1)
    if processes > most:
        raise ParameterError(f"--processes is {processes}: at most {most} on this machine")


def check_places(processes: int, ray: str | None) -> None:
    """Raise ParameterError if parts cannot be read where the options say."""
    check_processes(processes)
    if ray is not None:
        need("ray")


def check_parts(plot: Path | None) -> None:
    """Raise ParameterError for what cannot be had of several files."""
    if plot is not None:
        raise ParameterError("--plot needs the table in one file")


def check_one_file(ray: str | None) -> None:
    """Raise ParameterError for what cannot be had of one file."""
    if ray is not None:
        raise ParameterError("--ray needs the table in several files")


def check_folder(output: Path | None) -> None:
    """Raise ParameterError unless the parts of a table can be written there."""
    if output is not None and not output.is_dir():
        raise ParameterError(f"{output}: is no folder; the parts of a table are written to one")
