"""``recrawl reproduce``: the papers' figures and tables, each claim beside our result."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.shared.files.outputs import need_matplotlib
from recrawl.errors import ParameterError
from recrawl.model.spans import format_span

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from recrawl.reproduce import Figure, Result

EPILOG = (
    "Example:  recrawl reproduce busafekete2025/fig4 kolobov2019 --quick --jobs 2 --out results\n\n"
    "An id is PAPER/FIGURE; the name of a paper stands for all its figures, no id for all papers."
)


def reproduce(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Figures or papers; all if none.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few repetitions: minutes (the default).")] = False,
    full: Annotated[bool, typer.Option("--full", help="The papers' repetitions: hours.")] = False,
    reps: Annotated[int | None, typer.Option(help="Another number of repetitions.", min=2)] = None,
    jobs: Annotated[int, typer.Option(help="Processes.", min=1)] = 1,
    seed: Annotated[int, typer.Option(help="Seed of all draws.", min=0)] = 0,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where results and pictures go.")] = Path("reproduced"),
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 where a result is below its floor.")] = False,
    floors: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the floors are.")] = Path("experiments"),
    list_ids: Annotated[bool, typer.Option("--list", help="List the figures and exit.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Run the papers' experiments again: each claim, the paper's figure, ours, and whether it holds."""
    from recrawl.reproduce import choose

    if quick and full:
        raise ParameterError("--quick and --full exclude each other")
    chosen = choose(ids or [])
    if list_ids:
        _list(chosen, as_json)
        return
    need_matplotlib("the pictures need")
    if check:
        _check_floors(chosen, floors)
    results = _run(chosen, _Request("full" if full else "quick", reps, jobs, seed, out, resume), quiet=as_json)
    if as_json:
        typer.echo(json.dumps({"results": [result.as_dict() for result in results]}, allow_nan=False))
    if check and not _above_floors(results, floors):
        raise typer.Exit(1)


def _list(chosen: list[Figure], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"figures": [{"id": figure.id, "title": figure.title} for figure in chosen]}))
        return
    for figure in chosen:
        typer.echo(f"{figure.id:28}{figure.title}")


@dataclass(frozen=True)
class _Request:
    """What is run, and where results go."""

    setting: str
    reps: int | None
    jobs: int
    seed: int
    out: Path
    resume: bool


def _run(chosen: list[Figure], request: _Request, *, quiet: bool) -> list[Result]:
    """Run one figure after the other. Each result is printed and written as soon as it is known."""
    from rich.console import Console

    from recrawl.reproduce import Workers, reproduce

    console, errors = Console(highlight=False), Console(stderr=True)
    params = [figure.params(request.setting, request.reps) for figure in chosen]
    expected = [sum(task.seconds for task in figure.tasks(p)) for figure, p in zip(chosen, params, strict=True)]
    seconds = sum(expected) / request.jobs
    errors.print(f"{len(chosen)} figures, about {format_span(seconds)} once compiled; results go to {request.out}")
    results = []
    with Workers(request.jobs) as workers, _progress(errors) as bar:
        for figure, total in zip(chosen, expected, strict=True):
            row = bar.add_task(figure.id, total=total)
            partial = request.out / f"{figure.id}.partial.jsonl"
            result = reproduce(
                figure, request.setting, seed=request.seed, reps=request.reps, workers=workers, partial=partial,
                resume=request.resume, progress=lambda done, row=row: bar.advance(row, done),  # type: ignore[misc]
            )  # fmt: skip
            result.save(request.out)
            result.draw(request.out / f"{figure.id}.png")
            partial.unlink()
            bar.remove_task(row)
            results.append(result)
            if not quiet:
                _print(result, console)
    return results


def _print(result: Result, console: Console) -> None:
    from rich.table import Table

    words = {True: "yes", False: "no", None: "reported"}
    title = f"{result.id}: {result.title} ({result.setting}, {result.seconds:.0f} s)"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in ("claim", "paper", "ours", "holds"):
        table.add_column(name, justify="right" if name in ("paper", "ours") else "left", overflow="fold")
    for claim in result.claims:
        ours = "" if claim.ours is None else f"{claim.ours:.4g}"
        ours += f" ± {claim.error:.1g}" if claim.error else ""
        paper = f"{claim.paper:g}" if isinstance(claim.paper, (int, float)) else claim.paper or ""
        table.add_row(claim.text, paper, ours, words[claim.holds])
        if claim.note:
            table.add_row(f"  ({claim.note})")
    console.print(table, "")


def _check_floors(chosen: list[Figure], floors: Path) -> None:
    from recrawl.reproduce import floors_of

    for figure in chosen:
        floors_of(figure.id, floors)


def _above_floors(results: list[Result], floors: Path) -> bool:
    from recrawl.reproduce import misses

    lines = [line for result in results for line in misses(result, floors)]
    for line in lines:
        typer.echo(f"below the floor: {line}", err=True)
    return not lines


def _progress(console: Console) -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
