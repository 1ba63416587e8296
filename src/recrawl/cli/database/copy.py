"""``recrawl copy``: copy a database to another kind of store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from recrawl.cli.shared.options.crawl_options import AsJson
from recrawl.cli.shared.options.extras import need

EPILOG = (
    "Example:  recrawl copy recrawl.db postgresql://recrawl@db.example.org/recrawl\n\n"
    "Example:  recrawl copy postgresql://recrawl@db.example.org/recrawl backup.db --json\n\n"
    "Example:  recrawl copy recrawl-20260101T020000Z.cluster postgresql://recrawl@db.example.org/again"
)


def copy(
    origin: Annotated[str, typer.Argument(metavar="FROM", help="The database to copy: a file or an address.")],
    goal: Annotated[str, typer.Argument(metavar="TO", help="An empty database, or one that does not exist.")],
    as_json: AsJson = False,
) -> None:
    """Copy a database, SQLite, PostgreSQL or a cluster, to an empty one, and compare the two row by row.

    No crawl may run, but on a cluster that is copied.
    """
    need("crawl")
    found = _of_cluster(origin, goal) or _of_one(origin, goal)
    if as_json:
        typer.echo(json.dumps(found))
        return
    named = ", ".join(f"{n} of {name}" for name, n in found["rows"].items() if n and name != "event_total")
    typer.echo(f"copied and compared: {named or 'no rows'}")


def _of_one(origin: str, goal: str) -> dict[str, Any]:
    from recrawl.store import BlockingStore, open_store
    from recrawl.store.tables import copy_store

    with BlockingStore(open_store(origin, create=False)) as source, BlockingStore(open_store(goal)) as target:
        counts = target.run(copy_store(source.store, target.store))
        return {"from": source.store.name, "to": target.store.name, "rows": counts}


def _of_cluster(origin: str, goal: str) -> dict[str, Any] | None:
    """The same of a cluster or of a backup of one; None if the database is neither."""
    from recrawl.store.postgres.address import is_postgres, shown

    if is_postgres(origin):
        need("postgres")
    elif not Path(origin).is_dir():
        return None
    from recrawl.cluster.copies.copying import copy_cluster, sharded_origin

    source = sharded_origin(origin)
    if source is None:
        return None
    need("postgres")
    return {"from": shown(origin), "to": shown(goal), "rows": copy_cluster(source, goal)}
