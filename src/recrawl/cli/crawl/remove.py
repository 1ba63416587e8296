"""``recrawl remove``: remove pages from a database."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from recrawl.cli.shared.options.crawl_options import (
    AsJson,
    Config,
    Database,
    settings_of,
)
from recrawl.cli.shared.options.places import Place, places_of
from recrawl.cli.shared.pages.page_patterns import matching

EPILOG = "Example:  recrawl remove https://docs.example.org/old\n\nExample:  recrawl remove 'https://shop.example.org/cart/*'"


def remove(
    pages: Annotated[list[str], typer.Argument(metavar="URL|PATTERN", help="URLs; * matches any text.")],
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Remove pages with their rates, observations and bodies, and listings that are polled."""
    settings = settings_of(config, database=database)
    with places_of(settings) as places:
        urls = matching(places, pages, listings=True)
        queued = sum(_removed(place, [urls[k] for k in mine]) for place, mine in places.of(urls))
    text = [f"{len(urls) - queued} pages removed"] if len(urls) > queued else []
    text += [f"removal of {queued} pages queued for the running crawl"] if queued else []
    found = {"database": settings.database_name, "removed": len(urls), "urls": urls}
    typer.echo(json.dumps(found) if as_json else ", ".join(text))


def _removed(place: Place, urls: list[str]) -> int:
    """Remove pages and listings of a place; how many removals were queued for the crawl that has it."""
    from recrawl.crawl.run.commands import remove_command
    from recrawl.store.listings import StoredListing

    store = place.exclusive()
    if store is not None:
        with store:
            store.save(removed=urls, listings=[StoredListing(url, None) for url in urls])
        return 0
    with place.shared() as store:
        store.queue([remove_command(urls)])
    return len(urls)
