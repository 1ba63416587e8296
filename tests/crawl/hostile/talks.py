"""What hostile servers say: each talk is given a connection's writer and the path that was asked for."""

import asyncio
import gzip
import itertools
import socket
import struct
import zlib
from functools import cache

import brotli
from backports import zstd

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"
PAGE = HEAD + b"\r\n<p>a page</p>"
MB = 1 << 20


def say(data):
    """Send bytes and close."""

    async def talk(writer, path):
        writer.write(data() if callable(data) else data)
        await writer.drain()

    return talk


def answer(*headers, status="200 OK", body=b"<p>a page</p>", kind="text/html"):
    """A whole answer with some headers."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def drip(data, rest=b"x", pause=0.2):
    """Send bytes, then more and more of the rest, slowly and for ever."""

    async def talk(writer, path):
        writer.write(data)
        for k in itertools.count():
            await asyncio.sleep(pause)
            writer.write(rest(k) if callable(rest) else rest)
            await writer.drain()

    return talk


def flood(data, rest):
    """Send bytes, then the rest for ever, as fast as it is taken."""

    async def talk(writer, path):
        writer.write(data)
        while True:
            writer.write(rest)
            await writer.drain()

    return talk


async def silent(writer, path):
    """Say nothing."""
    await asyncio.sleep(60)


async def reset(writer, path):
    """Send half an answer, then reset the connection."""
    writer.write(PAGE[:-5])
    await writer.drain()
    abort(writer)


def abort(writer):
    """End a connection with a reset."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class ResetAtEveryByte:
    """Each answer ends with a reset one byte later than the one before."""

    whole = HEAD + b"Content-Length: 13\r\n\r\n<p>a page</p>"

    def __init__(self):
        self.position = 0

    async def __call__(self, writer, path):
        writer.write(self.whole[: self.position])
        self.position = (self.position + 1) % len(self.whole)
        await writer.drain()
        abort(writer)


def moved(where, status="302 Found"):
    """A redirect to what a function of the path says."""

    async def talk(writer, path):
        writer.write(answer(f"Location: {where(path)}", status=status, body=b""))
        await writer.drain()

    return talk


def next_number(path):
    """/7 leads to /8, anything else to /0."""
    last = path.rpartition("/")[2]
    return f"/{int(last) + 1 if last.isdigit() else 0}"


@cache
def gzip_bomb(levels=1, size=100 * MB):
    """Bytes that unpack to a lot; packed as often as asked."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = b"".join(packer.compress(bytes(MB)) for _ in range(size // MB)) + packer.flush()
    for _ in range(levels - 1):
        data = gzip.compress(data)
    return data


@cache
def brotli_bomb(size=100 * MB):
    """The same for brotli."""
    packer = brotli.Compressor(quality=4)
    return b"".join(packer.process(bytes(MB)) for _ in range(size // MB)) + packer.finish()


@cache
def zstd_bomb(size=100 * MB):
    """The same for zstd."""
    packer = zstd.ZstdCompressor()
    return b"".join(packer.compress(bytes(MB)) for _ in range(size // MB)) + packer.flush()


def coded(coding, data):
    """An answer with a content coding."""
    return say(lambda: answer(f"Content-Encoding: {coding}", body=data() if callable(data) else data))


def headers(n, line):
    """A page with n headers of a kind."""
    return say(lambda: HEAD + b"".join(line(k) for k in range(n)) + b"\r\n<p>a page</p>")
