"""Pages in several files: each is read when it is asked, in this process or others, piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.cli.shared.files.columns import read_pages, unit_of
from recrawl.cli.shared.files.part_calls import Call
from recrawl.cli.shared.files.tables import Table, read_pieces, read_table, write_table
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

    def pieces(self) -> Iterator[Pages]:
        """The pages of the file, some at a time."""
        for table in read_pieces(self.path, without=_NOT_NEEDED):
            yield self.pages(table)

    def pages(self, table: Table) -> Pages:
        """The pages of a table of the file."""
        unit = unit_of(table)
        if unit is not None and unit != self.request.unit:
            raise ParameterError(
                f"{self.path}: column unit says {unit}, but the other rates are per {self.request.unit}"
            )
        return read_pages(table, whole=False)

    def curves(self, pages: Pages) -> Curves:
        """The curves of the pages."""
        floor, ceiling = self.request.bounds()
        return build_curves(pages, self.request.objective, self.request.spacing, floor, ceiling)


def ask(question: Callable[..., Any], arguments: tuple[Any, ...], part: Part) -> list[Any]:
    """The answers of the pieces of one part to a question about their curves."""
    return [question(part.curves(pages), *arguments) for pages in part.pieces()]


def write_rates(mix: Mix, folder: Path, part: Part) -> int:
    """Write the table of a part with its rates to a folder; the number of pages."""
    table = read_table(part.path)
    pages = part.pages(table)
    rate = mix.rates(part.curves(pages))
    interval = np.divide(1.0, rate, out=np.full(rate.shape, np.nan), where=rate > 0)
    fresh = page_freshness(pages, rate, spacing=part.request.spacing)  # type: ignore[arg-type]
    columns = {"crawl_rate": rate, "interval": interval, "freshness": fresh}
    write_table(table, folder / part.path.name, columns)
    return len(rate)


def unit_of_file(path: Path) -> str | None:
    """The unit of time that a file names."""
    return next(map(unit_of, read_pieces(path, without=_NOT_NEEDED)))


def asked_by(call: Call, parts: Sequence[Part]) -> Each:
    """How all parts are asked (`solver.parts.Each`): their pieces are parts to the solver."""

    def each(question: Callable[..., Any], *more: Any) -> list[Any]:
        return [answer for answers in call(partial(ask, question, more), parts) for answer in answers]

    return each
