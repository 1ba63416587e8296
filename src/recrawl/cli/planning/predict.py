"""``recrawl predict``: change rates of pages that were never crawled, from their URL and other columns."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from recrawl.cli.shared.options.command_classes import Command
from recrawl.cli.shared.options.options import split_commas
from recrawl.errors import ParameterError

TRAIN_EPILOG = "Example:  recrawl predict train crawls.csv --out model.json --categories content_type,language"
SCORE_EPILOG = "Example:  recrawl predict score model.json new-pages.csv --out rates.csv"

app = typer.Typer(no_args_is_help=True, help="Predict change rates of pages from their URL and other columns.")


@app.command(name="train", epilog=TRAIN_EPILOG, cls=Command)
def train(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="CSV or Parquet, one row per crawl.")],
    out: Annotated[Path, typer.Option(help="Model file to write (JSON).")],
    numbers: Annotated[list[str] | None, typer.Option(help="Columns that are numbers.")] = None,
    categories: Annotated[list[str] | None, typer.Option(help="Columns that are categories.")] = None,
    interval: Annotated[str, typer.Option(help="Column: days since the previous crawl.")] = "interval",
    changed: Annotated[str, typer.Option(help="Column: whether the page changed since then.")] = "changed",
    time: Annotated[str, typer.Option(help="Column: time of the crawl; splits training from test.")] = "time",
    family: Annotated[str, typer.Option(help="trees, or network (needs recrawl[deep]).")] = "trees",
    threads: Annotated[int, typer.Option(help="Threads for trees; 0: one per core.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of all random draws.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Train a model on crawls, and print its scores on later crawls and on new pages."""
    from recrawl.cli.shared.files import predict_tables as tables
    from recrawl.cli.shared.files.outputs import check_folder
    from recrawl.cli.shared.files.tables import read_table

    if family not in ("trees", "network"):
        raise ParameterError(f"--family {family!r} is not one of trees, network")
    check_folder(out)
    crawls = read_table(table)
    names = interval, changed, time
    columns = tables.columns_of(crawls, split_commas(numbers or []), split_commas(categories or []), set(names))
    model = tables.trained(crawls, columns, names, family=family, threads=threads, seed=seed)
    model.save(out)
    figures: dict[str, Any] = {"model": str(out), "family": model.family, "columns": list(model.inputs)}
    figures |= {"strength": asdict(model.strength), **model.about}
    if as_json:
        typer.echo(json.dumps(figures, allow_nan=False))
        return
    tables.print_scores(figures)


@app.command(name="score", epilog=SCORE_EPILOG, cls=Command)
def score(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file of recrawl predict train.")],
    pages: Annotated[Path, typer.Argument(metavar="PAGES", help="CSV or Parquet, one row per page.")],
    out: Annotated[Path, typer.Option(help="Table to write: PAGES with change_rate and evidence.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Write the predicted change rate (per day) of every page, and the evidence behind it."""
    from recrawl.cli.shared.files import predict_tables as tables
    from recrawl.cli.shared.files.tables import check_writable, read_table, write_table
    from recrawl.estimate import Predictor

    check_writable(out)
    loaded = Predictor.load(model)
    table = read_table(pages)
    prior = loaded.prior(tables.inputs_of(table, loaded.features.columns))
    write_table(table, out, {"change_rate": prior.mean, "unit": ["day"] * len(table), "evidence": prior.shape})
    figures = {"pages": len(table), "out": str(out), "mean_change_rate": float(prior.mean.mean())}
    if as_json:
        typer.echo(json.dumps(figures, allow_nan=False))
        return
    typer.echo(f"{len(table):,} pages, {figures['mean_change_rate']:.4g} changes per day on average; written to {out}")
