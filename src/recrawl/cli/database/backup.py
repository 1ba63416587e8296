"""``recrawl backup``: copy a database, also while a crawl runs."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.shared.options.crawl_options import AsJson, Config, Database, settings_of
from recrawl.cli.shared.options.places import cluster_of
from recrawl.errors import ParameterError

if TYPE_CHECKING:
    from recrawl.cluster.tables import Cluster

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
    cluster = cluster_of(settings)
    from recrawl.store.opening import is_postgres
    from recrawl.store.sqlite.backup import back_up, backup_name, old_backups

    if cluster is None and is_postgres(settings.database):
        raise ParameterError("the database is PostgreSQL: back it up with pg_dump, which works while a crawl runs")
    if keep is not None and not to.is_dir():
        raise ParameterError(f"--keep goes with a folder; {to} is none")
    if cluster is not None:
        _back_up_cluster(cluster, to, keep, as_json)
        return
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


def _back_up_cluster(cluster: Cluster, to: Path, keep: int | None, as_json: bool) -> None:
    """A folder with a file for each shard."""
    from recrawl.cluster.copies.copying import back_up
    from recrawl.cluster.copies.folder import folder_name, is_folder, old_folders

    began, schema = time.monotonic(), cluster.address.schema
    folder = to if to.is_dir() and not is_folder(to) else None
    goal = to if folder is None else folder / folder_name(schema, time.time())
    rows = back_up(cluster, goal)
    removed = [] if folder is None or keep is None else old_folders(schema, folder, keep)
    for path in removed:
        shutil.rmtree(path)
    size = sum(path.stat().st_size for path in goal.iterdir())
    found = {"backup": str(goal), "bytes": size, "pages": rows["page"], "observations": rows["observation"]}
    found |= {"removed": len(removed), "seconds": round(time.monotonic() - began, 3), "shards": cluster.shards}
    if as_json:
        typer.echo(json.dumps(found))
        return
    text = f"{size} bytes, {rows['page']} pages, {rows['observation']} crawls in {cluster.shards} shards"
    typer.echo(f"{goal}: {text}")
