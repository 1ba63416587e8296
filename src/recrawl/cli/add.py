"""``recrawl add``: add pages to a database, from URLs, files, sitemaps and standard input."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recrawl.cli.shared.crawl_options import (
    AsJson,
    Config,
    Database,
    LogFormat,
    LogLevel,
    exclusive_store,
    settings_of,
    shared_store,
)
from recrawl.errors import ParameterError
from recrawl.logs import configure

if TYPE_CHECKING:
    from recrawl.crawl.config.settings import Settings
    from recrawl.store import BlockingStore, SqliteStore

EPILOG = (
    "Example:  recrawl add https://docs.example.org/ urls.txt --importance 5\n\n"
    "Example:  recrawl add --sitemap https://example.org/sitemap.xml --contact you@example.org"
)
_QUEUED = 5000  # URLs in one queued command


def add(
    pages: Annotated[
        list[str] | None, typer.Argument(metavar="URL|FILE|-", help="URLs, files of URLs or sitemaps, - for stdin.")
    ] = None,
    sitemap: Annotated[list[str] | None, typer.Option(help="Sitemap to read, a URL or file; may be repeated.")] = None,
    importance: Annotated[float, typer.Option(help="Weight of the pages.", min=0.0)] = 1.0,
    model: Annotated[Path | None, typer.Option(help="Model file that predicts change rates from URLs.")] = None,
    contact: Annotated[str | None, typer.Option(help="How site owners can reach you.")] = None,
    log_level: LogLevel = "warning",
    log_format: LogFormat = "text",
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Add pages to a database and create it if it does not exist. Pages that it has already stay unchanged."""
    from recrawl.cli.shared.page_sources import gather

    configure(log_level, log_format)
    settings = settings_of(config, database=database, contact=contact)
    if not pages and not sitemap:
        raise ParameterError("nothing to add: give URLs, files, - or --sitemap")
    urls = gather(pages or [], sitemap or [], settings)
    known = {} if model is None else _predicted(model, urls)
    store = exclusive_store(settings)
    if store is None:
        from recrawl.crawl.run.commands import add_command

        with shared_store(settings) as store:
            parts = [slice(k, k + _QUEUED) for k in range(0, len(urls), _QUEUED)]
            store.queue([add_command(urls[p], importance, **{name: c[p] for name, c in known.items()}) for p in parts])
        found = {"database": settings.database, "posted": len(urls)}
        text = f"{len(urls)} pages queued for the running crawl"
    else:
        with store:
            found = _add(store, settings, urls, importance, known)
        text = f"{found['added']} pages added, {found['known']} known already, {found['pages']} in {settings.database}"
    typer.echo(json.dumps(found) if as_json else text)


def _predicted(path: Path, urls: list[str]) -> dict[str, list[float]]:
    """Predicted change rates per second, and the evidence (gamma shape) behind each."""
    from recrawl.estimate import Predictor

    model = Predictor.load(path)
    if model.inputs != ("url",):
        raise ParameterError(f"{path}: the model reads {', '.join(model.inputs)}, but only URLs are known here")
    prior = model.prior({"url": urls})
    return {"change_rate": (prior.mean / 86400.0).tolist(), "evidence": prior.shape.tolist()}


def _add(
    store: BlockingStore[SqliteStore],
    settings: Settings,
    urls: list[str],
    importance: float,
    known: dict[str, list[float]],
) -> dict[str, object]:
    from recrawl.crawl.run.pages import add_pages, save_pages
    from recrawl.crawl.run.partial import open_for

    now = time.time()
    engine, before = store.run(open_for(store.store, settings, urls, now)), store.counts()["pages"]
    new = add_pages(engine, settings.rules(), urls, now, importance=importance, **known)
    store.run(save_pages(engine, store.store, new))
    return {
        "database": str(Path(settings.database)),
        "added": len(new),
        "known": len(urls) - len(new),
        "pages": before + len(new),
    }
