"""``recrawl audit``: the true freshness of the copies, from a random sample, beside the forecast."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.shared.files.outputs import check_outputs
from recrawl.cli.shared.options.crawl_options import (
    AsJson,
    Config,
    Database,
    LogFormat,
    LogLevel,
    settings_of,
    shared_store,
)
from recrawl.cli.shared.options.options import check_level
from recrawl.cli.shared.options.places import Place, cluster_of, places_of
from recrawl.errors import ParameterError, StoreInUseError
from recrawl.logs import configure

if TYPE_CHECKING:
    from recrawl.cluster.tables import Cluster
    from recrawl.crawl.config.settings import Settings
    from recrawl.estimate.audit import Audit

EPILOG = (
    "Example:  recrawl audit --requests 200 --contact you@example.org\n\n"
    "Example:  recrawl audit --list --plot audits.png"
)


def audit(
    requests: Annotated[int, typer.Option(help="Pages to draw; each costs at most one request.", min=1)] = 100,
    level: Annotated[float, typer.Option(help="Probability that the interval holds the truth.")] = 0.9,
    listed: Annotated[bool, typer.Option("--list", help="Show earlier audits; make no new one.")] = False,
    budget: Annotated[str | None, typer.Option(help="Requests allowed, such as 2/s.  [default: the crawl's]")] = None,
    delay: Annotated[str | None, typer.Option(help="Time between two requests to a host.  [default: 1 s]")] = None,
    contact: Annotated[str | None, typer.Option(help="How site owners can reach you.")] = None,
    allow_private: Annotated[bool | None, typer.Option("--allow-private", help="Also local addresses.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw all audits and forecasts (PNG).")] = None,
    log_level: LogLevel = "warning",
    log_format: LogFormat = "text",
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Fetch a random sample of pages, weighted by importance, and compare them with their copies."""
    check_level(level)
    check_outputs(None, plot)
    flags = {"budget": budget, "delay": delay, "contact": contact}
    configure(log_level, log_format)
    settings = settings_of(config, database=database, allow_private=allow_private, **flags)
    from recrawl.crawl.audit.open_audit import ENDED, audits_of_shards, check_draws, saved_audits

    check_draws(requests)
    cluster = cluster_of(settings)
    if cluster is not None and not listed:
        _queue_shard_audits(cluster, requests, level)
    queued = not listed and (cluster is not None or _make_or_queue(settings, requests, level))
    with places_of(settings) as places:
        ended = [_ended(place) for place in places.places]
    audits = saved_audits({ENDED: ended[0]}) if cluster is None else audits_of_shards(ended)
    if plot is not None and not queued:
        from recrawl.cli.views.plots.audit_plot import draw_audits

        draw_audits(audits, plot)
    _show(settings, audits, requests, queued=queued, listed=listed, as_json=as_json)


def _ended(place: Place) -> list[dict[str, Any]]:
    """The audits of a place that ended, as they are noted."""
    from recrawl.crawl.audit.open_audit import ENDED

    with place.shared() as store:
        found: list[dict[str, Any]] = store.notes(ENDED).get(ENDED, [])
    return found


def _queue_shard_audits(cluster: Cluster, draws: int, level: float) -> None:
    """Queue an audit of all shards: each gets draws in proportion to the importance of its pages."""
    from recrawl.cluster.audit import queue_audit
    from recrawl.cluster.overview import overview

    if not any(one["live"] for one in asyncio.run(overview(cluster))["workers"]):
        raise ParameterError("no worker of the cluster runs, and its workers make the audits: start one by recrawl run")
    asyncio.run(queue_audit(cluster, draws, level))


def _make_or_queue(settings: Settings, requests: int, level: float) -> bool:
    """Make an audit. If a crawl is running, queue the command for it instead and return True."""
    from recrawl import __version__

    settings.agent(__version__)
    try:
        asyncio.run(_make(settings, requests, level))
    except StoreInUseError:
        from recrawl.crawl.run.commands import audit_command

        with shared_store(settings) as store:
            store.queue([audit_command(requests, level)])
        return True
    return False


async def _make(settings: Settings, requests: int, level: float) -> None:
    from recrawl.cli.shared.options.interrupts import stop_on_signals
    from recrawl.cli.shared.options.opening import opened

    live = await opened(settings)
    try:
        stop_on_signals(live.crawler)
        await live.crawler.run(audit=(requests, level))
        if not live.crawler.audits.n_ended:
            raise ParameterError("no page of the sample could be fetched and compared; see recrawl status")
    finally:
        await live.close()


def _show(settings: Settings, audits: list[Audit], requests: int, *, queued: bool, listed: bool, as_json: bool) -> None:
    from recrawl.crawl.views.audit_report import audit_rows, verdict_text
    from recrawl.estimate.audit import verdict

    judged = None if queued else verdict(audits)
    if as_json:
        found: dict[str, Any] = {"database": settings.database_name, "posted": queued}
        found["audit"] = None if queued or not audits else audits[-1].as_dict()
        found["verdict"] = None if judged is None else judged.as_dict()
        if listed:
            found["audits"] = [one.as_dict() for one in audits]
        typer.echo(json.dumps(found))
        return
    if queued:
        typer.echo(f"a crawl is running: it audits {requests} pages; recrawl status shows the result")
        return
    if not audits:
        typer.echo("no audit was made yet")
    for one in audits if listed else audits[-1:]:
        for label, text in audit_rows(one):
            typer.echo(f"{label:<26}{text}")
    if judged is not None:
        typer.echo(f"{'audit and forecast':<26}{verdict_text(audits)}")
