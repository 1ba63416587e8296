"""``recrawl why``: explain when one page is crawled, and why."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.shared.crawl_options import AsJson, Config, Database, settings_of, shared_store

if TYPE_CHECKING:
    from recrawl.crawl.feeds.polling import Feed
    from recrawl.store import BlockingStore, SqliteStore
    from recrawl.store.protocol import Copy

EPILOG = "Example:  recrawl why https://docs.example.org/install"


def why(
    url: Annotated[str, typer.Argument(metavar="URL", help="A page of the database.")],
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Explain one page: how often it changes, the value of a crawl, when it is crawled next, and why."""
    from recrawl.crawl.run.partial import explain_page
    from recrawl.crawl.urls import canonical

    settings = settings_of(config, database=database)
    wanted = canonical(url)
    with shared_store(settings) as store:
        now = time.time()
        found = store.run(explain_page(store.store, settings, wanted, now))
        copy = store.copies([wanted]).get(wanted)
        last = list(store.observations(wanted))[-1:]
        feed = feed_of(store, wanted)
    if as_json:
        extra: dict[str, Any] = {"crawled": copy is not None, "last_failure": last[0].failure if last else None}
        extra["flaps"] = 0 if copy is None else copy.n_flaps
        extra["found"] = None if copy is None or copy.digest is None else not copy.digest.endswith(":nothing")
        extra["feed"] = None if feed is None else {**feed.as_note(), "ids": len(feed.ids), "rate": feed.rate}
        typer.echo(json.dumps({**found.as_dict(), **extra, "now": now}))
        return
    lines = str(found).splitlines()
    if copy is None:
        lines[2] = "never crawled" + (f"; the last try: {last[0].failure}" if last and last[0].failure else "")
    elif last and last[0].failure:
        lines[2] += f"; the last try: {last[0].failure}"
    if copy is not None and copy.final_url:
        lines.append(f"redirects to {copy.final_url}")
    for line in [*lines, *remarks(copy, feed)]:
        typer.echo(line)


def feed_of(store: BlockingStore[SqliteStore], url: str) -> Feed | None:
    """The feed record of a page; None if the page is not a feed."""
    from recrawl.crawl.feeds.polling import PREFIX, Feed

    note = store.notes(PREFIX + url).get(PREFIX + url)
    return None if note is None else Feed.of_note(note)


def remarks(copy: Copy | None, feed: Feed | None) -> list[str]:
    """Remarks on a page: nothing selected, flapping content, feed items."""
    lines = []
    if copy is not None and copy.digest is not None and copy.digest.endswith(":nothing"):
        lines.append("the selector of its rule (select) matched nothing in the last copy")
    if copy is not None and copy.n_flaps:
        times = "once" if copy.n_flaps == 1 else f"{copy.n_flaps} times"
        lines.append(f"flapping: returned {times} to content seen before, which is not counted as a change")
    if feed is not None:
        text = f"a feed of {feed.length} items, about {feed.rate * 86400:.3g} new a day"
        text += f"; items rolled off between polls {feed.rolled} times" if feed.rolled else ""
        if feed.interval is not None:
            text += f"; polled at least every {feed.interval / 3600:.3g} h to keep them"
        elif feed.rolled_in_row:
            text += "; new items come faster than it may be polled"
        lines.append(text)
    return lines
