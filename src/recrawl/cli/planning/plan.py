"""``recrawl plan``: from a crawl log, the freshness of its copies, and the freshness that other budgets reach."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.shared.files.outputs import check_outputs
from recrawl.cli.shared.options.options import (
    AccessLog,
    Columns,
    Encoding,
    Every,
    Group,
    Jobs,
    Lenient,
    Processes,
    Ray,
    check_level,
    log_options,
    split_commas,
)
from recrawl.errors import ParameterError

EPILOG = (
    "Example:  recrawl plan crawls.csv --target 0.95 --plot plan.png\n\n"
    "Example:  recrawl plan crawls.parquet --budget 5000/day --budgets 1000/day,20k/day --json\n\n"
    "Example:  recrawl plan ~/.urlwatch/cache.db --every 1h --budget 500/day\n\n"
    "Histories of other tools are read too: WARC files, the stores of changedetection.io and urlwatch, sitemaps saved "
    "over time."
)


def plan(
    log: Annotated[
        list[Path],
        typer.Argument(metavar="LOG", help="Crawl log: url, time, and changed or a digest; or its parts, some files."),
    ],
    budget: Annotated[str | None, typer.Option(help="Budget to plan for.  [default: what the log spent]")] = None,
    budgets: Annotated[
        list[str] | None, typer.Option(help="Other budgets to compare.  [default: half and double]")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Freshness to find the budget for, such as 0.95.")] = None,
    group: Annotated[Group, typer.Option(help="Pages that share a prior.")] = Group.host,
    level: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.9,
    plot: Annotated[Path | None, typer.Option(help="Draw freshness against budget (PNG).")] = None,
    columns: Columns = None,
    encoding: Encoding = None,
    jobs: Jobs = None,
    every: Every = None,
    access_log: AccessLog = None,
    lenient: Lenient = False,
    processes: Processes = 1,
    ray: Ray = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Compute how fresh a crawler's copies are, and how fresh the best schedule keeps them at any budget."""
    from recrawl.cli.shared.files.part_calls import check_one_file, check_parts, check_places, expanded
    from recrawl.cli.views.plan_report import Asked, print_plan, share, worked_out

    check_level(level)
    check_places(processes, ray)
    check_outputs(None, plot)
    paths = expanded(log)
    others = split_commas(budgets) if budgets else None
    asked = Asked(budget, others, None if target is None else share(target), group.value, level)
    options = log_options(lenient, columns, encoding, jobs, every)
    if len(paths) > 1:
        check_parts(plot)
        if access_log is not None:
            raise ParameterError("--access-log needs the log in one file")
        from recrawl.cli.views.plan_parts import plan_parts

        found = plan_parts(paths, asked, options, (processes, ray))
    else:
        check_one_file(ray)
        found = worked_out(paths[0], asked, options, access_log)
    if plot is not None:
        from recrawl.cli.views.plots.plan_plot import draw_plan

        draw_plan(found, plot)
    if as_json:
        typer.echo(json.dumps(found, allow_nan=False))
        return
    print_plan(found, [] if plot is None else [plot])
