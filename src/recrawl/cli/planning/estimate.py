"""``recrawl estimate``: change rates with intervals, signal quality and tests of constant rates, from a crawl log."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.shared.files.outputs import check_outputs
from recrawl.cli.shared.options.options import (
    Columns,
    Encoding,
    Group,
    Lenient,
    Processes,
    Ray,
    check_level,
    log_options,
)

if TYPE_CHECKING:
    from rich.progress import Progress

    from recrawl.cli.shared.logs.roles import LogOptions
    from recrawl.cli.views.estimate_report import Findings

EPILOG = (
    "Example:  recrawl estimate crawls.csv --output rates.csv --plot rates.png\n\n"
    "A crawl log is CSV, TSV, JSON lines or Parquet with the columns url, time and changed (since the page's previous "
    "row), or digest, etag, last_modified or length instead, and optionally signals or signals_NAME, importance, "
    "status. CDX files, access logs, Scrapy items and histories of other tools are read too."
)
UNITS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0}


class Method(StrEnum):
    """Estimators of change rates."""

    posterior = "posterior"
    mle = "mle"
    smoothed = "smoothed"
    prior_hours = "prior-hours"
    regular = "regular"
    naive = "naive"
    complete = "complete"


class Unit(StrEnum):
    """Time unit of the rates printed and written."""

    second = "second"
    minute = "minute"
    hour = "hour"
    day = "day"
    week = "week"


def estimate(
    log: Annotated[
        list[Path],
        typer.Argument(metavar="LOG", help="Crawl log: url, time, and changed or a digest; or its parts, some files."),
    ],
    method: Annotated[Method, typer.Option(help="Estimator of the rates.")] = Method.posterior,
    group: Annotated[Group, typer.Option(help="Pages that share a prior (method posterior).")] = Group.host,
    level: Annotated[float, typer.Option(help="Probability that an interval holds the true rate.")] = 0.9,
    unit: Annotated[Unit, typer.Option(help="Time unit of the rates.")] = Unit.day,
    limit: Annotated[int, typer.Option(help="Pages to list, most crawled first.", min=0)] = 10,
    output: Annotated[
        Path | None, typer.Option(help="Write every page's figures (CSV or Parquet); of parts, to this folder.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw rates, intervals and seasons (PNG).")] = None,
    columns: Columns = None,
    encoding: Encoding = None,
    lenient: Lenient = False,
    processes: Processes = 1,
    ray: Ray = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Estimate how often the pages of a crawl log change, with intervals, and how good their signals are."""
    check_level(level)
    options = log_options(lenient, columns, encoding)
    from recrawl.cli.shared.files.part_calls import check_one_file, check_parts, check_places, expanded

    check_places(processes, ray)
    paths = expanded(log)
    if len(paths) > 1:
        check_parts(plot)
        from recrawl.cli.views.estimate_parts import Ask, estimate_parts

        ask = Ask(method.value, group.value, level, UNITS[unit.value], unit.value, limit, output)
        estimate_parts(paths, ask, options, (processes, ray), as_json=as_json)
        return
    check_one_file(ray)
    check_outputs(output, plot)
    from recrawl.cli.views.estimate_report import print_report, write_rates

    with _progress() as bar:
        found = _analysed(bar, paths[0], method.value, group.value, level, options)
        scale = UNITS[unit.value]
        if output is not None:
            write_rates(found, output, scale, unit.value)
        if plot is not None:
            from recrawl.cli.views.plots.estimate_plot import draw_estimates

            draw_estimates(found, plot, scale, unit.value)
    if as_json:
        files = {"output": output and str(output), "plot": plot and str(plot)}
        typer.echo(
            json.dumps({"file": str(paths[0]), **found.as_dict(scale, unit.value, limit), **files}, allow_nan=False)
        )
        return
    print_report(found, scale, unit.value, limit, [file for file in (output, plot) if file is not None])


def _analysed(bar: Progress, path: Path, method: str, group: str, level: float, options: LogOptions) -> Findings:
    from recrawl.cli.views.estimate_report import analyse

    task = bar.add_task(f"reading {path}", total=1.0)

    def report(share: float, what: str) -> None:
        bar.update(task, completed=share, description=what)

    return analyse(path, method, group, level, options, report)


def _progress() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
