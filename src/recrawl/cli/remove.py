"""``recrawl remove``: remove pages from a database."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from recrawl.cli.shared.files.page_patterns import matching
from recrawl.cli.shared.options.crawl_options import (
    AsJson,
    Config,
    Database,
    exclusive_store,
    settings_of,
    shared_store,
)

EPILOG = "Example:  recrawl remove https://docs.example.org/old\n\nExample:  recrawl remove 'https://shop.example.org/cart/*'"


def remove(
    pages: Annotated[list[str], typer.Argument(metavar="URL|PATTERN", help="URLs; * matches any text.")],
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Remove pages with their rates, observations and bodies, and listings that are polled."""
    settings = settings_of(config, database=database)
    with shared_store(settings) as reader:
        urls = matching(reader, pages, [one.url for one in reader.listings()])
    from recrawl.store.listings import StoredListing

    store = exclusive_store(settings)
    if store is None:
        from recrawl.crawl.run.commands import remove_command

        with shared_store(settings) as store:
            store.queue([remove_command(urls)])
        text = f"removal of {len(urls)} pages queued for the running crawl"
    else:
        with store:
            store.save(removed=urls, listings=[StoredListing(url, None) for url in urls])
        text = f"{len(urls)} pages removed"
    found = {"database": settings.database_name, "removed": len(urls), "urls": urls}
    typer.echo(json.dumps(found) if as_json else text)
