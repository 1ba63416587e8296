"""Runs a comparison of policies with a progress bar, and prints its table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from recrawl.simulate.compare.comparison import compare
from recrawl.simulate.compare.sources import Source


def compared(
    sources: Sequence[Source],
    policies: Sequence[str],
    budgets: Sequence[str] | None,
    *,
    repetitions: int,
    seed: int,
    jobs: int | None,
) -> list[dict[str, Any]]:
    """Run the comparison with a progress bar on standard error; one row per policy and budget."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("simulating", total=None)
        return compare(
            sources,
            policies,
            budgets,
            repetitions=repetitions,
            seed=seed,
            jobs=(os.cpu_count() or 1) if jobs is None else jobs,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )


def source_name(row: dict[str, Any]) -> str:
    """The world or trace of a row."""
    name = str(row.get("world") or row.get("trace"))
    return f"{name}, {row['warm']:g} days warm" if row["warm"] else name


def policy_name(row: dict[str, Any]) -> str:
    """The policy of a row, with the order by which its crawls were capped."""
    return f"{row['policy']} (by {row['cap']})" if row["cap"] else str(row["policy"])


def budget_name(row: dict[str, Any]) -> str:
    """The budget of a row, or the rival whose number of requests it was given."""
    return str(row["budget"]) if row["budget"] is not None else f"as {row['requests_of']}"


def print_comparison(rows: Sequence[dict[str, Any]], files: Sequence[Path]) -> None:
    """Print one table for each world or trace."""
    console = Console()
    for source in dict.fromkeys(source_name(row) for row in rows):
        these = [row for row in rows if source_name(row) == source]
        asked = any(row["request_freshness"] is not None for row in these)
        console.print(_table(source, these, asked))
    for file in files:
        console.print(f"written: {file}", markup=False, highlight=False, soft_wrap=True)


def _table(title: str, rows: Sequence[dict[str, Any]], asked: bool) -> Table:
    first = rows[0]
    runs = f", {first['repetitions']} repetitions" if first["repetitions"] > 1 else ""
    table = Table(title=f"{title}: {first['pages']:,.0f} pages, {first['days']:g} days{runs}", title_justify="left")
    for name in ("budget", "policy"):
        table.add_column(name, no_wrap=True)
    names = [
        "staleness",
        "staleness_unweighted",
        "requests",
        "changes_found",
        *(["request_freshness"] if asked else []),
    ]
    for name in names:
        table.add_column(name.replace("_", " ").replace("staleness unweighted", "unweighted"), justify="right")
    for k, row in enumerate(rows):
        cells = [budget_name(row), policy_name(row), *(_cell(row, name) for name in names)]
        ends = k + 1 < len(rows) and budget_name(rows[k + 1]) != cells[0]
        table.add_row(*cells, end_section=ends, style="bold" if row["policy"] == "learned" else None)
    return table


def _cell(row: dict[str, Any], name: str) -> str:
    value, error = row[name], row["stderr"][name]
    if value is None:
        return ""
    if name in ("requests", "changes_found"):
        return f"{value:,.0f}"
    return f"{value:.4f}" if error is None else f"{value:.4f} ± {error:.4f}"
