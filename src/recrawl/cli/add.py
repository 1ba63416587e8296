"""``recrawl add``: add pages to a database, from URLs, files, sitemaps and standard input."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.shared.options.crawl_options import (
    AsJson,
    Config,
    Database,
    LogFormat,
    LogLevel,
    check_importance,
    exclusive_store,
    settings_of,
    shared_store,
)
from recrawl.cli.shared.options.extras import need
from recrawl.errors import ParameterError
from recrawl.logs import configure
from recrawl.model.spans import count

if TYPE_CHECKING:
    from recrawl.crawl.config.settings import Settings
    from recrawl.store import BlockingStore, OwnedStore

EPILOG = (
    "Example:  recrawl add https://docs.example.org/ urls.txt --importance 5\n\n"
    "Example:  recrawl add urls.csv\n\n"
    "Example:  recrawl add --sitemap https://example.org/sitemap.xml --contact you@example.org\n\n"
    "Example:  recrawl add https://docs.example.org/ --discover"
)
_QUEUED = 5000  # URLs in one queued command

Columns = dict[str, list[float]]


def add(
    pages: Annotated[
        list[str] | None,
        typer.Argument(metavar="URL|FILE|-", help="URLs, files of URLs, tables or sitemaps, - for stdin."),
    ] = None,
    sitemap: Annotated[list[str] | None, typer.Option(help="Sitemap to read, a URL or file; may be repeated.")] = None,
    listing: Annotated[
        list[str] | None, typer.Option(help="Sitemap, feed or index page that the crawl polls; may be repeated.")
    ] = None,
    discover: Annotated[bool, typer.Option("--discover", help="Follow the sites of the URLs: find new pages.")] = False,
    importance: Annotated[float, typer.Option(help="Weight of the pages.", min=0.0)] = 1.0,
    model: Annotated[Path | None, typer.Option(help="Model file that predicts change rates from URLs.")] = None,
    contact: Annotated[str | None, typer.Option(help="How site owners can reach you.")] = None,
    allow_private: Annotated[bool | None, typer.Option("--allow-private", help="Also local addresses.")] = None,
    log_level: LogLevel = "warning",
    log_format: LogFormat = "text",
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Add pages to a database and create it if it does not exist. Pages that it has already stay unchanged."""
    need("crawl")
    from recrawl.cli.shared.files.listing_sources import follow
    from recrawl.cli.shared.files.page_sources import gather
    from recrawl.crawl.run.opening.assemble import check_settings

    configure(log_level, log_format)
    check_importance(importance)
    settings = settings_of(config, database=database, contact=contact, allow_private=allow_private)
    check_settings(settings)
    if not pages and not sitemap and not listing:
        raise ParameterError("nothing to add: give URLs, files, -, --sitemap or --listing")
    followed = follow(pages or [], sitemap or [], listing or [], importance if discover else None)
    gathered = gather(pages or [], sitemap or [], settings)
    urls = list(gathered.weights)
    weights = [importance if weight is None else weight for weight in gathered.weights.values()]
    known: Columns = {"importance": weights} | ({} if model is None else _predicted(model, urls))
    store = exclusive_store(settings)
    if store is None:
        with shared_store(settings) as store:
            found = _queue(store, settings, urls, known, gathered.rests)
            store.queue(followed.commands())
        text = f"{count(found['posted'], 'new page')} queued for the running crawl, {found['known']} known already"
    else:
        with store:
            found = _add(store, settings, urls, known, gathered.rests)
            followed.save(store)
        text = f"{count(found['added'], 'page')} added, {found['known']} known already, "
        text += f"{found['pages']} in {settings.database_name}"
    found |= followed.figures()
    typer.echo(json.dumps(found) if as_json else text + followed.words())


def _queue(
    store: BlockingStore[OwnedStore], settings: Settings, urls: list[str], known: Columns, rests: dict[str, float]
) -> dict[str, Any]:
    """Queue the new pages for the running crawl."""
    from recrawl.crawl.run.commands import add_command, rest_command

    there = pages_to_be(store, urls)
    new = [k for k, url in enumerate(urls) if url not in there]
    commands = [rest_command(rests)] if rests else []
    for first in range(0, len(new), _QUEUED):
        part = new[first : first + _QUEUED]
        columns = {name: [column[k] for k in part] for name, column in known.items()}
        commands.append(add_command([urls[k] for k in part], **columns))
    store.queue(commands)
    return {"database": settings.database_name, "posted": len(new), "known": len(urls) - len(new)}


def pages_to_be(store: BlockingStore[OwnedStore], urls: list[str]) -> set[str]:
    """Which of the URLs are pages, or will be when the queued commands are applied."""
    rows, asked = store.load(urls), set(urls)
    there = set() if rows is None else set(rows["url"])
    for _, command in store.commands():
        there |= asked & set(command.get("add", ()))
        there -= set(command.get("remove", ()))
    return there


def _predicted(path: Path, urls: list[str]) -> dict[str, list[float]]:
    """Predicted change rates per second, and the evidence (gamma shape) behind each."""
    from recrawl.estimate import Predictor

    model = Predictor.load(path)
    if model.inputs != ("url",):
        raise ParameterError(f"{path}: the model reads {', '.join(model.inputs)}, but only URLs are known here")
    prior = model.prior({"url": urls})
    return {"change_rate": (prior.mean / 86400.0).tolist(), "evidence": prior.shape.tolist()}


def _add(
    store: BlockingStore[OwnedStore], settings: Settings, urls: list[str], known: Columns, rests: dict[str, float]
) -> dict[str, Any]:
    from recrawl.crawl.run.opening.pages import add_pages, save_pages
    from recrawl.crawl.run.opening.partial import open_for

    now = time.time()
    engine, before = store.run(open_for(store.store, settings, urls, now)), store.counts()["pages"]
    new = add_pages(engine, settings.rules(), urls, now, **known)
    for host in set(rests) & set(engine.hosts()):
        engine.hold(host, max(rests[host], engine.held_until(host)))
    store.run(save_pages(engine, store.store, new))
    return {
        "database": settings.database_name,
        "added": len(new),
        "known": len(urls) - len(new),
        "pages": before + len(new),
    }
