"""``recrawl simulate``: compare policies, on simulated worlds or on a recorded trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.shared.files.outputs import check_outputs
from recrawl.cli.shared.options.effect_options import NoSiblings, without_siblings
from recrawl.cli.shared.options.options import given, refuse, split_commas
from recrawl.errors import ParameterError

if TYPE_CHECKING:
    from recrawl.simulate.compare.sources import Source

EPILOG = (
    "Example:  recrawl simulate --world bing --budget 0.02/page/day,0.2/page/day --policy learned,uniform,nutch\n\n"
    "Example:  recrawl simulate --trace docs-trace --days 365 --budget 0.05/page/day --plot staleness.png"
)
_POLICIES = "learned,known,uniform,nutch,stormcrawler,clairvoyant"
_BUDGET = "0.05/page/day"


def simulate(
    world: Annotated[list[str] | None, typer.Option(help="Worlds to draw traces from; may be repeated.")] = None,
    trace: Annotated[Path | None, typer.Option(help="Folder of a recorded trace.")] = None,
    policy: Annotated[list[str] | None, typer.Option(help=f"Policies to compare.  [default: {_POLICIES}]")] = None,
    budget: Annotated[list[str] | None, typer.Option(help=f"Requests allowed.  [default: {_BUDGET}]")] = None,
    own_demand: Annotated[
        bool,
        typer.Option("--own-demand", help="Rivals crawl at their own rate, ours as much."),
    ] = False,
    days: Annotated[float | None, typer.Option(help="Days of the recorded trace.  [default: 365]")] = None,
    start: Annotated[str | None, typer.Option("--from", help="First day of the recorded trace.")] = None,
    poisson: Annotated[bool, typer.Option("--poisson", help="Draw the trace's changes as Poisson processes.")] = False,
    warm: Annotated[float, typer.Option(help="Days simulated before staleness is counted.")] = 0.0,
    pages: Annotated[int | None, typer.Option(help="Pages of a world.  [default: 1000]")] = None,
    horizon: Annotated[float | None, typer.Option(help="Days of a world.  [default: 100]")] = None,
    readers: Annotated[float | None, typer.Option(help="Reader requests per day and importance.  [default: 0]")] = None,
    repetitions: Annotated[int | None, typer.Option(help="Number of traces.  [default: 5; recorded: 1]")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random draws.")] = 0,
    jobs: Annotated[int | None, typer.Option(help="Processes.  [default: one per core]")] = None,
    no_siblings: NoSiblings = False,
    live: Annotated[bool, typer.Option("--live", help="Add the live crawler on the recorded trace.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw staleness against budget (PNG).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list and nothing else.")] = False,
) -> None:
    """Compare how fresh policies keep copies with the same number of requests."""
    check_outputs(None, plot)
    if own_demand and (budget or live):
        raise ParameterError(f"give {'--budget' if budget else '--live'} or --own-demand, not both")
    if trace is None:
        refuse({"--days": days, "--from": start, "--poisson": poisson or None, "--live": live or None}, "--trace")
    else:
        refuse({"--pages": pages, "--horizon": horizon, "--readers": readers}, "--world")
    from recrawl.cli.views import simulate_report as report

    policies = split_commas(policy or [_POLICIES])
    drawn = {"n_pages": pages, "days": horizon, "readers": readers}
    sources = sources_of(world, trace, warm, {"days": days, "start": start, "poisson": poisson}, drawn)
    budgets = None if own_demand else split_commas(budget or [_BUDGET])
    found = report.compared(
        sources,
        without_siblings(policies) if no_siblings else policies,
        budgets,
        repetitions=(1 if trace is not None else 5) if repetitions is None else repetitions,
        seed=seed,
        jobs=jobs,
    )
    if live and budgets:
        from recrawl.cli.views.live_rows import LiveRuns, with_live

        found = with_live(found, sources[0], budgets, LiveRuns(seed, repetitions or 1, not no_siblings))
    if plot is not None:
        from recrawl.cli.views.plots.simulate_plot import draw_comparison

        draw_comparison(found, plot)
    if as_json:
        typer.echo(json.dumps(found, allow_nan=False))
        return
    report.print_comparison(found, [] if plot is None else [plot])


def sources_of(
    worlds: list[str] | None, trace: Path | None, warm: float, recorded: dict[str, Any], drawn: dict[str, Any]
) -> list[Source]:
    """The worlds or the recorded trace to simulate on."""
    from recrawl.simulate.compare.sources import Drawn, Recorded

    if (trace is None) == (not worlds):
        raise ParameterError("give --world or --trace, not both" if worlds else "give --world NAME or --trace DIR")
    if trace is not None:
        return [Recorded(trace, warm=warm, **given(recorded))]
    return [Drawn(name, warm=warm, **given(drawn)) for name in split_commas(worlds or [])]
