"""``recrawl copy``: copy a database to another kind of store."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from recrawl.cli.shared.options.crawl_options import AsJson
from recrawl.cli.shared.options.extras import need

EPILOG = (
    "Example:  recrawl copy recrawl.db postgresql://recrawl@db.example.org/recrawl\n\n"
    "Example:  recrawl copy postgresql://recrawl@db.example.org/recrawl backup.db --json"
)


def copy(
    origin: Annotated[str, typer.Argument(metavar="FROM", help="The database to copy: a file or an address.")],
    goal: Annotated[str, typer.Argument(metavar="TO", help="An empty database, or one that does not exist.")],
    as_json: AsJson = False,
) -> None:
    """Copy a database, SQLite or PostgreSQL, to an empty one, and compare the two row by row. No crawl may run."""
    need("crawl")
    from recrawl.store import BlockingStore, open_store
    from recrawl.store.tables import copy_store

    with BlockingStore(open_store(origin, create=False)) as source, BlockingStore(open_store(goal)) as target:
        counts = target.run(copy_store(source.store, target.store))
        found = {"from": source.store.name, "to": target.store.name, "rows": counts}
    if as_json:
        typer.echo(json.dumps(found))
        return
    named = ", ".join(f"{n} of {name}" for name, n in counts.items() if n and name != "event_total")
    typer.echo(f"copied and compared: {named or 'no rows'}")
