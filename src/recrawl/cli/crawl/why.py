"""``recrawl why``: explain when one page is crawled, and why."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.shared.options.crawl_options import AsJson, Config, Database, settings_of
from recrawl.cli.shared.options.places import places_of

if TYPE_CHECKING:
    from recrawl.crawl.feeds.polling import Feed
    from recrawl.store import BlockingStore, OwnedStore

EPILOG = "Example:  recrawl why https://docs.example.org/install"


def why(
    url: Annotated[str, typer.Argument(metavar="URL", help="A page of the database.")],
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Explain one page: how often it changes, the value of a crawl, when it is crawled next, and why."""
    from recrawl.crawl.run.opening.partial import explain_page
    from recrawl.crawl.urls import canonical
    from recrawl.crawl.views.reasons import Fate, state_text
    from recrawl.crawl.views.why_report import why_lines

    settings = settings_of(config, database=database)
    wanted = canonical(url)
    with places_of(settings) as places, (place := places.of_url(wanted)).shared() as store:
        now = time.time()
        found = store.run(explain_page(store.store, places.settings_of(place), wanted, now))
        copy = store.copies([wanted]).get(wanted)
        fate = Fate.of(store, settings.rules(), wanted)
        feed = feed_of(store, wanted)
    if as_json:
        found = replace(found, state=state_text(found, fate))
        extra: dict[str, Any] = {"crawled": copy is not None, "last_failure": fate.last.failure if fate.last else None}
        extra["last_status"] = fate.last.status if fate.last else None
        extra["flaps"] = 0 if copy is None else copy.n_flaps
        extra["found"] = None if copy is None or copy.digest is None else not copy.digest.endswith(":nothing")
        extra["feed"] = None if feed is None else {**feed.as_note(), "ids": len(feed.ids), "rate": feed.rate}
        typer.echo(json.dumps({**found.as_dict(), **extra, "now": now}))
        return
    for line in why_lines(found, fate, copy, feed):
        typer.echo(line)


def feed_of(store: BlockingStore[OwnedStore], url: str) -> Feed | None:
    """The feed record of a page; None if the page is not a feed."""
    from recrawl.crawl.feeds.polling import PREFIX, Feed

    note = store.notes(PREFIX + url).get(PREFIX + url)
    return None if note is None else Feed.of_note(note)
