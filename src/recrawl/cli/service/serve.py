"""``recrawl serve``: crawl, and answer by HTTP which page is next, for crawlers of others too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recrawl._system import loops
from recrawl.cli.shared.options.crawl_options import Config, Database, LogFormat, settings_file, settings_of
from recrawl.cli.shared.options.extras import need
from recrawl.cli.shared.options.own_server import print_sign_in
from recrawl.cli.shared.options.places import cluster_of
from recrawl.errors import ParameterError
from recrawl.logs import configure

if TYPE_CHECKING:
    from recrawl.crawl.config.settings import Settings

EPILOG = "Example:  recrawl serve --contact you@example.org\n\nExample:  recrawl serve --no-crawl --budget 20/s"
LISTEN = "127.0.0.1:8321"


def serve(
    no_crawl: Annotated[bool, typer.Option("--no-crawl", help="Fetch nothing: only decide for others.")] = False,
    listen: Annotated[str | None, typer.Option(help=f"Where to listen.  [default: {LISTEN}]")] = None,
    budget: Annotated[str | None, typer.Option(help="Requests allowed, such as 2/s or 100k/month.")] = None,
    delay: Annotated[str | None, typer.Option(help="Time between two requests to a host.  [default: 1 s]")] = None,
    contact: Annotated[str | None, typer.Option(help="How site owners can reach you.")] = None,
    allow_private: Annotated[bool | None, typer.Option("--allow-private", help="Also local addresses.")] = None,
    log_level: Annotated[
        str | None, typer.Option(help="Least level of log records.  [default: info]", metavar="LEVEL")
    ] = None,
    log_format: LogFormat = "text",
    config: Config = None,
    database: Database = None,
) -> None:
    """Serve a database by HTTP until SIGTERM or Ctrl-C; its pages are crawled too, unless others do that.

    Callers need a token: recrawl token add NAME --scope crawl. A cluster is crawled by its workers, never by the
    service.
    """
    configure(log_level or "info", log_format)
    words: dict[str, Any] = {"budget": budget, "delay": delay, "contact": contact, "allow_private": allow_private}
    read = partial(_settings, config, listen, database=database, **words)
    settings = read()
    need("crawl")
    need("serve")
    from recrawl import __version__
    from recrawl.crawl.run.opening.assemble import check_settings

    cluster = cluster_of(settings)
    if cluster is not None:
        if budget is not None:
            raise ParameterError("the budget of a cluster is that of all workers: recrawl cluster budget sets it")
        from recrawl.serve.cluster_service import serve_cluster

        asyncio.run(serve_cluster(cluster, settings, on_started=print_sign_in))
        return
    if not no_crawl:
        settings.agent(__version__)
    check_settings(settings)
    loops.run(_serve(read, settings_file(config), crawl=not no_crawl))


def _settings(config: Any, listen: str | None, **flags: Any) -> Settings:
    """The settings; a service listens in any case."""
    if listen is not None and not listen.strip():
        raise ParameterError(f"--listen is {listen!r}: must be an address and a port, such as {LISTEN}")
    found = settings_of(config, listen=listen, **flags)
    return found if found.listen.strip() else settings_of(config, listen=LISTEN, **flags)


async def _serve(read: Callable[[], Settings], file: Path | None, *, crawl: bool) -> None:
    from recrawl.cli.shared.options.interrupts import note_hangups, reload_on_hangup
    from recrawl.cli.shared.options.opening import opened
    from recrawl.crawl.run.opening.reload import TAKES_RELOAD
    from recrawl.desk import open_desk
    from recrawl.serve import Front, Service, serve_service
    from recrawl.serve.rehearsal import rehearse_service
    from recrawl.serve.running import keep_loaded

    settings, noted = read(), note_hangups()
    front = Front(settings.listen.strip(), settings.public_url)
    try:
        live, desk = await open_desk(settings, opened if crawl else None, prepare=rehearse_service)
    except BaseException:
        front.close()
        raise
    try:
        live.store.announce(TAKES_RELOAD)
        service = Service.of(live, desk)
        reload_on_hangup(lambda: live.reload(read), live.crawler.stop, noted)
        await live.crawler.components.load()
        keep_loaded()
        listening = front.handed_over()
        await serve_service(live, service, crawl=crawl, file=file, on_started=print_sign_in, listening=listening)
    finally:
        await live.close()
