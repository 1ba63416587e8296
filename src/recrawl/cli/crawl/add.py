"""``recrawl add``: add pages to a database, from URLs, files, sitemaps and standard input."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from recrawl.cli.shared.options.crawl_options import (
    AsJson,
    Config,
    Database,
    LogFormat,
    LogLevel,
    check_importance,
    settings_of,
)
from recrawl.cli.shared.options.extras import need
from recrawl.cli.shared.options.places import Place, Places, places_of
from recrawl.errors import ParameterError
from recrawl.logs import configure
from recrawl.model.spans import count

if TYPE_CHECKING:
    from recrawl.cli.shared.pages.listing_sources import Followed
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
    from recrawl.cli.shared.pages.listing_sources import follow
    from recrawl.cli.shared.pages.page_sources import gather
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
    with places_of(settings) as places:
        found = _total(
            [
                _put(place, settings, _Part.of(urls, known, mine), _rests(places, place, gathered.rests))
                for place, mine in places.of(urls)
            ],
            settings,
        )
        given = [*followed.listings, *(one.match for one in followed.sites)]
        for place, mine in places.of(given) if given else []:
            _follow(place, followed.part(mine))
    typer.echo(json.dumps(found | followed.figures()) if as_json else _words(found, settings) + followed.words())


class _Part(NamedTuple):
    """Those of the URLs that belong to one place, with what is known of them."""

    urls: list[str]
    known: Columns

    @classmethod
    def of(cls, urls: list[str], known: Columns, mine: list[int]) -> _Part:
        return cls([urls[k] for k in mine], {name: [column[k] for k in mine] for name, column in known.items()})


def _rests(places: Places, place: Place, rests: dict[str, float]) -> dict[str, float]:
    """The hosts of a place that were asked just now."""
    hosts = list(rests)
    return {
        hosts[k]: rests[hosts[k]] for mine, ks in places.of([f"//{one}/" for one in hosts]) for k in ks if mine is place
    }


def _put(place: Place, settings: Settings, part: _Part, rests: dict[str, float]) -> dict[str, Any]:
    """Add pages to a place, or queue them for the crawl that has it."""
    store = place.exclusive()
    if store is None:
        with place.shared() as store:
            return _queue(store, settings, *part, rests)
    with store:
        return _add(store, settings, *part, rests)


def _follow(place: Place, followed: Followed) -> None:
    store = place.exclusive()
    if store is None:
        with place.shared() as store:
            store.queue(followed.commands())
    else:
        with store:
            followed.save(store)


def _total(parts: list[dict[str, Any]], settings: Settings) -> dict[str, Any]:
    """The figures of all places together: what was added, and what was queued for crawls that run."""
    found: dict[str, Any] = {"database": settings.database_name}
    for name in ("added", "posted", "known", "pages"):
        given = [part[name] for part in parts if name in part]
        if given:
            found[name] = sum(given)
    return found


def _words(found: dict[str, Any], settings: Settings) -> str:
    queued = f"{count(found['posted'], 'new page')} queued for the running crawl" if "posted" in found else ""
    if "added" not in found and queued:
        return f"{queued}, {found['known']} known already"
    text = f"{count(found.get('added', 0), 'page')} added, " + (f"{queued}, " if queued else "")
    return f"{text}{found.get('known', 0)} known already, {found.get('pages', 0)} in {settings.database_name}"


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
    commands = store.commands()  # first: one that is applied meanwhile is seen by what it did
    rows, asked = store.load(urls), set(urls)
    there = set() if rows is None else set(rows["url"])
    for _, command in commands:
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
