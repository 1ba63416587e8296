"""The server: an app on a socket, in the event loop of the crawl. Signals of the process stay with the crawl."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import uvicorn

from recrawl._system.loops import idle_of_loop
from recrawl.crawl.config.listening import listen_address
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.config.shares import share_of
from recrawl.crawl.run.opening.assemble import LiveCrawl
from recrawl.crawl.run.opening.components import Components
from recrawl.errors import ParameterError
from recrawl.logs import event
from recrawl.serve.api.service import Service
from recrawl.serve.app import Context, build_app
from recrawl.serve.connection import Connection
from recrawl.serve.crawls.local import LocalCrawl
from recrawl.serve.dashboard.board import Dashboard
from recrawl.serve.metrics import CrawlCollector
from recrawl.serve.receive.share import LoopShare, LoopTimes

_GRACE = 5  # seconds that requests have to end after close()
_BACKLOG = 512  # connections that wait to be accepted
_LARGEST_HEAD = 64 << 10  # bytes of a request line and headers
log = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    """Leaves SIGTERM and SIGINT to the crawl."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield


class HttpServer:
    """A server that runs until ``close``; `url` is where it listens."""

    def __init__(
        self,
        app: Any,
        listen: str | socket.socket,
        dashboard: Dashboard | None = None,
        *,
        quiet: bool = False,
        share: LoopShare | None = None,
    ) -> None:
        self._socket = bound_socket(listen) if isinstance(listen, str) else listen
        self.dashboard, self._level = dashboard, logging.DEBUG if quiet else logging.INFO
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            http=cast(type[asyncio.Protocol], partial(Connection, share=share)),
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE,
            h11_max_incomplete_event_size=_LARGEST_HEAD,
        )
        self._server = _Server(config)
        self._running: asyncio.Task[None] | None = None
        _mute()

    @property
    def url(self) -> str:
        """Where the server listens."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def sign_in_url(self) -> str | None:
        """A one-time link that opens the dashboard; None if tokens open it, or if others reach the server."""
        path = None if self.dashboard is None else self.dashboard.sign_in_path()
        return None if path is None else self.url + path

    async def start(self) -> None:
        """Accept connections from now on."""
        url = self.url
        self._running = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:
            if self._running.done():
                await self._running
            await asyncio.sleep(0.001)
        event(log, self._level, "serve.started", url=url)

    async def close(self) -> None:
        """Accept no more connections, answer the requests that came, and end."""
        self._server.should_exit = True
        if self._running is not None:
            with suppress(asyncio.CancelledError):
                await self._running
        if self.dashboard is not None:
            await self.dashboard.close()
        self._socket.close()


def bound_socket(listen: str) -> socket.socket:
    """A socket on an address such as ``127.0.0.1:8321``."""
    host, port = listen_address(listen)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as problem:
        raise ParameterError(f"listen {listen}: {problem.strerror or problem}") from None


async def serve_crawl(
    live: LiveCrawl, listen: str | socket.socket, file: Path | None = None, service: Service | None = None
) -> HttpServer:
    """Serve the HTTP interface of a crawl, at an address or on a socket that listens already.

    ``file`` is that of the settings of the crawl, which the dashboard can change. With a ``service``, crawlers of
    others are served too.
    """
    crawl = LocalCrawl(live) if service is None else service.crawl
    components, dashboard = live.crawler.components, Dashboard(crawl, file)
    context = Context(
        crawl,
        components.inbox,
        components.tokens,
        live.settings.public_url,
        components.receivers,
        dashboard,
        service,
        CrawlCollector(components),
        share_for(components, live.settings),
        crawl.why_not_ready,
    )
    return await started(context, listen)


def share_for(components: Components, settings: Settings) -> LoopShare | None:
    """The share of the running loop's time that signals may take; None: any, or the loop does not know its own time."""
    share, idle = share_of(settings.signal_share, "signal_share"), idle_of_loop()
    if share == 0.0 or idle is None:
        return None

    def count() -> None:
        components.counters.turned_away += 1

    found = LoopShare(share, LoopTimes(idle), on_turned_away=count, lapsed=lambda: components.budget.lapsed)
    components.inbox.charge = found.charge
    return found


async def started(context: Context, listen: str | socket.socket) -> HttpServer:
    """A server of an app that accepts connections."""
    server = HttpServer(build_app(context), listen, context.dashboard, share=context.share)
    await server.start()
    return server


def _mute() -> None:
    """The server's own records name addresses and requests: none of them is logged."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [logging.NullHandler()], False
