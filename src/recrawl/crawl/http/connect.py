"""Connections to allowed addresses only: names are filtered as they resolve, sockets checked before they connect."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aiohttp import ClientPayloadError
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler

from recrawl.crawl.http.ip_filter import is_public

_LOOKUPS = 32  # names looked up at a time


class ForbiddenAddress(OSError):
    """An address that may not be connected to."""


class SystemResolver(AbstractResolver):
    """The system's lookup, in its own threads: slow name servers delay nothing else.

    Names under .localhost are this machine (RFC 6761), also where the system does not know them.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="recrawl-dns")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of a name, IPv4 and IPv6."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _lookup, host, port, family)
        return [
            ResolveResult(hostname=host, host=address, port=port, family=kind, proto=0, flags=socket.AI_NUMERICHOST)
            for kind, address in found
        ]

    async def close(self) -> None:
        """Let the threads end."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _lookup(host: str, port: int, family: socket.AddressFamily) -> list[tuple[socket.AddressFamily, str]]:
    if host.endswith(".localhost"):
        host, family = "127.0.0.1", socket.AF_INET
    found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
    return list(dict.fromkeys((kind, str(address[0])) for kind, _, _, _, address in found))


class Checked(AbstractResolver):
    """Another resolver's addresses without those that may not be connected to."""

    def __init__(self, inner: AbstractResolver, *, allow_private: bool) -> None:
        self._inner = inner
        self._allow_private = allow_private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of a name that are allowed; ForbiddenAddress where it has only others."""
        found = await self._inner.resolve(host, port, family)
        if not found:
            raise OSError(f"{host} has no address")
        allowed = [one for one in found if self._allow_private or is_public(one["host"])]
        if not allowed:
            raise ForbiddenAddress(f"{host} is {found[0]['host']}")
        return allowed

    async def close(self) -> None:
        """Close the other resolver."""
        await self._inner.close()


class Connection(ResponseHandler):
    """A connection on which a reset is a failure, also where the end of a body is that of the connection.

    aiohttp takes what came before a reset for the whole of such a body.
    """

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection ended, or was reset."""
        if exc is not None and self._payload is not None and not self._payload.is_eof():
            self._payload.set_exception(ClientPayloadError("reset"))
        super().connection_lost(exc)


def public_socket(info: tuple[Any, ...]) -> socket.socket:
    """A socket for an address, which must be public: the last check, made on what is connected to."""
    family, kind, proto, _, address = info
    check_public(address[0])
    made = socket.socket(family, kind, proto)
    made.setblocking(False)
    return made


def check_public(address: str) -> None:
    """Raise ForbiddenAddress unless an address is public."""
    if not is_public(address):
        raise ForbiddenAddress(f"{address} is not public")
