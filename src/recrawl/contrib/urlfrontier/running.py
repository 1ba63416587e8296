"""Running: the queue file, the desk if a crawl is managed, and the server, from start to end."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from recrawl.contrib.urlfrontier.api.server import PORT, GrpcServer
from recrawl.contrib.urlfrontier.api.service import Service, handlers_of
from recrawl.contrib.urlfrontier.arrivals import warm_up
from recrawl.contrib.urlfrontier.crawls import Crawls
from recrawl.contrib.urlfrontier.frontier import Frontier
from recrawl.contrib.urlfrontier.items import crawl_name
from recrawl.contrib.urlfrontier.managed.managed import Managed
from recrawl.contrib.urlfrontier.queue_file import QueueFile
from recrawl.crawl.clock import Clock, SystemClock
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.assemble import LiveCrawl
from recrawl.desk import Desk, open_desk
from recrawl.errors import ParameterError
from recrawl.store.opening import is_postgres

MODES = ("strict", "managed")
SUFFIX = ".urlfrontier"  # of the queue file beside a database
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Modes:
    """Which crawl IDs are managed: those that are named, and all others if ``default`` says so."""

    default: str = "strict"
    strict: frozenset[str] = frozenset()
    managed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, default: str = "strict", strict: Iterable[str] = (), managed: Iterable[str] = ()) -> Modes:
        """Modes by crawl IDs as clients write them."""
        if default not in MODES:
            raise ParameterError(f"mode is {default!r}: must be strict or managed")
        named = [frozenset(map(crawl_name, names)) for names in (strict, managed)]
        for both in sorted(named[0] & named[1]):
            raise ParameterError(f"crawl {both!r} is both strict and managed: name it once")
        return cls(default, *named)

    def is_managed(self, crawl: str) -> bool:
        """Whether the engine decides for a crawl."""
        return crawl in self.managed or (self.default == "managed" and crawl not in self.strict)

    @property
    def any_managed(self) -> bool:
        """Whether an engine is needed."""
        return self.default == "managed" or bool(self.managed)


def queue_path(database: str) -> Path:
    """Where the queues of a database are kept: beside it, or here if it is on a server."""
    return Path(f"queues{SUFFIX}") if is_postgres(database) else Path(database + SUFFIX)


class FrontierService:
    """A service on a queue file and, for managed crawls, a desk; `start` and `close` are awaited."""

    def __init__(self, queues: str | Path, modes: Modes, desk: Desk | None = None, clock: Clock | None = None) -> None:
        self._file = QueueFile(queues)
        clock = clock or (SystemClock() if desk is None else desk.components.clock)
        frontier = Frontier(self._file, clock, modes.is_managed)
        self.crawls = Crawls(frontier, None if desk is None else Managed(frontier, desk))
        self._server: GrpcServer | None = None
        self._service: Service | None = None
        self._closed = False

    async def start(self, server: GrpcServer) -> None:
        """Take up what an earlier run left, and serve."""
        await self.crawls.open()
        warm_up()
        self._server, self._service = server, Service(self.crawls, server.address)
        await server.start(handlers_of(self._service))

    async def close(self, grace: float | None = None) -> None:
        """Serve no more, write what was put, and close the file."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._server is not None:
                await (self._server.close() if grace is None else self._server.close(grace))
            if self._service is not None:
                await self._service.close()
            await self.crawls.close()
        finally:
            self._file.close()


async def serve_frontier(
    settings: Settings,
    modes: Modes,
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    queues: Path | None = None,
    on_started: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve until SIGTERM or SIGINT."""
    server = GrpcServer(host, port)
    live: LiveCrawl | None = None
    desk: Desk | None = None
    try:
        if modes.any_managed:
            live, desk = await open_desk(settings)
        service = FrontierService(queues or queue_path(settings.database), modes, desk)
        try:
            await _run(service, server, live, on_started)
        finally:
            await service.close()
    finally:
        with suppress(Exception):
            await server.close(0.0)
        if live is not None:
            await live.close()


async def _run(
    service: FrontierService, server: GrpcServer, live: LiveCrawl | None, on_started: Callable[[str], None]
) -> None:
    """Serve until a signal comes, or until the crawl of the desk ends."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    running = None if live is None else asyncio.create_task(live.crawler.run(crawl=False))
    if running is not None:
        running.add_done_callback(lambda _: stopped.set())
    for number in _SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    try:
        await service.start(server)
        gc.freeze()  # what was loaded stays: no later collection looks at it
        on_started(server.address)
        await stopped.wait()
        await service.close()
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        if live is not None and running is not None:
            live.crawler.stop()
            await running
