"""``recrawl audit``: how fresh the copies truly are, from a random sample, beside the forecast."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.shared.crawl_options import AsJson, Config, Database, settings_of, visit
from recrawl.errors import ParameterError, StoreError

if TYPE_CHECKING:
    from recrawl.crawl.config.settings import Settings
    from recrawl.estimate.audit import Audit

EPILOG = (
    "Example:  recrawl audit --requests 200 --contact you@example.org\n\n"
    "Example:  recrawl audit --list --plot audits.png"
)


def audit(
    requests: Annotated[int, typer.Option(help="Pages to draw; each costs at most one request.", min=1)] = 100,
    level: Annotated[float, typer.Option(help="Probability that the interval holds the truth.")] = 0.9,
    kept: Annotated[bool, typer.Option("--list", help="Show the audits that were made, and make none.")] = False,
    budget: Annotated[str | None, typer.Option(help="Requests allowed, such as 2/s.  [default: the crawl's]")] = None,
    delay: Annotated[str | None, typer.Option(help="Time between two requests to a host.  [default: 1 s]")] = None,
    contact: Annotated[str | None, typer.Option(help="How site owners can reach you.")] = None,
    allow_private: Annotated[bool | None, typer.Option("--allow-private", help="Also local addresses.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw all audits and forecasts (PNG).")] = None,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Fetch a random sample of pages, weighted by importance, and compare them with their copies."""
    from recrawl.cli.estimate import check_outputs

    if not 0 < level < 1:
        raise ParameterError(f"--level is {level}: must lie between 0 and 1")
    check_outputs(None, plot)
    flags = {"budget": budget, "delay": delay, "contact": contact}
    settings = settings_of(config, database=database, allow_private=allow_private, **flags)
    posted = False if kept else _made(settings, requests, level)
    from recrawl.crawl.run.audits import kept_audits

    with visit(settings) as store:
        audits = kept_audits(store)
    if plot is not None and not posted:
        from recrawl.cli.views.audit_plot import draw_audits

        draw_audits(audits, plot)
    _tell(settings, audits, requests, posted=posted, kept=kept, as_json=as_json)


def _made(settings: Settings, requests: int, level: float) -> bool:
    """Make an audit, or leave word for the crawl that runs; whether it was left to that."""
    from recrawl import __version__

    settings.agent(__version__)
    try:
        asyncio.run(_make(settings, requests, level))
    except StoreError as problem:
        if "in use by" not in str(problem):
            raise
        from recrawl.crawl.run.commands import asked_audit

        with visit(settings) as store:
            store.post([asked_audit(requests, level)])
        return True
    return False


async def _make(settings: Settings, requests: int, level: float) -> None:
    from recrawl.cli.run import on_signals
    from recrawl.cli.shared.run_parts import Parts

    parts = Parts(settings)
    before = len(parts.crawler.audits.kept)
    newest = parts.crawler.audits.kept[-1:]
    try:
        on_signals(parts.crawler)
        await parts.crawler.run(audit=(requests, level))
        if len(parts.crawler.audits.kept) == before and parts.crawler.audits.kept[-1:] == newest:
            raise ParameterError("no page of the sample could be fetched and compared; recrawl status tells more")
    finally:
        await parts.close()


def _tell(settings: Settings, audits: list[Audit], requests: int, *, posted: bool, kept: bool, as_json: bool) -> None:
    from recrawl.estimate.audit import verdict

    said = None if posted else verdict(audits)
    found: dict[str, Any] = {"database": settings.database, "posted": posted}
    found["audit"] = None if posted or not audits else audits[-1].as_dict()
    found["verdict"] = None if said is None else said.as_dict()
    if kept:
        found["audits"] = [one.as_dict() for one in audits]
    if as_json:
        typer.echo(json.dumps(found))
        return
    if posted:
        typer.echo(f"a crawl is running: it audits {requests} pages, and recrawl status shows what came of it")
        return
    if not audits:
        typer.echo("no audit was made yet")
    for one in audits if kept else audits[-1:]:
        for name, value in audit_words(one):
            typer.echo(f"{name:<26}{value}")
    if said is not None:
        typer.echo(f"{'audit and forecast':<26}{verdict_words(audits)}")


def audit_words(one: Audit) -> list[tuple[str, str]]:
    """An audit for people."""
    from datetime import datetime

    low, high = one.interval
    when = datetime.fromtimestamp(one.ended_at).isoformat(" ", "seconds")
    unknown = f", {one.unknown} could not be judged" if one.unknown else ""
    return [
        ("freshness, audited", f"{one.freshness:.3f} ({low:.3f} to {high:.3f} at {one.level:.0%})"),
        ("", f"{one.fresh} of {one.draws} draws were fresh{unknown}; {one.requests} requests, {when}"),
        ("freshness, forecast", f"{one.forecast:.3f} for the same moment"),
    ]


def verdict_words(audits: list[Audit]) -> str:
    """Whether forecasts and audits agree, in words."""
    from recrawl.estimate.audit import verdict

    said = verdict(audits)
    assert said is not None
    last = "the last audit" if said.audits == 1 else f"the last {said.audits} audits"
    if not said.agree:
        return (
            f"DISAGREE: by {last} the copies are {said.direction} than forecast "
            f"(were the forecast right, this had a chance of {said.p_value:.2g}); believe the audit"
        )
    if audits[-1].holds_forecast:
        return "agree"
    return f"agree: the forecast lies outside the last interval, which chance explains (p = {said.p_value:.2g})"
