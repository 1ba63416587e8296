"""``recrawl signals``: how good each source of change signals is on each host, and whether it counts."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.shared.files.outputs import check_outputs
from recrawl.cli.shared.options.crawl_options import AsJson, Config, Database, settings_of, shared_store

EPILOG = "Example:  recrawl signals --top 50 --plot signals.png"


def signals(
    top: Annotated[int, typer.Option(help="Sources on hosts to show, those of most pages first.", min=1)] = 20,
    plot: Annotated[Path | None, typer.Option(help="Draw precision, recall and trust over time (PNG).")] = None,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show how often signals were right on each host, which changes they tell, and whether they count."""
    from recrawl.crawl.views.signals_report import figures, signal_lines

    check_outputs(None, plot)
    settings = settings_of(config, database=database)
    with shared_store(settings) as store:
        found = figures(store, settings, time.time())
    if plot is not None:
        from recrawl.cli.views.plots.signals_plot import draw_signals

        draw_signals(found["hosts"][:top], plot, found["now"])
    if as_json:
        typer.echo(json.dumps(found, allow_nan=False))
        return
    for line in signal_lines(found, top):
        typer.echo(line)
