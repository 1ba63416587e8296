"""``recrawl export``: write pages, crawls and bodies of a database to files."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.shared.options.crawl_options import AsJson, Config, Database, engine_of, settings_of, shared_store
from recrawl.errors import ParameterError

EPILOG = (
    "Example:  recrawl export --observations crawls.parquet --pages pages.csv\n\n"
    "Example:  recrawl export --bodies copies.warc.gz"
)


def export(
    pages: Annotated[Path | None, typer.Option(help="Write every page and its rate per day (CSV or Parquet).")] = None,
    observations: Annotated[Path | None, typer.Option(help="Write every crawl (CSV or Parquet).")] = None,
    bodies: Annotated[Path | None, typer.Option(help="Write the stored bodies (WARC).")] = None,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Write pages and crawls as tables, bodies as a WARC archive. recrawl import reads both tables."""
    from recrawl.cli.shared.files import export_files as files
    from recrawl.cli.shared.files.warc_files import check_warc, write_warc

    settings = settings_of(config, database=database)
    if pages is None and observations is None and bodies is None:
        raise ParameterError("nothing to export: give --pages, --observations or --bodies")
    for path in (pages, observations):
        if path is not None:
            files.check_table(path)
    if bodies is not None:
        check_warc(bodies)
    found: dict[str, object] = {"database": settings.database_name}
    with shared_store(settings) as store:
        now = time.time()
        if pages is not None or observations is not None:
            engine = store.run(engine_of(store.store, settings, now))
        if pages is not None:
            found |= {"pages": str(pages), "n_pages": files.write_pages(engine, pages, now)}
        if observations is not None:
            n_observations = files.write_observations(store, engine, observations)
            found |= {"observations": str(observations), "n_observations": n_observations}
        if bodies is not None:
            found |= {"bodies": str(bodies), "n_bodies": write_warc(store, bodies)}
    if as_json:
        typer.echo(json.dumps(found))
        return
    for name in ("pages", "observations", "bodies"):
        if name in found:
            typer.echo(f"{found[f'n_{name}']} {name}: {found[name]}")
