"""``recrawl notify``: the notifications of the settings, and a test message of each."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.shared.options.crawl_options import AsJson, Config, Database, settings_of
from recrawl.errors import ParameterError, unknown

if TYPE_CHECKING:
    from recrawl.crawl.config.notify import Notify
    from recrawl.crawl.config.settings import Settings

EPILOG = "Example:  recrawl notify --test\n\nExample:  recrawl notify team --test"


def notify(
    name: Annotated[str | None, typer.Argument(help="Only this notification.")] = None,
    test: Annotated[
        bool, typer.Option("--test", help="Send one test message of each, and print what happened.")
    ] = False,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """List the notifications of the settings, or send a test message of each; exit code 1 if one was not accepted."""
    settings = settings_of(config, database=database)
    from recrawl.crawl.run.opening.assemble import check_settings

    check_settings(settings)
    chosen = _chosen(settings.notifications(), name)
    found: list[dict[str, Any]] = [
        {"name": one.name, "to": "mail" if one.mail else "webhook", "match": list(one.match)} for one in chosen
    ]
    if test:
        for row, error in zip(found, asyncio.run(_sent(settings, chosen)), strict=True):
            row |= {"sent": error is None, "error": error}
    if as_json:
        typer.echo(json.dumps({"notify": found}))
    else:
        for row in found:
            typer.echo(_line(row, test))
    if any(row.get("error") for row in found):
        raise typer.Exit(1)


def _chosen(all_: tuple[Notify, ...], name: str | None) -> list[Notify]:
    if not all_:
        raise ParameterError("the settings have no [[notify]] table")
    if name is not None and name not in [one.name for one in all_]:
        raise unknown("notify", name, [one.name for one in all_])
    return [one for one in all_ if name in (None, one.name)]


def _line(row: dict[str, Any], test: bool) -> str:
    if not test:
        return f"{row['name']:<16} {row['to']:<8} {' '.join(row['match'])}"
    return f"{row['name']:<16} {'sent' if row['sent'] else 'not sent: ' + row['error']}"


async def _sent(settings: Settings, chosen: list[Notify]) -> list[str | None]:
    """Why each test message was not accepted; None if it was."""
    from recrawl.crawl.deliver.notify.message import message_of
    from recrawl.crawl.deliver.subscribers import NotDelivered
    from recrawl.crawl.run.opening.notifiers import sender_of
    from recrawl.store.events import Event

    event = Event(
        0,
        f"test.{time.time_ns()}",
        "https://example.org/",
        "changed",
        time.time(),
        old_text="Test of recrawl\nthe old line",
        new_text="Test of recrawl\nthe new line",
    )
    found: list[str | None] = []
    for one in chosen:
        sender = sender_of(one, settings)
        try:
            await sender(message_of([event], diffs=one.diff))
            found.append(None)
        except NotDelivered as problem:
            found.append(str(problem))
        finally:
            await sender.close()
    return found
