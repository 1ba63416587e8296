"""For `failures_cluster.py`: hosts on loopback that log every request, and proxies in front of PostgreSQL."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class Asked:
    """A request as its server saw it; ``etag`` is of its answer and unlike all others."""

    at: float
    host: str
    worker: str
    path: str
    etag: str
    ended: float = field(default=float("inf"))


class Hosts:
    """Hosts 127.0.1.1, 127.0.1.2 … on one port. Every answer takes some time; half of the answers are changes."""

    def __init__(self, seed: int) -> None:
        self.asked: list[Asked] = []
        self.port = 0
        self._rng, self._texts = random.Random(seed), dict[str, int]()

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/{tail:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "0.0.0.0", 0)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]

    async def _answer(self, request: web.Request) -> web.Response:
        host = request.host.partition(":")[0]
        one = Asked(time.monotonic(), host, request.headers["user-agent"], request.path, f'"{len(self.asked)}"')
        self.asked.append(one)
        try:
            await asyncio.sleep(self._rng.uniform(0.0, 0.15))
        finally:
            one.ended = time.monotonic()
        if request.path == "/robots.txt":
            raise web.HTTPNotFound
        page = host + request.path
        self._texts[page] = self._texts.get(page, 0) + (self._rng.random() < 0.5)
        text = f"<main><p>{page} in state {self._texts[page]}</p></main>"
        return web.Response(text=text, content_type="text/html", headers={"ETag": one.etag})


class Proxy:
    """One worker's way to PostgreSQL. While it is cut, bytes stand still and no connection is made."""

    def __init__(self, goal: int) -> None:
        self.port, self._goal = 0, goal
        self._open = asyncio.Event()
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        self._open.clear()

    def mend(self, *, close: bool) -> None:
        """Let bytes pass again, those that stood still as well; or close the connections, and make new ones."""
        if close:
            for writer in list(self._writers):
                writer.transport.abort()
        self._open.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._open.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self._goal)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, back}
        await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        self._writers -= {writer, back}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while data := await reader.read(1 << 16):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
        with suppress(OSError):
            writer.close()


class Side:
    """Hosts and proxies in a thread with an event loop of their own."""

    def __init__(self, goal: int, n_proxies: int, seed: int) -> None:
        self._loop = asyncio.new_event_loop()
        self.hosts = Hosts(seed)
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.call(self.hosts.start())
        self.proxies = [self.call(_made(goal)) for _ in range(n_proxies)]

    def call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def soon(self, call: Any, *args: Any) -> None:
        self._loop.call_soon_threadsafe(call, *args)


async def _made(goal: int) -> Proxy:
    proxy = Proxy(goal)
    await proxy.start()
    return proxy
