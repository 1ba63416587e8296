"""``recrawl export``: write pages, crawls and bodies of a database to files."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.shared.options.crawl_options import AsJson, Config, Database, engine_of, settings_of
from recrawl.cli.shared.options.places import Places, places_of
from recrawl.errors import ParameterError

if TYPE_CHECKING:
    from recrawl.engine import Engine
    from recrawl.store import BlockingStore, OwnedStore

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
    from recrawl.cli.shared.pages import export_files as files
    from recrawl.cli.shared.pages.warc_files import check_warc, write_warc

    settings = settings_of(config, database=database)
    if pages is None and observations is None and bodies is None:
        raise ParameterError("nothing to export: give --pages, --observations or --bodies")
    for path in (pages, observations):
        if path is not None:
            files.check_table(path)
    if bodies is not None:
        check_warc(bodies)
    found: dict[str, object] = {"database": settings.database_name}
    with places_of(settings) as places:
        now = time.time()
        if pages is not None:
            engines = (engine for _, engine in _parts(places, now))
            found |= {"pages": str(pages), "n_pages": files.write_pages(engines, pages, now)}
        if observations is not None:
            n_observations = files.write_observations(_parts(places, now), observations)
            found |= {"observations": str(observations), "n_observations": n_observations}
        if bodies is not None:
            found |= {"bodies": str(bodies), "n_bodies": write_warc(_stores(places), bodies)}
    if as_json:
        typer.echo(json.dumps(found))
        return
    for name in ("pages", "observations", "bodies"):
        if name in found:
            typer.echo(f"{found[f'n_{name}']} {name}: {found[name]}")


def _stores(places: Places) -> Iterator[BlockingStore[OwnedStore]]:
    for place in places.places:
        with place.shared() as store:
            yield store


def _parts(places: Places, now: float) -> Iterator[tuple[BlockingStore[OwnedStore], Engine]]:
    """The stores of all places, one after the other, each with its engine."""
    for place, store in zip(places.places, _stores(places), strict=True):
        yield store, store.run(engine_of(store.store, places.settings_of(place), now))
