"""HttpFetcher: plain HTTP by aiohttp, within limits, to public addresses only.

Redirects are followed here and not by aiohttp, so that every hop is checked. The address that is connected to is
the one that was checked: names are filtered as they resolve, and every socket is checked once more before it connects.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from recrawl.crawl.addresses import is_public
from recrawl.crawl.answer import REDIRECTS, failure_of, is_gone, retry_after
from recrawl.crawl.clock import Clock, SystemClock
from recrawl.crawl.coding import ACCEPTED, BadCoding, Body, TooLarge
from recrawl.crawl.fetched import Fetched
from recrawl.crawl.urls import canonical
from recrawl.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Limits:
    """What one fetch may take at most: bytes, seconds, hops; and how many connections there may be."""

    body: int = 10 << 20  # bytes, as sent and as decoded
    header: int = 16 << 10  # bytes of one header
    headers: int = 100  # headers of one answer
    redirects: int = 5
    total: float = 60.0  # seconds for a fetch with all its hops
    connect: float = 15.0  # seconds for a connection
    idle: float = 20.0  # seconds without a byte
    connections: int = 256
    connections_per_host: int = 8
    dns: float = 300.0  # seconds an address is kept


class ForbiddenAddress(OSError):
    """An address that may not be connected to."""


class _Public(AbstractResolver):
    """Another resolver's addresses without those that may not be connected to."""

    def __init__(self, inner: AbstractResolver) -> None:
        self._inner = inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        allowed = [one for one in found if is_public(one["host"])]
        if found and not allowed:
            raise ForbiddenAddress(f"{host} is {found[0]['host']}")
        return allowed

    async def close(self) -> None:
        await self._inner.close()


def _checked_socket(info: Any) -> socket.socket:
    family, kind, proto, _, address = info
    if not is_public(address[0]):
        raise ForbiddenAddress(f"{address[0]} is not public")
    made = socket.socket(family, kind, proto)
    made.setblocking(False)
    return made


_SAFE_ELSEWHERE = frozenset({"accept", "accept-language"})  # what a host may see that was meant for another


