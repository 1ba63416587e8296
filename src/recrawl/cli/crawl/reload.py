"""``recrawl reload``: let the running crawl read its settings and rules again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl.cli.shared.options.crawl_options import AsJson, Config, Database, settings_of, shared_store
from recrawl.cli.shared.options.places import cluster_of
from recrawl.errors import ParameterError, StoreError

if TYPE_CHECKING:
    from recrawl.cluster.tables import Cluster
    from recrawl.crawl.config.settings import Settings
    from recrawl.store import BlockingStore, OwnedStore

EPILOG = "Example:  recrawl reload\n\nExample:  recrawl reload --database news.db --json"
_POLL = 0.05  # seconds between two looks for the answer


def reload(
    wait: Annotated[float, typer.Option(help="Seconds to wait for the answer.", min=0.0, max=3600.0)] = 30.0,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Let the running crawl, or all workers of a cluster, read settings and rules again, and print what changed."""
    settings = settings_of(config, database=database)
    cluster = cluster_of(settings)
    if cluster is not None:
        _of_workers(cluster, settings, wait, as_json)
        return
    found = ask(settings, wait)
    if as_json:
        typer.echo(json.dumps({"database": settings.database_name, **found}))
        return
    _print(f"process {found['pid']}", found["changed"], found["needs_restart"])


def _print(who: str, changed: Sequence[str], needs_restart: Sequence[str]) -> None:
    names = ", ".join(changed)
    typer.echo(f"{who} goes on with {f'other settings: {names}' if names else 'the same settings'}")
    if needs_restart:
        typer.echo(f"changed, but only used after a restart: {', '.join(needs_restart)}")


def _of_workers(cluster: Cluster, settings: Settings, wait: float, as_json: bool) -> None:
    """Each worker reads its own file; the command fails if one keeps its settings or does not answer."""
    from recrawl.cluster.reloading import order_reload

    answers = asyncio.run(order_reload(cluster, wait))
    if not answers:
        raise StoreError(f"{settings.database_name}: no worker is running; recrawl run reads the settings at its start")
    rows = [
        {"worker": one.worker, "host": one.host, "pid": one.pid, **({} if one.done is None else asdict(one.done))}
        for one in answers
    ]
    if as_json:
        typer.echo(json.dumps({"database": settings.database_name, "workers": rows}))
    wrong = []
    for one in answers:
        if one.done is None:
            wrong.append(f"worker {one.worker} did not answer within {wait:g} s")
        elif one.done.error is not None:
            wrong.append(f"worker {one.worker} keeps its settings: {one.done.error}")
        elif not as_json:
            _print(f"worker {one.worker}", one.done.changed, one.done.needs_restart)
    if wrong:
        raise ParameterError("; ".join(wrong))


def ask(settings: Settings, wait: float) -> dict[str, Any]:
    """Send SIGHUP to the crawl that has the database, and wait for what it did."""
    from recrawl.crawl.run.opening.reload import TAKES_RELOAD

    name = settings.database_name
    with shared_store(settings) as store:
        holder = store.store.holder()
        if holder is None:
            raise StoreError(f"{name}: no crawl is running; recrawl run reads the settings when it starts")
        if holder.pid is None or TAKES_RELOAD not in holder.announced:
            who = "another process" if holder.pid is None else f"process {holder.pid}"
            raise StoreError(f"{name}: in use by {who}, which is not a crawl that can reload, or is not loaded yet")
        if holder.host not in (None, socket.gethostname()):
            raise StoreError(f"{name}: in use by process {holder.pid} on {holder.host}; run this command there")
        before, end = _last(store)["number"], time.monotonic() + wait
        os.kill(holder.pid, signal.SIGHUP)
        while (found := _last(store))["number"] == before:
            if time.monotonic() > end:
                raise StoreError(f"{name}: process {holder.pid} did not answer within {wait:g} s")
            time.sleep(_POLL)
    if found["error"] is not None:
        raise ParameterError(f"process {holder.pid} keeps its settings: {found['error']}")
    return {"pid": holder.pid, "changed": found["changed"], "needs_restart": found["needs_restart"]}


def _last(store: BlockingStore[OwnedStore]) -> dict[str, Any]:
    from recrawl.crawl.run.opening.reload import NOTE

    found: dict[str, Any] = store.notes(NOTE).get(NOTE, {"number": 0})
    return found
