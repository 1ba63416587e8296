"""``recrawl run``: crawl the pages of a database within a budget, for as long as one likes."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl._system import loops
from recrawl.cli.shared.files.short_urls import printed_url
from recrawl.cli.shared.options.crawl_options import (
    AsJson,
    Config,
    Database,
    LogFormat,
    settings_file,
    settings_of,
)
from recrawl.cli.shared.options.effect_options import NoSiblings
from recrawl.cli.shared.options.extras import need
from recrawl.cli.shared.options.own_server import print_sign_in
from recrawl.cli.shared.options.places import cluster_of, places_of
from recrawl.cli.shared.options.policy_options import Objective, Policy, Price, VeryStale, VeryStaleShare
from recrawl.errors import ParameterError
from recrawl.logs import configure
from recrawl.model.spans import format_span

if TYPE_CHECKING:
    from recrawl.cluster.tables import Cluster
    from recrawl.crawl.config.settings import Settings
    from recrawl.crawl.run.opening.assemble import LiveCrawl
    from recrawl.serve import Front, HttpServer

EPILOG = (
    "Example:  recrawl run --budget 2/s --contact you@example.org\n\n"
    "Example:  recrawl run --budget 100k/month --for 8h\n\nExample:  recrawl run --dry-run 20"
)


def run(
    budget: Annotated[str | None, typer.Option(help="Requests allowed, such as 2/s or 100k/month.")] = None,
    duration: Annotated[str | None, typer.Option("--for", help="How long to run, such as 90s or 8h.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Crawl every page one time, then end.")] = False,
    dry_run: Annotated[
        int | None, typer.Option(help="Print the next N pages and crawl none.", min=1, max=100_000)
    ] = None,
    hours: Annotated[str | None, typer.Option(help="When crawling is allowed, such as 22-6.")] = None,
    delay: Annotated[str | None, typer.Option(help="Time between two requests to a host.  [default: 1 s]")] = None,
    concurrency: Annotated[int | None, typer.Option(help="Crawls at a time.  [default: 64]")] = None,
    audit_share: Annotated[str | None, typer.Option(help="Share of the crawls for audits, such as 1%.")] = None,
    min_change_probability: Annotated[
        str | None, typer.Option(help="Crawl no page that is less likely to have changed.  [default: 1%]")
    ] = None,
    objective: Objective = None,
    policy: Policy = None,
    price: Price = None,
    very_stale: VeryStale = None,
    very_stale_share: VeryStaleShare = None,
    contact: Annotated[str | None, typer.Option(help="How site owners can reach you.")] = None,
    allow_private: Annotated[bool | None, typer.Option("--allow-private", help="Also local addresses.")] = None,
    listen: Annotated[str | None, typer.Option(help="Take signals by HTTP there, such as 127.0.0.1:8321.")] = None,
    no_siblings: NoSiblings = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No live view.")] = False,
    log_level: Annotated[
        str | None,
        typer.Option(
            help="Least level of log records.  [default: info, or warning on a terminal, with --quiet and with --json]",
            metavar="LEVEL",
        ),
    ] = None,
    log_format: LogFormat = "text",
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Keep the copies of a database fresh, until --for or --once, SIGTERM or Ctrl-C; everything found is kept."""
    silent = quiet or as_json or sys.stderr.isatty()
    configure(log_level or ("warning" if silent else "info"), log_format)
    words = {"budget": budget, "hours": hours, "delay": delay, "contact": contact, "audit_share": audit_share}
    flags: dict[str, Any] = {**words, "concurrency": concurrency, "min_change_probability": min_change_probability}
    flags |= {"objective": objective, "policy": policy, "price": price, "siblings": False if no_siblings else None}
    flags |= {"very_stale": very_stale, "very_stale_share": very_stale_share, "listen": listen}
    read = partial(settings_of, config, database=database, allow_private=allow_private, **flags)
    settings = read()
    cluster = cluster_of(settings)
    if cluster is not None:
        _check_worker(budget)
    from recrawl.crawl.config.rules import span

    seconds = None if duration is None else span(duration, "--for")
    if dry_run is not None:
        _print_next(settings, dry_run, as_json)
        return
    _check_start(settings)
    if cluster is not None:
        _print_found(asyncio.run(_work(cluster, read, seconds, once)), as_json)
        return
    _print_found(loops.run(_run(read, seconds, once, quiet or as_json, settings_file(config))), as_json)


def _print_found(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(found))
        return
    for name, value in found.items():
        text = "not known yet" if value is None else f"{value:.4g}" if isinstance(value, float) else f"{value}"
        typer.echo(f"{name.replace('_', ' '):<20}{text}")


def _check_start(settings: Settings) -> None:
    """Raise ParameterError if a crawl could not start under these settings."""
    from recrawl import __version__
    from recrawl.crawl.run.opening.assemble import check_settings

    settings.agent(__version__)
    check_settings(settings)
    if settings.listen.strip():
        need("serve")


