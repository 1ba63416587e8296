"""``recrawl status``: what a database holds and how fresh its copies are."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.shared.crawl_options import AsJson, Config, Database, engine_of, settings_of, visit
from recrawl.cli.views.status_more import events, hosts, sections

if TYPE_CHECKING:
    from recrawl.crawl.config.settings import Settings
    from recrawl.engine import Engine
    from recrawl.store import SqliteStore

EPILOG = "Example:  recrawl status --budget 500/day --json"
_DAY = 86400.0


def status(
    budget: Annotated[str | None, typer.Option(help="Budget to forecast for.  [default: the crawl's]")] = None,
    check: Annotated[bool, typer.Option("--check", help="Look for damage in the database; takes time.")] = False,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Count pages, copies and crawls, and say how fresh the copies are now and will be at a budget."""
    settings = settings_of(config, database=database, budget=budget)
    with visit(settings) as store:
        found = figures(store, settings, time.time())
        if check:
            found["problems"] = store.check()
    if as_json:
        typer.echo(json.dumps(found))
        return
    for name, value in words(found):
        typer.echo(f"{name:<26}{value}")
    for line in sections(found):
        typer.echo(line)
    for problem in found.get("problems", []):
        typer.echo(f"damaged: {problem}")


def figures(store: SqliteStore, settings: Settings, now: float) -> dict[str, Any]:
    """What a database holds, as numbers."""
    engine = engine_of(store, settings, now)
    posts = store.posts()
    last = store.last_observation()
    found: dict[str, Any] = {
        "database": str(store.path),
        **store.counts(),
        "bytes": store.path.stat().st_size,
        "posted": sum(len(post.get("add", [])) for _, post in posts),
        "failing": engine.stats["failing"],
        "gone": engine.stats["away"],
        "last_crawl": None if last is None else last.began_at,
        **{f"{name}_last_day": n for name, n in store.recent(now - _DAY).items()},
        "feeds": feed_figures(store),
        "budget": settings.budget,
        "freshness": None,
        "freshness_so_far": None,
        "forecast": None,
        "events": events(store, now),
        "hosts": hosts(store, engine, now),
        **_audits(store),
    }
    if len(engine):
        found["freshness"] = freshness(engine, now)
        found["freshness_so_far"] = freshness_so_far(engine, now)
        planned = engine.forecast(settings.rates(len(engine))[1])
        found["forecast"] = {"freshness": planned.freshness, "low": planned.low, "high": planned.high}
    return found


def feed_figures(store: SqliteStore) -> dict[str, int]:
    """How many feeds there are, how many are polled in time for their items, and how many had items roll off."""
    from recrawl.crawl.feeds.polling import PREFIX

    notes = store.noted(PREFIX).values()
    hurried, rolled = sum(note["interval"] is not None for note in notes), sum(note["rolled"] > 0 for note in notes)
    return {"pages": len(notes), "hurried": hurried, "rolled_off": rolled}


def feed_words(feeds: dict[str, int], last_day: int) -> str:
    """The same for people."""
    words = f"{feeds['pages']}, {feeds['hurried']} polled in time for their items"
    if feeds["rolled_off"]:
        words += f"; items rolled off in {feeds['rolled_off']}, in the last day {last_day} times"
    return words


def _audits(store: SqliteStore) -> dict[str, Any]:
    """The last audit, and what the last ones say of forecasts."""
    from recrawl.cli.audit import verdict_words
    from recrawl.crawl.run.audits import kept_audits
    from recrawl.estimate.audit import verdict

    audits = kept_audits(store)
    said = verdict(audits)
    if said is None:
        return {"audit": None, "audits": 0, "verdict": None}
    return {
        "audit": audits[-1].as_dict(),
        "audits": len(audits),
        "verdict": {**said.as_dict(), "words": verdict_words(audits)},
    }


def freshness(engine: Engine, now: float) -> float:
    """The share of copies that are believed to be right now, by importance."""
    from recrawl.crawl.run.believed import believed_freshness

    return believed_freshness(engine, now)


def freshness_so_far(engine: Engine, now: float) -> float | None:
    """The share of the time in which copies were right, by importance, as far as crawls have told; None before that."""
    from recrawl.crawl.run.believed import audited_pages

    account = engine.account(now, audited_pages(engine))
    return 1.0 - account.staleness if account.time > 0.0 else None


def words(found: dict[str, Any]) -> list[tuple[str, str]]:
    """The same for people."""
    rows = [
        ("pages", f"{found['pages']} ({found['copies']} with a copy)"),
        ("crawls", f"{found['observations']}, in the last day {found['crawls_last_day']}"),
        ("changes in the last day", f"{found['changes_last_day']}"),
        ("failures in the last day", f"{found['failures_last_day']}"),
        ("failing, gone", f"{found['failing']}, {found['gone']}"),
        ("bodies", f"{found['bodies']}"),
    ]
    if found["flapping_last_day"]:
        rows.append(("flapping in the last day", f"{found['flapping_last_day']} returns to content seen before"))
    if found["feeds"]["pages"]:
        rows.append(("feeds", feed_words(found["feeds"], found["rolled_off_last_day"])))
    if found["posted"]:
        rows.append(("waiting to be added", f"{found['posted']}"))
    if found["last_crawl"] is not None:
        rows.append(("last crawl", datetime.fromtimestamp(found["last_crawl"]).isoformat(" ", "seconds")))
    if found["freshness"] is not None:
        rows.append(("freshness now", f"{found['freshness']:.3f} (expected)"))
        if found["freshness_so_far"] is not None:
            rows.append(("freshness so far", f"{found['freshness_so_far']:.3f} (by what crawls found)"))
        plan = found["forecast"]
        span = f"{plan['freshness']:.3f} ({plan['low']:.3f} to {plan['high']:.3f})"
        rows.append((f"freshness at {found['budget']}", span))
    if found["audit"] is not None:
        from recrawl.cli.audit import audit_words
        from recrawl.estimate.audit import Audit

        rows += audit_words(Audit.from_dict(found["audit"]))
        rows.append(("audit and forecast", found["verdict"]["words"]))
    return rows
