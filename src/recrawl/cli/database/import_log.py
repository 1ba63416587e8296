"""``recrawl import``: start from the crawl log of another crawler, or from what recrawl export wrote."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.shared.options.crawl_options import AsJson, Config, Database, settings_of
from recrawl.cli.shared.options.options import AccessLog, Columns, Encoding, Every, Jobs, Lenient, log_options
from recrawl.cli.shared.options.places import Place, places_of
from recrawl.errors import ParameterError, StoreError

if TYPE_CHECKING:
    from recrawl.crawl.config.settings import Settings
    from recrawl.store import BlockingStore, OwnedStore

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
    from recrawl.cli.shared.pages.importing import Imported, import_pages
    from recrawl.cli.shared.pages.warc_files import WarcBodies

    settings = settings_of(config, database=database)
    options = log_options(lenient, columns, encoding, jobs, every, nameless=False)
    if log is None and pages is None:
        raise ParameterError("nothing to import: give a crawl log, --pages, or both")
    if log is None and bodies is not None:
        raise ParameterError("--bodies needs the log of the crawls that fetched them")
    read = Imported.read(log, pages, options, access_log)
    archive = None if bodies is None else WarcBodies(bodies)
    with places_of(settings) as places, ExitStack() as stack:
        parts = [(place, mine, stack.enter_context(_own(place, settings))) for place, mine in places.of(read.urls)]
        done = [
            import_pages(read if len(parts) == 1 else read.part(mine), store, places.settings_of(place), archive)
            for place, mine, store in parts
        ]
    found = {"file": str(log or pages), "database": settings.database_name, **_together(done)}
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


def _own(place: Place, settings: Settings) -> BlockingStore[OwnedStore]:
    store = place.exclusive()
    if store is None:
        where = "" if place.shard is None else f"shard {place.shard}: "
        raise StoreError(f"{settings.database_name}: {where}a crawl is running; stop it first")
    return store


def _together(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The figures of all places: counts are added; remarks and repairs are of the file, and bodies of the archive."""
    found = dict(parts[-1])
    for name in ("pages", "rows", "added", "known", "signals"):
        found[name] = sum(part[name] for part in parts)
    return {**found, "signals_left_out": any(part["signals_left_out"] for part in parts)}
