"""A service from start to end: its server ends before its crawl, so that all that was acknowledged is written."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable
from pathlib import Path
from socket import socket

from recrawl.crawl.run.opening.assemble import LiveCrawl
from recrawl.serve.api.service import Service
from recrawl.serve.server import HttpServer, serve_crawl

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_NEW = 20_000  # objects after which Python looks for cycles among them; a batch of calls makes hundreds, and no cycles


def keep_loaded() -> None:
    """What was loaded stays: no later search for cycles looks at it, which takes long with many pages."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW)


async def serve_service(
    live: LiveCrawl,
    service: Service,
    *,
    crawl: bool,
    file: Path | None = None,
    on_started: Callable[[HttpServer], None] | None = None,
    listening: socket | None = None,
) -> None:
    """Serve, and crawl if asked, until SIGTERM or SIGINT; ``file`` is that of the settings.

    ``listening`` is a socket to serve on, instead of the address in the settings.
    """
    listen = live.settings.listen.strip() if listening is None else listening
    server = await serve_crawl(live, listen, file, service)
    await run_service(service, server, crawl=crawl, on_started=on_started)


async def run_service(
    service: Service, server: HttpServer, *, crawl: bool, on_started: Callable[[HttpServer], None] | None = None
) -> None:
    """The same with a server that has started."""
    served, loop = service.crawl, asyncio.get_running_loop()
    stopping: list[asyncio.Task[None]] = []

    async def stop() -> None:
        await server.close()
        await service.close()
        served.stop()

    def on_signal() -> None:
        if not stopping:
            stopping.append(asyncio.create_task(stop()))

    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal)
    try:
        if on_started is not None:
            on_started(server)
        await served.run(crawl=crawl)
    finally:
        on_signal()
        await asyncio.gather(*stopping)
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
