"""Pages in several files: each is read when it is asked, in this process or others, and forgotten again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from recrawl._processes import worker_processes
from recrawl.cli.shared.files.columns import read_pages, unit_of
from recrawl.cli.shared.files.tables import read_table, write_table
from recrawl.cli.shared.options.solve_request import Request
from recrawl.errors import ParameterError
from recrawl.model.freshness import page_freshness
from recrawl.model.pages import Pages
from recrawl.solver.curves import Curves, build_curves
from recrawl.solver.parts import Each, Mix

_NOT_NEEDED = ("url", "host", "title")  # columns that no sum depends on


@dataclass(frozen=True)
class Part:
    """One file of pages, and how they are to be solved for."""

    path: Path
    request: Request

    def pages(self) -> Pages:
        """The pages of the file."""
        table = read_table(self.path, without=_NOT_NEEDED)
        unit = unit_of(table)
        if unit is not None and unit != self.request.unit:
            raise ParameterError(
                f"{self.path}: column unit says {unit}, but the other rates are per {self.request.unit}"
            )
        return read_pages(table)

    def curves(self, pages: Pages) -> Curves:
        """The curves of the pages."""
        floor, ceiling = self.request.bounds()
        return build_curves(pages, self.request.objective, self.request.spacing, floor, ceiling)


def ask(question: Callable[..., Any], arguments: tuple[Any, ...], part: Part) -> Any:
    """The answer of one part to a question about its curves."""
    return question(part.curves(part.pages()), *arguments)


def write_rates(mix: Mix, folder: Path, part: Part) -> int:
    """Write the table of a part with its rates to a folder; the number of pages."""
    pages = part.pages()
    rate = mix.rates(part.curves(pages))
    interval = np.divide(1.0, rate, out=np.full(rate.shape, np.nan), where=rate > 0)
    fresh = page_freshness(pages, rate, spacing=part.request.spacing)  # type: ignore[arg-type]
    columns = {"crawl_rate": rate, "interval": interval, "freshness": fresh}
    write_table(read_table(part.path), folder / part.path.name, columns)
    return len(rate)


def unit_of_file(path: Path) -> str | None:
    """The unit of time that a file names."""
    return unit_of(read_table(path, without=_NOT_NEEDED))


@contextmanager
def asked_in(processes: int, parts: Sequence[Part]) -> Iterator[tuple[Each, Callable[..., list[Any]]]]:
    """How all parts are asked (`solver.parts.Each`), and how a function of a part is called with each.

    One process asks them one after the other, here; more are started for the time of the context.
    """
    if processes <= 1:
        yield (
            (lambda question, *more: [ask(question, more, part) for part in parts]),
            (lambda work: [work(part) for part in parts]),
        )
        return
    with worker_processes(min(processes, len(parts))) as pool:
        yield (
            (lambda question, *more: list(pool.map(partial(ask, question, more), parts))),
            (lambda work: list(pool.map(work, parts))),
        )


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
