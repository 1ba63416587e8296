"""Runs the live crawler on a recorded trace, for the rows that it adds to a comparison of policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from recrawl.demo.replay.happenings import ReplayOptions
from recrawl.demo.replay.live import replay_trace
from recrawl.model.budget import parse_budget
from recrawl.simulate.compare.comparison import Row, summary
from recrawl.simulate.compare.sources import Source, count_from, live_pages, trace_of

NAME = "live"  # the policy of the rows


@dataclass(frozen=True)
class LiveRuns:
    """How often the crawler runs, on which draws, and whether sibling pages count."""

    seed: int
    repetitions: int
    siblings: bool


def with_live(
    rows: Sequence[dict[str, Any]], source: Source, budgets: Sequence[str], runs: LiveRuns
) -> list[dict[str, Any]]:
    """The rows of a comparison with one of the live crawler behind those of each budget."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    found = []
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        for budget in dict.fromkeys(budgets):
            task = bar.add_task(f"crawling live, {budget}", total=1.0)
            options = ReplayOptions(
                settings={"siblings": runs.siblings},
                progress=lambda share, task=task: bar.update(task, completed=share),  # type: ignore[misc]
            )
            found += [row for row in rows if row["budget"] == budget]
            found += summary([_run(source, budget, options, runs.seed, k) for k in range(runs.repetitions)])
    return found


def _run(source: Source, budget: str, options: ReplayOptions, seed: int, repetition: int) -> Row:
    """One run of the crawler."""
    trace = trace_of(source, seed, repetition)
    pages = live_pages(source, trace)
    per_day = parse_budget(budget, pages, plain="day", per="day")
    counted = replace(options, count_from=count_from(source, trace))
    run = replay_trace(trace, per_day / trace.day, counted).run
    return Row(source, budget, None, NAME, NAME, per_day, pages, run.as_dict())
