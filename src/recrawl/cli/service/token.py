"""``recrawl token``: who may call a running crawl by HTTP."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.shared.options.command_classes import Command
from recrawl.cli.shared.options.crawl_options import (
    AsJson,
    Config,
    Database,
    settings_of,
)
from recrawl.cli.shared.options.options import split_commas
from recrawl.cli.shared.options.places import places_of
from recrawl.errors import ParameterError

if TYPE_CHECKING:
    from recrawl.crawl.config.settings import Settings
    from recrawl.crawl.signals.tokens import Token

ADD_EPILOG = "Example:  recrawl token add cms --scope signal"
LIST_EPILOG = "Example:  recrawl token list --json"
REMOVE_EPILOG = "Example:  recrawl token remove cms"

app = typer.Typer(no_args_is_help=True, help="Tokens of those who may call a running crawl by HTTP.")
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the token, and of its source of signals.")]


@app.command(name="add", epilog=ADD_EPILOG, cls=Command)
def add(
    name: Name,
    scope: Annotated[
        list[str] | None, typer.Option(help="What the token allows: read, signal, crawl, admin.  [default: signal]")
    ] = None,
    per_second: Annotated[
        float | None, typer.Option(help="Signals per second, on average.  [default: 2000]", min=0.001, max=1e6)
    ] = None,
    per_day: Annotated[
        float | None, typer.Option(help="Signals per day.  [default: 5000000]", min=1.0, max=1e9)
    ] = None,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it, this one time: only a hash of it is kept. A running crawl takes it within seconds."""
    settings = settings_of(config, database=database)
    from recrawl.crawl.signals.limits import Limit
    from recrawl.crawl.signals.tokens import MOST, new_token

    given = {"per_second": per_second, "per_day": per_day}
    limit = Limit(**{key: value for key, value in given.items() if value is not None})
    text, token = new_token(name, split_commas(scope or ["signal"]), time.time(), limit)
    known = _tokens(settings)
    if name in known:
        raise ParameterError(f"token {name} is there already: recrawl token remove {name} removes it")
    if len(known) >= MOST:
        raise ParameterError(f"{settings.database_name}: has {len(known)} tokens: at most {MOST} are kept")
    _set(settings, name, token.as_note())
    typer.echo(json.dumps({"name": name, "token": text, "scopes": list(token.scopes)}) if as_json else text)


@app.command(name="list", epilog=LIST_EPILOG, cls=Command)
def list_tokens(config: Config = None, database: Database = None, as_json: AsJson = False) -> None:
    """List the tokens: name, scopes and limits."""
    found = _tokens(settings_of(config, database=database))
    if as_json:
        typer.echo(json.dumps({"tokens": [_listed(token) for token in found.values()]}))
        return
    for token in found.values():
        limits = f"{token.limit.per_second:g}/s, {token.limit.per_day:g}/day"
        made = time.strftime("%Y-%m-%d", time.gmtime(token.made_at))
        typer.echo(f"{token.name}  {','.join(token.scopes)}  {limits}  made {made}")


@app.command(name="remove", epilog=REMOVE_EPILOG, cls=Command)
def remove(name: Name, config: Config = None, database: Database = None, as_json: AsJson = False) -> None:
    """Remove a token. A running crawl refuses it within seconds."""
    settings = settings_of(config, database=database)
    if name not in _tokens(settings):
        raise ParameterError(f"{settings.database_name}: has no token {name[:80]!r}")
    _set(settings, name, None)
    typer.echo(json.dumps({"removed": name}) if as_json else f"token {name} removed")


def _listed(token: Token) -> dict[str, Any]:
    return {name: value for name, value in token.as_note().items() if name != "hash"}


def _tokens(settings: Settings) -> dict[str, Token]:
    """The tokens of a database by name, with those that the running crawl has not taken yet."""
    from recrawl.crawl.signals.tokens import PREFIX, Token, Tokens

    with places_of(settings) as places, places.places[0].shared() as store:
        tokens, queued = Tokens.restore(store.notes(PREFIX)), store.commands()
    for _, command in queued:
        if "token" in command:
            note = command.get("note")
            tokens.set(command["token"], None if note is None else Token.restore(note))
    return {token.name: token for token in tokens}


def _set(settings: Settings, name: str, note: dict[str, Any] | None) -> None:
    """Write a token, or remove it; a running crawl does it."""
    from recrawl.crawl.run.commands import token_command
    from recrawl.crawl.signals.tokens import PREFIX

    with places_of(settings) as places:
        place = places.places[0]  # of a cluster, the shard that has its tokens
        store = place.exclusive()
        if store is None:
            with place.shared() as store:
                store.queue([token_command(name, note)])
        else:
            with store:
                store.save(notes={f"{PREFIX}{name}": note})
