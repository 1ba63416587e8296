"""``recrawl urlfrontier``: serve the URL Frontier API, for crawlers such as StormCrawler."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from recrawl.cli.shared.options.crawl_options import Config, Database, LogFormat, settings_of
from recrawl.cli.shared.options.extras import need
from recrawl.errors import ParameterError
from recrawl.logs import configure

EPILOG = (
    "Example:  recrawl urlfrontier --port 7071\n\n"
    "Example:  recrawl urlfrontier --managed news --budget 20/s --database news.db"
)
PORT = 7071


def urlfrontier(
    port: Annotated[int, typer.Option(help="The port to listen on; 0: any that is free.")] = PORT,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    managed: Annotated[
        list[str] | None, typer.Option(help="A crawl ID for which recrawl decides; may be repeated.", metavar="ID")
    ] = None,
    strict: Annotated[
        list[str] | None,
        typer.Option(help="A crawl ID whose queues are ordered by the client's dates; may be repeated.", metavar="ID"),
    ] = None,
    mode: Annotated[
        str, typer.Option(help="What crawl IDs are that are not named.", metavar="strict|managed")
    ] = "strict",
    queues: Annotated[
        Path | None, typer.Option(help="File of the queues.  [default: the database with .urlfrontier]")
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(help="Serve nothing: check the published rules against a service.", metavar="HOST:PORT"),
    ] = None,
    budget: Annotated[str | None, typer.Option(help="Requests allowed, such as 2/s or 100k/month.")] = None,
    delay: Annotated[str, typer.Option(help="Time between two URLs of a host; clients wait themselves.")] = "0 s",
    log_level: Annotated[str, typer.Option(help="Least level of log records.", metavar="LEVEL")] = "info",
    log_format: LogFormat = "text",
    config: Config = None,
    database: Database = None,
) -> None:
    """Serve the URL Frontier API by gRPC until SIGTERM or Ctrl-C.

    Budget, delay and database are those of managed crawls.
    """
    configure(log_level, log_format)
    need("urlfrontier")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # the command says itself what went wrong
    from recrawl.contrib.urlfrontier import Modes

    modes = Modes.of(mode, strict or (), managed or ())
    if check is not None:
        raise typer.Exit(_check(check, managed=mode == "managed"))
    if not 0 <= port <= 65535:
        raise ParameterError(f"--port is {port}: must lie between 0 and 65535")
    settings = settings_of(config, budget=budget, delay=delay, host_concurrency=0, database=database)
    from recrawl.contrib.urlfrontier import serve_frontier
    from recrawl.crawl.run.opening.assemble import check_settings

    check_settings(settings)
    asyncio.run(serve_frontier(settings, modes, host=host, port=port, queues=queues, on_started=_print_address))


def _print_address(address: str) -> None:
    typer.echo(f"URL Frontier at {address}", err=True)


def _check(address: str, *, managed: bool) -> int:
    """Check a service and print what holds; the exit code."""
    from recrawl._system.sockets import knock
    from recrawl.contrib.urlfrontier.testing import check_address

    knock(address)
    results = asyncio.run(check_address(address, managed=managed))
    for result in results:
        typer.echo(f"{'ok' if result.problem is None else 'FAILED':6}  {result.rule}")
        if result.problem is not None:
            typer.echo(f"        {result.problem}")
    return 0 if all(result.problem is None for result in results) else 1
