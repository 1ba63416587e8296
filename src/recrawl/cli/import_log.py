"""``recrawl import``: start from the crawl log of another crawler, or from what recrawl export wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.shared.options.crawl_options import AsJson, Config, Database, exclusive_store, settings_of
from recrawl.cli.shared.options.options import AccessLog, Columns, Encoding, Every, Jobs, Lenient, log_options
from recrawl.errors import ParameterError, StoreError

EPILOG = (
    "Example:  recrawl import crawls.csv\n\n"
    "Example:  recrawl import crawls.parquet --pages pages.parquet --database copy.db\n\n"
    "Histories of other tools are read too: WARC files, the stores of changedetection.io and urlwatch, sitemaps saved "
    "over time."
)


def import_log(
    log: Annotated[
        Path | None, typer.Argument(metavar="[LOG]", help="Crawl log: url, time, and changed or a digest.")
    ] = None,
    pages: Annotated[Path | None, typer.Option(help="Table of pages, as recrawl export --pages writes it.")] = None,
    bodies: Annotated[
        Path | None, typer.Option(help="Bodies of the log's crawls, as --bodies of export (WARC).")
    ] = None,
    columns: Columns = None,
    encoding: Encoding = None,
    jobs: Jobs = None,
    every: Every = None,
    access_log: AccessLog = None,
    lenient: Lenient = False,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Import the pages of a crawl log or of a table with their change rates, crawls and dates of their copies."""
    from recrawl.cli.shared.files.importing import Imported, import_pages
    from recrawl.cli.shared.files.warc_files import WarcBodies

    settings = settings_of(config, database=database)
    options = log_options(lenient, columns, encoding, jobs, every, nameless=False)
    if log is None and pages is None:
        raise ParameterError("nothing to import: give a crawl log, --pages, or both")
    if log is None and bodies is not None:
        raise ParameterError("--bodies needs the log of the crawls that fetched them")
    read = Imported.read(log, pages, options, access_log)
    archive = None if bodies is None else WarcBodies(bodies)
    store = exclusive_store(settings)
    if store is None:
        raise StoreError(f"{settings.database_name}: a crawl is running; stop it first")
    with store:
        found = {
            "file": str(log or pages),
            "database": settings.database_name,
            **import_pages(read, store, settings, archive),
        }
    if as_json:
        typer.echo(json.dumps(found))
        return
    typer.echo(
        f"{found['pages']} pages from {found['rows']} rows: {found['added']} added, {found['known']} known already"
    )
    for name, count in found["repairs"].items():
        typer.echo(f"{count} {name}")
    for line in found["remarks"]:
        typer.echo(line)
    if bodies is not None:
        typer.echo(f"{found['bodies']} bodies from {bodies}")
    if found["signals"]:
        typer.echo(f"{found['signals']:.0f} signals learned from")
    if found["signals_left_out"]:
        typer.echo("the log's signals are not imported: the database has pages already")
