"""What the commands of a live crawl share: options, settings, and the engine of a database."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.shared.options.extras import need
from recrawl.errors import ParameterError, StoreInUseError

if TYPE_CHECKING:
    from recrawl.crawl.config.settings import Settings
    from recrawl.engine import Engine
    from recrawl.store import BlockingStore, OwnedStore, Store

Config = Annotated[Path | None, typer.Option(help="File of settings.  [default: recrawl.toml, if there is one]")]
Database = Annotated[str | None, typer.Option(help="The database.  [default: recrawl.db]")]
LogLevel = Annotated[
    str, typer.Option(help="Least level of log records: debug, info, warning or error.", metavar="LEVEL")
]
LogFormat = Annotated[str, typer.Option(help="Log records as text or as lines of json.", metavar="text|json")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def settings_of(config: Path | None, **flags: Any) -> Settings:
    """The settings of file, environment and flags."""
    need("crawl")
    from recrawl.crawl.config.settings import Settings

    return Settings.read(config, os.environ, **flags)


def settings_file(config: Path | None) -> Path | None:
    """The file that settings are read from; None if there is none."""
    from recrawl.crawl.config.settings import FILE

    return config if config is not None else Path(FILE) if Path(FILE).is_file() else None


def check_importance(importance: float) -> None:
    """Raise ParameterError unless an importance can be used."""
    from recrawl.model.pages import MOST_IMPORTANT

    if not 0 <= importance <= MOST_IMPORTANT:
        raise ParameterError(f"importance is {importance:g}: must be a number from 0 to {MOST_IMPORTANT:g}")


async def engine_of(store: Store, settings: Settings, now: float | None = None) -> Engine:
    """The engine of a store, under these settings."""
    from recrawl.crawl.run.opening import assemble

    return await assemble.engine_of(store, settings, time.time() if now is None else now)


def shared_store(settings: Settings) -> BlockingStore[OwnedStore]:
    """The database for reading and for commands, also while a crawl runs."""
    from recrawl.store import BlockingStore, open_store

    return BlockingStore(open_store(settings.database, exclusive=False))


def exclusive_store(settings: Settings) -> BlockingStore[OwnedStore] | None:
    """The database for writing; None while a crawl has it."""
    from recrawl.store import BlockingStore, open_store

    try:
        return BlockingStore(open_store(settings.database, keep=settings.keep, events=settings.event_limits()))
    except StoreInUseError:
        return None
