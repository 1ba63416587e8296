"""``recrawl set``: set the importance of pages, also while a crawl runs."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.shared.options.crawl_options import (
    AsJson,
    Config,
    Database,
    check_importance,
    settings_of,
)
from recrawl.cli.shared.options.places import Place, Places, places_of
from recrawl.cli.shared.pages.page_patterns import matching
from recrawl.errors import ParameterError
from recrawl.model.spans import count

if TYPE_CHECKING:
    from recrawl.crawl.config.settings import Settings
    from recrawl.store import BlockingStore, OwnedStore

EPILOG = (
    "Example:  recrawl set https://docs.example.org/install --importance 10\n\n"
    "Example:  recrawl set 'https://docs.example.org/old/*' --importance 0.1"
)


def set_pages(
    pages: Annotated[list[str], typer.Argument(metavar="URL|PATTERN", help="URLs; * matches any text.")],
    importance: Annotated[float, typer.Option(help="Weight of the pages.")],
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Set the importance of pages that a database has. A rule that gives the importance of a page wins."""
    check_importance(importance)
    settings = settings_of(config, database=database)
    with places_of(settings) as places:
        named = matching(places, pages)
        rules = settings.rules()
        urls = [url for url in named if rules.of(url).importance is None]
        if not urls:
            raise ParameterError(f"{named[0]}: a rule gives its importance, and wins over recrawl set: change the rule")
        found = [_put(place, places, [urls[k] for k in mine], importance) for place, mine in places.of(urls)]
    ruled, queued = len(named) - len(urls), any(found)
    if as_json:
        figures = {"database": settings.database_name, "set": len(urls), "ruled": ruled, "queued": queued}
        typer.echo(json.dumps({**figures, "importance": importance, "urls": urls}))
        return
    typer.echo(
        f"importance {importance:g} {'is queued for the running crawl, for' if queued else 'set for'} "
        f"{count(len(urls), 'page')}" + (f"; for {count(ruled, 'page')} a rule gives it" if ruled else "")
    )


def _put(place: Place, places: Places, urls: list[str], importance: float) -> bool:
    """Set the importance of pages in a place; whether it was queued for the crawl that has it."""
    store = place.exclusive()
    if store is not None:
        with store:
            _set(store, places.settings_of(place), urls, importance)
        return False
    from recrawl.crawl.run.commands import set_command

    with place.shared() as store:
        store.queue([set_command(urls, importance)])
    return True


def _set(store: BlockingStore[OwnedStore], settings: Settings, urls: list[str], importance: float) -> None:
    from recrawl.crawl.run.opening.pages import save_pages, set_importance
    from recrawl.crawl.run.opening.partial import open_for

    engine = store.run(open_for(store.store, settings, urls, time.time()))
    ids = set_importance(engine, settings.rules(), urls, importance)
    store.run(save_pages(engine, store.store, ids))
