"""``recrawl why``: everything behind the decision about one page."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from recrawl.cli.crawl_options import AsJson, Config, Database, engine_of, settings_of, visit

EPILOG = "Example:  recrawl why https://docs.example.org/install"


def why(
    url: Annotated[str, typer.Argument(metavar="URL", help="A page of the database.")],
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Say how often a page changes, what a crawl of it is worth, and when it is visited next, and why."""
    from recrawl.crawl.urls import canonical

    settings = settings_of(config, database=database)
    wanted = canonical(url)
    with visit(settings) as store:
        now = time.time()
        engine = engine_of(store, settings, now)
        page = int(engine.id([wanted])[0])
        found = engine.explain(page, now)
        copy = store.copies([wanted]).get(wanted)
        last = list(store.observations(wanted))[-1:]
    if as_json:
        extra = {"crawled": copy is not None, "last_failure": last[0].failure if last else None}
        typer.echo(json.dumps({**found.as_dict(), **extra, "now": now}))
        return
    lines = str(found).splitlines()
    if copy is None:
        lines[2] = "never crawled" + (f"; the last try: {last[0].failure}" if last and last[0].failure else "")
    elif last and last[0].failure:
        lines[2] += f"; the last try: {last[0].failure}"
    if copy is not None and copy.final_url:
        lines.append(f"leads to {copy.final_url}")
    for line in lines:
        typer.echo(line)
