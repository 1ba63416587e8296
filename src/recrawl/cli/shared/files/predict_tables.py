"""Tables of crawls and pages as inputs of a predictor, training with a progress bar, and the table of scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Shown

from recrawl.cli.shared.files.tables import Table
from recrawl.errors import ParameterError
from recrawl.estimate.predict import Columns, Predictor, TreeSettings, train_predictor
from recrawl.estimate.predict.predictor import Family

# columns that are read when none are named
NUMBERS = ("size", "depth", "link_count", "age", "last_modified_age")
CATEGORIES = ("host", "content_type", "language")
_TRUE, _FALSE = ("1", "true", "yes", "1.0"), ("0", "false", "no", "0.0")


def columns_of(table: Table, numbers: list[str], categories: list[str], taken: set[str]) -> Columns:
    """The named columns, or else the usual ones that the table has. URLs are always read."""
    for name in (*numbers, *categories):
        if name not in table.names:
            raise ParameterError(f"{table.path}: has no column {name} (it has {', '.join(table.names)})")
        if name in taken:
            raise ParameterError(f"{name} is an outcome or a time: it cannot be an input")
    if not numbers and not categories:
        numbers = [name for name in NUMBERS if name in table.names]
        categories = [name for name in CATEGORIES if name in table.names]
    return Columns(tuple(numbers), tuple(categories), url="url" in table.names)


def inputs_of(table: Table, columns: Columns) -> dict[str, NDArray[Any]]:
    """The predictor's input columns that the table has. Empty cells of numbers are unknown (nan)."""
    found: dict[str, NDArray[Any]] = {}
    for name in columns.inputs:
        if name in table.names:
            found[name] = table.numbers(name, np.nan) if name in columns.numbers else _text(table, name)
    return found


def trained(
    table: Table, columns: Columns, names: tuple[str, str, str], *, family: str, threads: int, seed: int
) -> Predictor:
    """Train a predictor on the crawls of a table, with a progress bar on standard error."""
    interval, changed, time = names
    for name in (interval, changed):
        if name not in table.names:
            raise ParameterError(f"{table.path}: has no column {name} (it has {', '.join(table.names)})")
    at = table.numbers(time) if time in table.names else None
    bars = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    chosen: Family = "trees" if family == "trees" else "network"
    with Progress(*bars, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("training", total=None)
        return train_predictor(
            inputs_of(table, columns),
            table.numbers(interval),
            _flags(table, changed),
            columns,
            at=at,
            family=chosen,
            settings=TreeSettings(threads=threads) if chosen == "trees" else None,
            seed=seed,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )


def print_scores(figures: dict[str, Any]) -> None:
    """Print the scores of a predictor: training, validation, test, new pages."""
    console = Console()
    typer.echo(f"{figures['rows']:,} crawls of {figures['pages']:,} pages; inputs: {', '.join(figures['columns'])}")
    shown = Shown("part", "rows", "changed", "predicted", "loss", "of one rate", "AUC", "slope")
    for part, found in figures["scores"].items():
        if found["rows"]:
            names = ("changed", "predicted", "loss", "loss_of_one_rate", "auc", "calibration_slope")
            cells = [f"{found[name]:.3f}" if name in found else "" for name in names]
            shown.add_row("new pages" if part == "test_new_pages" else part, f"{found['rows']:,}", *cells)
    console.print(shown)
    typer.echo(
        f"a prediction counts as {figures['strength']['evidence']:.3g} changes seen; written to {figures['model']}"
    )


def _text(table: Table, name: str) -> NDArray[Any]:
    return np.array(table.text(name), dtype=object)


def _flags(table: Table, name: str) -> NDArray[np.bool_]:
    cells = [cell.strip().lower() for cell in table.text(name)]
    for row, cell in enumerate(cells):
        if cell not in _TRUE and cell not in _FALSE:
            raise table.error(name, row, f"{cell!r} is neither true nor false")
    return np.array([cell in _TRUE for cell in cells], np.bool_)
