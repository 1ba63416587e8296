"""``recrawl remove``: pages that are no longer wanted."""

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
    pages: Annotated[list[str], typer.Argument(metavar="URL|PATTERN", help="URLs; * stands for anything.")],
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Forget pages with all that is known of them: rates, observations, bodies."""
    settings = settings_of(config, database=database)
    with shared_store(settings) as reader:
        urls = _matching(reader, pages)
    store = exclusive_store(settings)
    if store is None:
        from recrawl.crawl.run.commands import remove_command

        with shared_store(settings) as store:
            store.queue([remove_command(urls)])
        words = f"{len(urls)} pages handed to the crawl that is running, to be removed"
    else:
        with store:
            store.save(removed=urls)
        words = f"{len(urls)} pages removed"
    found = {"database": settings.database, "removed": len(urls), "urls": urls}
    typer.echo(json.dumps(found) if as_json else words)


def _matching(store: BlockingStore[SqliteStore], words: list[str]) -> list[str]:
    from recrawl.crawl.config.rules import pattern
    from recrawl.crawl.urls import canonical

    known = dict.fromkeys(store.urls())
    found: dict[str, None] = {}
    for word in words:
        mine = [url for url in known if pattern(word).fullmatch(url)] if "*" in word else [canonical(word)]
        if not mine or mine[0] not in known:
            raise ParameterError(f"{word}: no such page in {store.store.path}")
        found |= dict.fromkeys(mine)
    return list(found)
