"""``recrawl backup``: copy a database, also while a crawl runs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.shared.options.crawl_options import AsJson, Config, Database, settings_of
from recrawl.errors import ParameterError

EPILOG = "Example:  recrawl backup /var/backups/recrawl.db\n\nExample:  recrawl backup /var/backups/ --keep 7"


def backup(
    to: Annotated[Path, typer.Argument(help="The file to write, or a folder: its name is then made of the time.")],
    keep: Annotated[
        int | None, typer.Option(help="In a folder: keep so many of its newest backups.", min=1, max=100_000)
    ] = None,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Copy the database at one moment, check the copy, and give it its name; a running crawl goes on meanwhile."""
    settings = settings_of(config, database=database)
    from recrawl.store.opening import is_postgres
    from recrawl.store.sqlite.backup import back_up, backup_name, old_backups

    if is_postgres(settings.database):
        raise ParameterError("the database is PostgreSQL: back it up with pg_dump, which works while a crawl runs")
    if keep is not None and not to.is_dir():
        raise ParameterError(f"--keep goes with a folder; {to} is none")
    began, folder = time.monotonic(), to if to.is_dir() else None
    done = back_up(settings.database, to if folder is None else folder / backup_name(settings.database, time.time()))
    removed = [] if folder is None or keep is None else old_backups(settings.database, folder, keep)
    for path in removed:
        path.unlink()
    found = {"backup": str(done.path), "bytes": done.size, "pages": done.pages, "observations": done.observations}
    found |= {"removed": len(removed), "seconds": round(time.monotonic() - began, 3)}
    if as_json:
        typer.echo(json.dumps(found))
        return
    typer.echo(f"{done.path}: {done.size} bytes, {done.pages} pages, {done.observations} crawls")
