"""``recrawl remove``: remove pages from a database."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.shared.crawl_options import AsJson, Config, Database, exclusive_store, settings_of, shared_store
from recrawl.errors import ParameterError

if TYPE_CHECKING:
    from recrawl.store import BlockingStore, SqliteStore

EPILOG = "Example:  recrawl remove https://docs.example.org/old\n\nExample:  recrawl remove 'https://shop.example.org/cart/*'"


def remove(
    pages: Annotated[list[str], typer.Argument(metavar="URL|PATTERN", help="URLs; * matches any text.")],
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Remove pages with their rates, observations and bodies."""
    settings = settings_of(config, database=database)
    with shared_store(settings) as reader:
        urls = _matching(reader, pages)
    store = exclusive_store(settings)
    if store is None:
        from recrawl.crawl.run.commands import remove_command

        with shared_store(settings) as store:
            store.queue([remove_command(urls)])
        text = f"removal of {len(urls)} pages queued for the running crawl"
    else:
        with store:
            store.save(removed=urls)
        text = f"{len(urls)} pages removed"
    found = {"database": settings.database, "removed": len(urls), "urls": urls}
    typer.echo(json.dumps(found) if as_json else text)


def _matching(store: BlockingStore[SqliteStore], patterns: list[str]) -> list[str]:
    from recrawl.crawl.config.rules import pattern
    from recrawl.crawl.urls import canonical

    known = dict.fromkeys(store.urls())
    found: dict[str, None] = {}
    for text in patterns:
        urls = [url for url in known if pattern(text).fullmatch(url)] if "*" in text else [canonical(text)]
        if not urls or urls[0] not in known:
            raise ParameterError(f"{text}: no such page in {store.store.path}")
        found |= dict.fromkeys(urls)
    return list(found)