class HttpFetcher:
    """A fetcher by aiohttp. ``user_agent`` names the crawler and how to reach who runs it.

    ``allow_private`` lets it connect to private, local and reserved addresses. ``resolver`` and ``ssl_context`` stand
    in for the system's.
    """

    def __init__(
        self,
        user_agent: str,
        *,
        limits: Limits | None = None,
        allow_private: bool = False,
        clock: Clock | None = None,
        resolver: AbstractResolver | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        if not user_agent.strip() or not user_agent.isprintable():
            raise ParameterError("user_agent must be a line of text with a way to reach you")
        self._user_agent = user_agent
        self._limits = limits or Limits()
        self._allow_private = allow_private
        self._clock: Clock = clock or SystemClock()
        self._resolver = resolver
        self._ssl_context = ssl_context
        self._session: aiohttp.ClientSession | None = None

    async def fetch(
        self,
        url: str,
        *,
        etag: str | None = None,
        last_modified: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Fetched:
        """Fetch a URL, following redirects; what goes wrong is told, not raised."""
        visit = _Visit(self._clock, url)
        try:
            async with asyncio.timeout(self._limits.total):
                return await self._hops(visit, etag, last_modified, headers or {})
        except Exception as error:
            word = failure_word(error)
            if word is None:
                raise
            return visit.failed(word)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _hops(
        self, visit: _Visit, etag: str | None, last_modified: str | None, headers: Mapping[str, str]
    ) -> Fetched:
        validators = {"If-None-Match": etag, "If-Modified-Since": last_modified}
        conditional = {name: value for name, value in validators.items() if value}
        visit.at = canonical(visit.url)
        while True:
            sent = {**headers, **conditional}
            self._check_literal(visit.at)
            async with self._open().get(URL(visit.at, encoded=True), headers=sent, allow_redirects=False) as response:
                visit.answered(response, self._limits)
                goal = visit.headers.get("location")
                if response.status not in REDIRECTS or goal is None:
                    return await self._finish(visit, response, bool(conditional))
            before = visit.at
            visit.hop(goal, self._limits.redirects)
            if urlsplit(before).netloc != urlsplit(visit.at).netloc:
                headers = {name: value for name, value in headers.items() if name.lower() in _SAFE_ELSEWHERE}
            if before.partition(":")[2] != visit.at.partition(":")[2]:
                conditional = {}

    async def _finish(self, visit: _Visit, response: aiohttp.ClientResponse, conditional: bool) -> Fetched:
        failure = failure_of(response.status, conditional=conditional)
        if failure is not None or response.status == 304:
            return visit.done(b"", failure)
        body = Body(visit.headers.get("content-encoding", ""), self._limits.body)
        async for piece in response.content.iter_any():
            body.feed(piece)
        return visit.done(body.whole(), None)

    def _check_literal(self, url: str) -> None:
        host = urlsplit(url).hostname or ""
        is_literal = ":" in host or host.rpartition(".")[2].isdigit()
        if is_literal and not self._allow_private and not is_public(host):
            raise ForbiddenAddress(f"{host} is not public")

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = self._new_session()
        return self._session

    def _new_session(self) -> aiohttp.ClientSession:
        limits = self._limits
        resolver = self._resolver or aiohttp.resolver.DefaultResolver()
        connector = aiohttp.TCPConnector(
            resolver=resolver if self._allow_private else _Public(resolver),
            socket_factory=None if self._allow_private else _checked_socket,
            ttl_dns_cache=int(limits.dns),
            limit=limits.connections,
            limit_per_host=limits.connections_per_host,
            ssl=self._ssl_context or True,
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            headers={"User-Agent": self._user_agent, "Accept": "*/*", "Accept-Encoding": ACCEPTED},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=limits.connect, sock_read=limits.idle),
            max_line_size=limits.header,
            max_field_size=limits.header,
            max_headers=limits.headers,
        )


class _Visit:
    """What is known of a fetch while it runs."""

    def __init__(self, clock: Clock, url: str) -> None:
        self.url = self.at = url
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self._clock = clock
        self._began_at = clock.now()
        self._passed: list[str] = []

    def answered(self, response: aiohttp.ClientResponse, limits: Limits) -> None:
        """Take status and headers; of a header that comes twice the values are joined."""
        self.status = response.status
        joined: dict[str, str] = {}
        for name, value in response.headers.items():
            name = name.lower()
            if name != "set-cookie":
                joined[name] = f"{joined[name]}, {value}" if name in joined else value
        self.headers = MappingProxyType(joined)

    def hop(self, goal: str, most: int) -> None:
        """Go where a redirect points."""
        self._passed.append(self.at)
        try:
            goal = canonical(urljoin(self.at, goal))
        except ValueError:
            raise _Redirects from None
        if goal in self._passed or len(self._passed) > most:
            raise _Redirects
        self.at = goal

    def done(self, body: bytes, failure: str | None) -> Fetched:
        """The result, now that the answer is whole."""
        now = self._clock.now()
        return Fetched(
            self.url,
            self.at,
            self.status,
            self._began_at,
            now - self._began_at,
            self.headers,
            body,
            not_modified=self.status == 304 and failure is None,
            redirects=tuple(self._passed),
            failure=failure,
            gone=is_gone(self.status),
            retry_after=retry_after(self.headers, now),
        )

    def failed(self, word: str) -> Fetched:
        """The result when it went wrong."""
        return self.done(b"", word)


class _Redirects(Exception):
    """Too many redirects, or one that cannot be followed."""


def failure_word(error: BaseException) -> str | None:
    """The word of FAILURES for an error, None for one that no server can cause."""
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, ForbiddenAddress):
        return "forbidden-address"
    for kind, word in _WORDS:
        if isinstance(error, kind):
            return word
    return None


_WORDS: tuple[tuple[type[BaseException], str], ...] = (
    (ForbiddenAddress, "forbidden-address"),
    (ParameterError, "bad-url"),
    (_Redirects, "redirects"),
    (TooLarge, "too-large"),
    (BadCoding, "bad-response"),
    (TimeoutError, "timeout"),
    (aiohttp.ClientConnectorDNSError, "dns"),
    (aiohttp.ClientSSLError, "tls"),
    (ssl.SSLError, "tls"),
    (aiohttp.ClientConnectorError, "connect"),
    (aiohttp.InvalidURL, "bad-url"),
    (aiohttp.ClientPayloadError, "reset"),
    (aiohttp.ServerDisconnectedError, "reset"),
    (aiohttp.ClientResponseError, "bad-response"),
    (aiohttp.ClientError, "reset"),
    (OSError, "reset"),
)
