"""``recrawl status``: the contents of a database and how fresh its copies are."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer

from recrawl.cli.shared.options.crawl_options import AsJson, Config, Database, settings_of
from recrawl.cli.shared.options.places import places_of

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
    from recrawl.crawl.audit.open_audit import ENDED
    from recrawl.crawl.views.status_figures import figures
    from recrawl.crawl.views.status_shards import figures_of_shards

    settings = settings_of(config, database=database, budget=budget)
    now, parts, ended = time.time(), list[dict[str, Any]](), list[list[dict[str, Any]]]()
    with places_of(settings, budget) as places:
        for place in places.places:
            with place.shared() as store:
                parts.append(figures(store, places.settings_of(place), now))
                ended.append(store.notes(ENDED).get(ENDED, []))
                if check:
                    parts[-1]["problems"] = store.check()
        found = parts[0] if places.cluster is None else figures_of_shards(parts, places.settings, ended)
    if as_json:
        found["events"]["followers"] = found["events"]["subscribers"]  # the name in version 0.1
        typer.echo(json.dumps(found))
        return
    for line in status_lines(found):
        typer.echo(line)
