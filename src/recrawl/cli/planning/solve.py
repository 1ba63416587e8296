"""``recrawl solve``: the best crawl rates for given pages and a budget, a price or a target."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.shared.files.outputs import check_plot
from recrawl.cli.shared.options.options import Processes, Ray
from recrawl.errors import ParameterError

if TYPE_CHECKING:
    from recrawl import Pages, Plan

EPILOG = (
    "Example:  recrawl solve examples/pages.csv --budget 150/day --plot demo.png --output demo-rates.csv\n\n"
    "A budget is an amount with a unit: 2/s, 5000/day, 100k/month, 0.05/page/day."
)


class Objective(StrEnum):
    """What is optimised."""

    freshness = "freshness"
    harmonic = "harmonic"
    age = "age"


class Spacing(StrEnum):
    """How the crawls of one page are spaced."""

    even = "even"
    random = "random"
    steps = "steps"


def solve(
    pages: Annotated[
        list[Path],
        typer.Argument(
            metavar="PAGES",
            help="Table of pages, CSV or Parquet, with a column change_rate; or its parts, several files.",
        ),
    ],
    budget: Annotated[str | None, typer.Option(help="Crawls that may be spent, e.g. 150/day.")] = None,
    target: Annotated[str | None, typer.Option(help="Freshness to reach, e.g. 0.9 or 90%.")] = None,
    price: Annotated[float | None, typer.Option(help="What one crawl costs, in units of importance × time.")] = None,
    unit: Annotated[
        str | None, typer.Option(help="Time unit of the rates in the file.  [default: its column unit, else day]")
    ] = None,
    objective: Annotated[Objective, typer.Option(help="What to optimise.")] = Objective.freshness,
    spacing: Annotated[Spacing, typer.Option(help="How the crawls of a page are spaced.")] = Spacing.even,
    floor: Annotated[str | None, typer.Option(help="Lowest crawl rate of every page, e.g. 1/month.")] = None,
    ceiling: Annotated[str | None, typer.Option(help="Highest crawl rate of every page, e.g. 2/h.")] = None,
    host_limit: Annotated[
        list[str] | None, typer.Option(help="HOST=RATE, highest crawl rate of a host; may be repeated.")
    ] = None,
    processes: Processes = 1,
    ray: Ray = None,
    output: Annotated[
        Path | None, typer.Option(help="Write the table with the rates (CSV or Parquet); of parts, to this folder.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw rates and freshness over budget (PNG).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Find the crawl rates that keep the pages of a table as fresh as a budget allows."""
    from recrawl.cli.shared.files.part_calls import check_one_file, check_parts, check_places, expanded
    from recrawl.cli.shared.files.tables import check_writable
    from recrawl.cli.shared.options.solve_request import Request

    request = Request(
        budget=budget,
        target=target,
        price=price,
        unit=unit or "day",
        objective=objective.value,
        spacing=spacing.value,
        floor=floor,
        ceiling=ceiling,
        host_limit=host_limit or [],
    )
    check_places(processes, ray)
    paths = expanded(pages)
    if len(paths) > 1:
        check_parts(plot)
        run_parts(paths, request, output, (processes, ray), as_json=as_json, unit=unit)
        return
    check_one_file(ray)
    if output is not None:
        check_writable(output)
    if plot is not None:
        check_plot(plot)
    run(paths[0], request, output, plot, as_json=as_json, unit=unit)


def run(
    path: Path, request: Any, output: Path | None, plot: Path | None, *, as_json: bool, unit: str | None = None
) -> None:
    """Read, solve, write and report; ``unit`` is the option, if it was given."""
    from rich.console import Console

    from recrawl.cli.shared.files.columns import read_pages, unit_of
    from recrawl.cli.shared.files.tables import read_table
    from recrawl.cli.views.solve_report import Figures, print_figures

    errors = Console(stderr=True)
    with errors.status(f"reading {path}") as status:
        table = read_table(path)
        request = request.in_unit_of(unit_of(table), given=unit is not None, path=path)
        pages = read_pages(table, hosts=bool(request.host_limit))
        status.update(f"solving for {len(pages)} pages")
        plan = request.solve(pages)
        figures = Figures.of(pages, plan, request)
        if output is not None:
            status.update(f"writing {output}")
            _write_rates(table, output, pages, plan, request)
        if plot is not None:
            status.update(f"drawing {plot}")
            _draw(pages, plan, request, plot)
    if as_json:
        files = {"output": output and str(output), "plot": plot and str(plot)}
        typer.echo(json.dumps({"file": str(path), **figures.as_dict(), **files}, allow_nan=False))
        return
    print_figures(figures, title=str(path), files=[file for file in (output, plot) if file is not None])


def run_parts(
    paths: list[Path],
    request: Any,
    output: Path | None,
    places: tuple[int, str | None],
    *,
    as_json: bool,
    unit: str | None = None,
) -> None:
    """Solve for the pages of several files; each process holds one of them at a time.

    ``places`` are the number of processes here, and the address of a Ray cluster that does the work instead.
    """
    from functools import partial

    from rich.console import Console

    from recrawl.cli.shared.files.part_calls import calling, check_folder
    from recrawl.cli.shared.pages.page_parts import Part, asked_by, unit_of_file, write_rates
    from recrawl.cli.views.solve_report import Figures, print_figures
    from recrawl.solver.parts import PartsProblem

    if request.host_limit:
        raise ParameterError("--host-limit needs the table in one file")
    check_folder(output)
    request = request.in_unit_of(unit_of_file(paths[0]), given=unit is not None, path=paths[0])
    parts = [Part(path.resolve(), request) for path in paths]
    with (
        Console(stderr=True).status(f"solving for the pages of {len(paths)} files") as status,
        calling(*places) as call,
    ):
        problem = PartsProblem(asked_by(call, parts))
        plan = problem.solve(request.objective, **request.goal(problem.n_pages))
        if output is not None:
            status.update(f"writing to {output}")
            call(partial(write_rates, plan.mix, output.resolve()), parts)
    figures, title = Figures.of_parts(plan, request), f"{paths[0]} and {len(paths) - 1} more"
    if as_json:
        files = {"files": [str(path) for path in paths], "output": output and str(output)}
        typer.echo(json.dumps({**files, **figures.as_dict()}, allow_nan=False))
        return
    print_figures(figures, title=title, files=[] if output is None else [output])


def _write_rates(table: Any, output: Path, pages: Pages, plan: Plan, request: Any) -> None:
    import numpy as np

    from recrawl.cli.shared.files.tables import write_table
    from recrawl.model.freshness import page_freshness

    rate = np.asarray(plan.crawl_rate, dtype=np.float64)
    interval = np.divide(1.0, rate, out=np.full(rate.shape, np.nan), where=rate > 0)
    fresh = page_freshness(pages, rate, spacing=request.spacing)
    write_table(table, output, {"crawl_rate": rate, "interval": interval, "freshness": fresh})


def _draw(pages: Pages, plan: Plan, request: Any, path: Path) -> None:
    from recrawl.cli.views.plots.solve_plot import draw_solution

    draw_solution(pages, plan, request, path)
