"""Servers on loopback: one that answers by a function, one that speaks whatever bytes it is given."""

import asyncio
import socket
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.abc import AbstractResolver

from recrawl.crawl.http.fetcher import HttpFetcher, Limits

AGENT = "recrawl-test/1 (+mailto:crawl@example.org)"


@asynccontextmanager
async def serving(answer, *, ssl=None):
    """The origin of a server on which every GET is answered by ``answer(request)``."""
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ssl)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"{'https' if ssl else 'http'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def speaking(talk):
    """The origin of a server that hands each connection to ``talk(reader, writer)``, once the request has come."""

    async def connected(reader, writer):
        try:
            await reader.read(1 << 16)
            await talk(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.close()


def sending(data, *, then=None):
    """A talk that sends bytes and ends, or goes on with ``then(writer)``."""

    async def talk(reader, writer):
        writer.write(data)
        await writer.drain()
        if then is not None:
            await then(writer)

    return talk


@asynccontextmanager
async def fetching(**options):
    """A fetcher that may connect to loopback, closed at the end."""
    fetcher = HttpFetcher(AGENT, **{"allow_private": True, "limits": Limits(total=60.0), **options})
    try:
        yield fetcher
    finally:
        await fetcher.close()


class Held:
    """A fetcher on real sockets for a clock moved by hand: the clock stands still while a fetch is on its way."""

    def __init__(self, fetcher, clock):
        self._fetcher, self._clock = fetcher, clock

    async def fetch(self, url, **options):
        with self._clock.hold():
            return await self._fetcher.fetch(url, **options)

    async def close(self):
        pass


class Names(AbstractResolver):
    """A resolver that knows the names it is given; a lookup takes the next of a name's answers, the last for good."""

    def __init__(self, **names):
        self._names = {name.replace("_", "."): list(answers) for name, answers in names.items()}
        self.asked = []

    async def resolve(self, host, port=0, family=socket.AF_UNSPEC):
        self.asked.append(host)
        if host not in self._names:
            raise OSError("no such name")
        answers = self._names[host]
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                "proto": 0,
                "flags": 0,
            }
            for address in addresses
        ]

    async def close(self):
        pass