def _check_worker(budget: str | None) -> None:
    """Raise ParameterError for options that a worker of a cluster does not have."""
    if budget is not None:
        raise ParameterError("the budget of a cluster is that of all workers: recrawl cluster budget sets it")


async def _work(cluster: Cluster, read: Callable[[], Settings], seconds: float | None, once: bool) -> dict[str, Any]:
    """Work on a cluster, as one of its workers."""
    from recrawl.cli.shared.options.interrupts import note_hangups, reload_on_hangup, stop_on_signals
    from recrawl.cli.shared.options.opening import worker_of
    from recrawl.cluster.tables import bring_up_to_date
    from recrawl.crawl.run.opening.warming import warm_up_beside

    settings, noted = read(), note_hangups()
    await warm_up_beside()
    worker, began = worker_of(cluster, settings, read=read), time.monotonic()

    def take_signals() -> None:
        stop_on_signals(worker)
        reload_on_hangup(worker.reload, worker.stop, noted)

    async with AsyncExitStack() as stack:
        if settings.listen.strip():
            from recrawl.serve.cluster_service import beside_worker

            await bring_up_to_date(cluster)  # the service reads its tables before the worker begins
            print_sign_in(await stack.enter_async_context(beside_worker(cluster, settings)))
        counted = await worker.run(seconds, once=once, on_start=take_signals)
    return {"worker": worker.name, "seconds": round(time.monotonic() - began, 3), **counted}


async def _run(
    read: Callable[[], Settings], seconds: float | None, once: bool, quiet: bool, file: Path | None
) -> dict[str, Any]:
    from recrawl._compile.first_use import first_use
    from recrawl.cli.shared.options.interrupts import note_hangups, reload_on_hangup, stop_on_signals
    from recrawl.cli.shared.options.opening import opened
    from recrawl.cli.views.run_view import View
    from recrawl.crawl.run.opening.reload import TAKES_RELOAD
    from recrawl.crawl.run.opening.warming import warm_up_beside

    settings, noted = read(), note_hangups()
    front = _front(settings)
    try:
        live = await opened(settings, prepare=None if front is None else _rehearse)
    except BaseException:
        if front is not None:
            front.close()
        raise
    try:
        stop_on_signals(live.crawler)
        reload_on_hangup(lambda: live.reload(read), live.crawler.stop, noted)
        live.store.announce(TAKES_RELOAD)
        if front is None and first_use.is_over:  # else small engines begin uncompiled
            await warm_up_beside()
        server = await _served(live, front, file)
        began = live.clock.now()
        view = View(live.crawler, settings, quiet)
        watching = asyncio.create_task(view.watch())
        try:
            until = None if seconds is None else began + seconds
            counters = await live.crawler.run(until, once=once)
        finally:
            watching.cancel()
            view.close()
            if server is not None:
                await server.close()
        took = live.clock.now() - began
        return {"seconds": round(took, 3), **counters.as_dict(), "freshness": view.freshness()}
    finally:
        await live.close()


async def _served(live: LiveCrawl, front: Front | None, file: Path | None) -> HttpServer | None:
    """The HTTP interface of a crawl, if its settings say where it listens."""
    if front is None:
        return None
    from recrawl.serve import serve_crawl

    await live.crawler.components.load()
    server = await serve_crawl(live, front.handed_over(), file)
    print_sign_in(server)
    return server


async def _rehearse() -> None:
    """Load or compile the kernels that a crawl and its HTTP interface need: no request is to wait for them."""
    from recrawl.serve.rehearsal import rehearse_service

    await rehearse_service()


def _front(settings: Settings) -> Front | None:
    """What answers by HTTP until the engine is loaded."""
    if not settings.listen.strip():
        return None
    from recrawl.serve import Front

    return Front(settings.listen.strip(), settings.public_url)


def _print_next(settings: Settings, n: int, as_json: bool) -> None:
    """What would be crawled next, and when, if every crawl succeeded at once and taught nothing.

    The shards of a cluster crawl beside each other, each by its share of the budget.
    """
    from recrawl.crawl.run.opening.preview import preview

    now, found = time.time(), list[dict[str, Any]]()
    with places_of(settings) as places:
        if places.cluster is not None and not any(places.shares.values()):
            raise ParameterError("no shard has a share of the budget yet: start a worker by recrawl run")
        for place in places.places:
            with place.shared() as store:
                found += store.run(preview(store.store, places.settings_of(place), n, now))
    if not found:
        raise ParameterError(f"{settings.database_name}: has no pages; recrawl add adds some")
    found = sorted(found, key=lambda one: one["in"])[:n]
    if as_json:
        typer.echo(json.dumps(found))
        return
    for one in found:
        typer.echo(f"{format_span(one['in']):>12}  {printed_url(one['url'], used=14)}")
