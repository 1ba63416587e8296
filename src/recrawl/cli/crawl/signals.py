"""``recrawl signals``: how good each source of change signals is on each host, and whether it counts."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from recrawl.cli.shared.files.outputs import check_outputs
from recrawl.cli.shared.options.crawl_options import AsJson, Config, Database, settings_of
from recrawl.cli.shared.options.places import places_of

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
    from recrawl.crawl.views.status_shards import sources_of_shards

    check_outputs(None, plot)
    settings = settings_of(config, database=database)
    now, parts = time.time(), list[dict[str, Any]]()
    with places_of(settings) as places:
        for place in places.places:
            with place.shared() as store:
                parts.append(figures(store, places.settings_of(place), now))
        found = parts[0] if places.cluster is None else sources_of_shards(parts, places.settings)
    if plot is not None:
        from recrawl.cli.views.plots.signals_plot import draw_signals

        draw_signals(found["hosts"][:top], plot, found["now"])
    if as_json:
        typer.echo(json.dumps(found, allow_nan=False))
        return
    for line in signal_lines(found, top):
        typer.echo(line)
