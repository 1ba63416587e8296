"""The hostile web on loopback, in a process of its own: ``python -m crawl.hostile.web`` from the folder of tests.

It prints one line of JSON when it listens: the port of each host, of the good hosts and of the trap. It ends when its
standard input does, and says then how often the trap and the pages of the good hosts were asked for.
"""

import asyncio
import json
import os
import socket
import ssl
import sys
import time
from contextlib import suppress
from pathlib import Path

from . import talks
from .cases import CASES, TRAP

HERE = Path(__file__).parent


class Counting:
    """How often good pages were asked for, and the trap."""

    def __init__(self):
        self.good, self.trapped = [], 0


def _certificate(name):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(HERE / name)
    return context


async def _serve(one, trap):
    """Let a host listen; its port."""

    async def connected(reader, writer):
        with suppress(
            ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ssl.SSLError
        ):
            async with asyncio.timeout(30):
                if one.listens == "mute":
                    await asyncio.sleep(30)
                hasty = one.listens == "hastily"
                head = b"GET / " + await reader.read(100) if hasty else await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].decode()
                robots = path.startswith("/robots.txt")
                await (one.robots if robots else one.talk)(_Writer(writer, trap), path)
        writer.close()

    tls = None if one.certificate is None else _certificate(one.certificate)
    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    return server, server.sockets[0].getsockname()[1]


class _Writer:
    """A writer that puts the trap's port into what is said."""

    def __init__(self, inner, trap):
        self._inner, self._trap = inner, str(trap).encode()

    def write(self, data):
        self._inner.write(data.replace(b":TRAP/", b":" + self._trap + b"/") if b"TRAP" in data[:300] else data)

    def __getattr__(self, name):
        return getattr(self._inner, name)


def _full():
    """A port whose queue of connections is full, since nobody takes them."""
    taker = socket.socket()
    taker.bind(("127.0.0.1", 0))
    taker.listen(0)
    waiting = []
    for _ in range(3):
        one = socket.socket()
        one.setblocking(False)
        with suppress(BlockingIOError):
            one.connect(taker.getsockname())
        waiting.append(one)
    return (taker, waiting), taker.getsockname()[1]


def _closed():
    """A port that refuses connections, and that nobody else can take meanwhile."""
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    return held, held.getsockname()[1]


async def _listen(count):
    async def trapped(reader, writer):
        count.trapped += 1
        writer.close()

    trap = await asyncio.start_server(trapped, TRAP, 0)
    trap_port = trap.sockets[0].getsockname()[1]
    kept, ports = [trap], {}
    for one in CASES:
        if one.listens in ("full", "not"):
            held, port = _full() if one.listens == "full" else _closed()
        else:
            held, port = await _serve(one, trap_port)
        kept.append(held)
        ports[one.host] = port
    return kept, ports


async def _good(count):
    """A server for all good hosts: pages that change every second."""

    async def connected(reader, writer):
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].decode()
                if path == "/robots.txt":
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    continue
                count.good.append(time.time())
                body = f"<p>{path} {int(time.time())}</p>".encode()
                length = f"Content-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                writer.write(b"HTTP/1.1 200 OK\r\n" + length + body)
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


async def main(which):
    count = Counting()
    if which == "good":
        kept, port = await _good(count)
        said = {"port": port}
    else:
        for bomb in (talks.gzip_bomb, talks.brotli_bomb, talks.zstd_bomb, lambda: talks.gzip_bomb(3)):
            bomb()  # they take long to make
        kept, ports = await _listen(count)
        said = {"ports": ports}
    print(json.dumps(said), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    print(json.dumps({"good": count.good, "trapped": count.trapped, "kept": len([kept])}), flush=True)


if __name__ == "__main__":
    asyncio.new_event_loop().run_until_complete(main(sys.argv[1]))
    os._exit(0)  # with talks that never end
