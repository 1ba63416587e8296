"""``recrawl status``: the contents of a database and how fresh its copies are."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from recrawl.cli.shared.options.crawl_options import AsJson, Config, Database, settings_of, shared_store

EPILOG = "Example:  recrawl status --budget 500/day --json"


def status(
    budget: Annotated[str | None, typer.Option(help="Budget to forecast for.  [default: the crawl's]")] = None,
    check: Annotated[bool, typer.Option("--check", help="Look for damage in the database; takes time.")] = False,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Count pages, copies and crawls, and show how fresh the copies are now and will be at a budget."""
    from recrawl.cli.views.status_report import status_lines
    from recrawl.crawl.views.status_figures import figures

    settings = settings_of(config, database=database, budget=budget)
    with shared_store(settings) as store:
        found = figures(store, settings, time.time())
        if check:
            found["problems"] = store.check()
    if as_json:
        typer.echo(json.dumps(found))
        return
    for line in status_lines(found):
        typer.echo(line)
