"""``recrawl import``: start from the crawl log of another crawler."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from recrawl.cli.shared.crawl_options import AsJson, Config, Database, engine_of, exclusive_store, settings_of
from recrawl.errors import ParameterError, StoreError

if TYPE_CHECKING:
    from recrawl.cli.shared.crawl_log import CrawlLog
    from recrawl.crawl.config.settings import Settings
    from recrawl.engine import Engine
    from recrawl.store import BlockingStore, SqliteStore

EPILOG = "Example:  recrawl import crawls.csv"
_BATCH = 20_000  # outcomes written at a time


def import_log(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="CSV or Parquet with url, time, changed.")],
    lenient: Annotated[bool, typer.Option("--lenient", help="Repair a bad log and count the repairs.")] = False,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Import the pages of a crawl log with their change rates, crawls and dates of their copies."""
    from recrawl.cli.shared.crawl_log import read_crawl_log

    settings = settings_of(config, database=database)
    read = read_crawl_log(log, lenient=lenient)
    urls = canonical_urls(read, log)
    store = exclusive_store(settings)
    if store is None:
        raise StoreError(f"{settings.database}: a crawl is running; stop it first")
    with store:
        found = {"file": str(log), "database": settings.database, **import_pages(read, urls, store, settings)}
    if as_json:
        typer.echo(json.dumps(found))
        return
    typer.echo(
        f"{found['pages']} pages from {found['rows']} rows: {found['added']} added, {found['known']} known already"
    )
    for name, count in found["repairs"].items():
        typer.echo(f"{count} {name}")
    if found["signals_left_out"]:
        typer.echo("the log's signals are not imported")


def import_pages(
    log: CrawlLog, urls: list[str], store: BlockingStore[SqliteStore], settings: Settings
) -> dict[str, Any]:
    """Add a log's pages to a database. An empty database takes the trained engine, another one each page's rate."""
    from recrawl.crawl.run.pages import add_pages, save_pages

    now = time.time()
    trained, fetched_at = _trained(log, urls, settings)
    engine, known = store.run(engine_of(store.store, settings, now)), 0
    if len(engine) == 0:
        engine, new = trained, trained.ids()
        store.run(save_pages(engine, store.store, new))
    else:
        known = int((engine.addresses.known(urls) >= 0).sum())
        gamma = trained.beliefs.gamma(trained.ids())
        belief = {"change_rate": gamma.mean, "evidence": gamma.shape, "fetched_at": fetched_at}
        new = add_pages(engine, settings.rules(), urls, now, importance=_importance(log), **belief)
        store.run(save_pages(engine, store.store, new))
    _save_observations(log, urls, set(engine.url(new)), store)
    return {
        "pages": len(urls),
        "rows": log.n_rows,
        "added": len(new),
        "known": known,
        "repairs": dict(log.repairs),
        "signals_left_out": bool(log.sources),
    }


def canonical_urls(log: CrawlLog, path: Path) -> list[str]:
    """The log's URLs in canonical form. ParameterError for bad URLs, duplicates and times in the future."""
    from recrawl.crawl.urls import canonical

    if float(log.ended_at.max(initial=0.0)) > time.time() + 60.0:
        raise ParameterError(f"{path}: has times that lie in the future")
    urls: dict[str, str] = {}
    for url in log.urls:
        try:
            one = canonical(url)
        except ParameterError as problem:
            raise ParameterError(f"{path}: {problem}") from None
        if one in urls:
            raise ParameterError(f"{path}: {urls[one]} and {url} are the same page")
        urls[one] = url
    return list(urls)


def _importance(log: CrawlLog) -> Any:
    return 1.0 if log.importance is None else log.importance


def _trained(log: CrawlLog, urls: list[str], settings: Settings) -> tuple[Engine, Any]:
    """An engine that has recorded every crawl of the log, and the time of each page's last crawl."""
    from recrawl.engine import Engine

    seen = log.observations
    offset, count = seen.offset[:-1], np.diff(seen.offset)
    end = float(log.ended_at.max(initial=0.0)) or time.time()
    first, last = np.full(len(urls), -np.inf), np.full(len(urls), -np.inf)
    some = count > 0
    first[some] = log.ended_at[offset[some]] - seen.interval[offset[some]]
    last[some] = log.ended_at[seen.offset[1:][some] - 1]
    engine = Engine(
        settings.rates(len(urls))[1],
        start=end,
        host_spacing=settings.seconds("delay"),
        host_concurrency=settings.host_concurrency,
    )
    ids = engine.add(urls, end, fetched_at=first, importance=_importance(log))
    for k in range(int(count.max(initial=0))):  # the k-th crawl of every page with more than k crawls
        mine = np.flatnonzero(count > k)
        rows = offset[mine] + k
        engine.record(ids[mine], end, changed=seen.changed[rows], as_of=log.ended_at[rows])
    return engine, last


def _save_observations(log: CrawlLog, urls: list[str], new: set[str], store: BlockingStore[SqliteStore]) -> None:
    from recrawl.store import Outcome

    seen = log.observations
    page = np.repeat(np.arange(len(urls)), np.diff(seen.offset))
    order = np.argsort(log.ended_at, kind="stable").tolist()
    outcomes = (
        Outcome(urls[page[j]], float(log.ended_at[j]), changed=bool(seen.changed[j]), requests=1)
        for j in order
        if urls[page[j]] in new
    )
    batch: list[Outcome] = []
    for outcome in outcomes:
        batch.append(outcome)
        if len(batch) >= _BATCH:
            store.save(batch)
            batch = []
    store.save(batch)
