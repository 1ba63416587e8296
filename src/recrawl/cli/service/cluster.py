"""``recrawl cluster``: a crawl on several machines that share one PostgreSQL database."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import typer

from recrawl.cli.shared.options.command_classes import Command
from recrawl.cli.shared.options.crawl_options import AsJson, Config, Database, LogFormat, settings_of
from recrawl.cli.shared.options.extras import need
from recrawl.cli.shared.options.places import need_cluster
from recrawl.errors import ParameterError
from recrawl.logs import configure
from recrawl.model.spans import format_span

CREATE_EPILOG = "Example:  recrawl cluster create --database postgresql://db.example/crawl --shards 64 --budget 20/s"
STATUS_EPILOG = "Example:  recrawl cluster status --json"
BUDGET_EPILOG = "Example:  recrawl cluster budget 50/s"
RAY_EPILOG = "Example:  recrawl cluster ray --workers 8 --address auto"
DRAIN_EPILOG = "Example:  recrawl cluster drain crawler-2-4711"

app = typer.Typer(no_args_is_help=True, help="A crawl on several machines that share one PostgreSQL database.")


@app.command(name="create", epilog=CREATE_EPILOG, cls=Command)
def create(
    shards: Annotated[int, typer.Option(help="Number of shards; it cannot be changed.", min=1, max=4096)] = 64,
    budget: Annotated[str | None, typer.Option(help="Requests allowed of all workers together, such as 20/s.")] = None,
    lease: Annotated[
        float, typer.Option(help="Seconds for which a worker has a shard before it must renew.", min=1.5, max=600.0)
    ] = 5.0,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make a cluster: empty shards in schemas of a PostgreSQL database. Every recrawl run on it is a worker."""
    settings = settings_of(config, database=database, budget=budget)
    from recrawl.store.postgres.address import Address, is_postgres

    if not is_postgres(settings.database):
        raise ParameterError(f"{settings.database_name}: a cluster needs a PostgreSQL database: postgresql://…")
    need("postgres")
    from recrawl.cluster import tables

    cluster = asyncio.run(tables.create(Address.parse(settings.database), shards, settings.budget, seconds=lease))
    found = {"database": settings.database_name, "shards": cluster.shards, "budget": cluster.budget, "lease": lease}
    text = f"cluster of {cluster.shards} shards in {settings.database_name}, budget {cluster.budget}"
    typer.echo(json.dumps(found) if as_json else text)


@app.command(name="status", epilog=STATUS_EPILOG, cls=Command)
def status(config: Config = None, database: Database = None, as_json: AsJson = False) -> None:
    """Show the workers, which shards they have, and the shares of the budget."""
    from recrawl.cluster.overview import overview

    found = asyncio.run(overview(need_cluster(settings_of(config, database=database))))
    if as_json:
        typer.echo(json.dumps(found))
        return
    for line in _status_lines(found):
        typer.echo(line)


def _status_lines(found: dict[str, Any]) -> list[str]:
    shards = found["shards"]
    owned = sum(one["worker"] is not None for one in shards)
    lines = [
        f"{'shards':<26}{len(shards)}, {owned} with a worker",
        f"{'pages':<26}{sum(one['pages'] or 0 for one in shards)}",
        f"{'budget':<26}{found['budget']}",
        f"{'in force, reserved':<26}{found['rate']:.4g}/s, {found['reserved']:.4g}/s",
        f"{'controller':<26}{found['controller'] or 'none'}",
    ]
    if found["pass"] is not None:
        lines.append(f"{'pass':<26}{found['pass']['number']}, {found['pass']['left']} shards left")
    for one in found["workers"]:
        state = "draining" if one["draining"] else "works" if one["live"] else "not seen"
        text = f"{one['shards']} shards, {one['rate']:.4g}/s, {state}, seen {format_span(one['seen_ago'])} ago"
        lines.append(f"{'worker':<26}{one['name']}: {text}")
    return lines


@app.command(name="budget", epilog=BUDGET_EPILOG, cls=Command)
def budget(
    value: Annotated[
        str | None, typer.Argument(metavar="[BUDGET]", help="The new budget; without it the present one is printed.")
    ] = None,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Print or set the budget of all workers together. Workers take a new one over within a few leases."""
    settings = settings_of(config, database=database, budget=value)
    cluster = need_cluster(settings)
    from recrawl.cluster.overview import set_budget

    if value is not None:
        asyncio.run(set_budget(cluster, value))
    found = {"database": settings.database_name, "budget": cluster.budget if value is None else value}
    typer.echo(json.dumps(found) if as_json else found["budget"])


@app.command(name="drain", epilog=DRAIN_EPILOG, cls=Command)
def drain(
    worker: Annotated[str, typer.Argument(metavar="WORKER", help="Name of a worker, as recrawl cluster status shows.")],
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Let a worker save everything, give its shards to the others, and end."""
    settings = settings_of(config, database=database)
    from recrawl.cluster.overview import drain as drain_worker

    asyncio.run(drain_worker(need_cluster(settings), worker))
    found = {"database": settings.database_name, "draining": worker}
    typer.echo(json.dumps(found) if as_json else f"{worker} gives its shards to others and ends")


@app.command(name="ray", epilog=RAY_EPILOG, cls=Command)
def ray(
    workers: Annotated[int, typer.Option(help="Number of workers.", min=1, max=1000)],
    address: Annotated[str, typer.Option(help="Address of the Ray cluster: HOST:PORT, auto, or local.")] = "local",
    duration: Annotated[str | None, typer.Option("--for", help="How long to run, such as 90s or 8h.")] = None,
    contact: Annotated[str | None, typer.Option(help="How site owners can reach you.")] = None,
    allow_private: Annotated[bool | None, typer.Option("--allow-private", help="Also local addresses.")] = None,
    log_level: Annotated[str, typer.Option(help="Least level of log records.", metavar="LEVEL")] = "info",
    log_format: LogFormat = "text",
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Run workers as actors of a Ray cluster, until --for, SIGTERM or Ctrl-C; another is started for each lost one."""
    configure(log_level, log_format)
    settings = settings_of(config, database=database, contact=contact, allow_private=allow_private)
    cluster = need_cluster(settings)
    need("ray")
    from recrawl import __version__
    from recrawl.crawl.config.rules import span

    settings.agent(__version__)
    seconds = None if duration is None else span(duration, "--for")
    found = asyncio.run(_work_on_ray(cluster, settings, workers, address, seconds))
    if as_json:
        typer.echo(json.dumps(found))
        return
    for name, value in found.items():
        typer.echo(f"{name.replace('_', ' '):<26}{value}")


async def _work_on_ray(
    cluster: Any, settings: Any, workers: int, address: str, seconds: float | None
) -> dict[str, Any]:
    from recrawl.cli.shared.options.interrupts import stop_on_signals
    from recrawl.cli.shared.options.opening import worker_of
    from recrawl.contrib.ray import RayWorkers, connected

    with connected(address):
        team = RayWorkers(cluster, settings, workers, build=worker_of)
        return await team.run(seconds, on_start=lambda: stop_on_signals(team))
