"""HttpFetcher: plain HTTP by aiohttp, within limits, to public addresses only.

Redirects are followed here and not by aiohttp, so that every hop is checked. The address that is connected to is
the one that was checked: names are filtered as they resolve, and every socket is checked once more before it connects.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import cast
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from recrawl.crawl.clock import Clock, SystemClock
from recrawl.crawl.http.connect import Checked, Connection, SystemResolver, check_public, public_socket
from recrawl.crawl.http.encoding import ACCEPTED, Body, TooLarge
from recrawl.crawl.http.exchange import Exchange
from recrawl.crawl.http.failures import failure_name
from recrawl.crawl.http.fetched import Fetched, Sink
from recrawl.crawl.http.semantics import KEEP_METHOD, REDIRECTS
from recrawl.errors import ParameterError

_DRAINED = 64 << 10  # bytes of an unwanted body that are read so that the connection can be used again
_DRAINED_FOR = 1.0  # seconds that this may take
_IDLE = 4.0  # seconds an unused connection is kept: less than servers do, which close theirs after 5 s and more
_NAMES = 10_000  # names whose addresses are kept


@dataclass(frozen=True, slots=True)
class Limits:
    """What one fetch may take at most: bytes, hops, seconds; and how many connections there may be."""

    body: int = 10 << 20  # bytes, as sent and as decoded
    headers: int = 64 << 10  # bytes of all headers of an answer
    header_count: int = 100
    redirects: int = 5
    total: float = 60.0  # seconds for a fetch with all its hops
    connect: float = 15.0  # seconds for a connection
    idle: float = 20.0  # seconds without a byte
    connections: int = 256  # at a time; more fetches wait
    dns: float = 300.0  # seconds an address is kept
    cut: bool = False  # whether a body that is too large is cut, instead of a failure

    def __post_init__(self) -> None:
        for name in (name for name in self.__slots__ if name != "cut"):
            value = getattr(self, name)
            if not value >= (0 if name in ("redirects", "dns") else 1e-3):
                raise ParameterError(f"limit {name} is {value}: must be positive")


class HttpFetcher:
    """A fetcher by aiohttp. ``user_agent`` names the crawler and how to reach its operator.

    ``allow_private`` lets it connect to private, local and reserved addresses. ``resolver`` and
    ``ssl_context`` replace the system's. It belongs to the event loop of its first fetch.
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
        if not user_agent.strip():
            raise ParameterError("user_agent is empty: name the crawler and how to reach you")
        check_headers({"user-agent": user_agent})
        self._user_agent = user_agent
        self._limits = limits or Limits()
        self._allow_private = allow_private
        self._clock: Clock = clock or SystemClock()
        self._resolver = resolver
        self._own_resolver: SystemResolver | None = None
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
        """Fetch a URL, following redirects; failures are returned, not raised."""
        extra = headers or {}
        check_headers(extra)
        return await self._made(Exchange(self._clock, url, extra, etag, last_modified))

    async def stream(
        self, url: str, sink: Sink, *, etag: str | None = None, last_modified: str | None = None
    ) -> Fetched:
        """Fetch a URL; its body goes to the sink while it is read. Failures are returned, not raised."""
        return await self._made(Exchange(self._clock, url, {}, etag, last_modified), sink=sink)

    async def post(self, url: str, form: Mapping[str, str]) -> Fetched:
        """Send a form to a URL, also where redirects that keep the method lead; failures are returned, not raised."""
        return await self._made(Exchange(self._clock, url, {}, None, None), dict(form))

    async def _made(self, exchange: Exchange, form: dict[str, str] | None = None, sink: Sink | None = None) -> Fetched:
        try:
            async with asyncio.timeout(self._limits.total):
                return await self._follow(exchange, form, sink)
        except Exception as error:
            failure = failure_name(error)
            if failure is None:
                raise
            return exchange.done(b"", failure)

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        if self._own_resolver is not None:
            await self._own_resolver.close()

    async def _follow(self, exchange: Exchange, form: dict[str, str] | None, sink: Sink | None) -> Fetched:
        exchange.begin()
        method, followed = ("GET", REDIRECTS) if form is None else ("POST", KEEP_METHOD)
        while True:
            if not self._allow_private:
                _check_literal(exchange.at)
            at, sent = URL(exchange.at, encoded=True), exchange.sent
            request = self._opened().request(method, at, headers=sent, data=form, allow_redirects=False)
            async with request as response:
                exchange.answered(response.status, response.headers.items(), self._limits.headers)
                goal = response.headers.get("Location") if response.status in followed else None
                if goal is None:
                    return await self._finish(exchange, response, sink)
                await _drain(response)
            exchange.hop(goal, self._limits.redirects)

    async def _finish(self, exchange: Exchange, response: aiohttp.ClientResponse, sink: Sink | None) -> Fetched:
        failure = exchange.verdict()
        if failure is not None or exchange.status == 304:
            await _drain(response)
            return exchange.done(b"", failure)
        limit = self._limits.body if sink is None else sink.limit
        if (response.content_length or 0) > limit and not self._limits.cut:
            raise TooLarge
        body = Body(exchange.headers.get("content-encoding", ""), limit, None if sink is None else sink.feed)
        try:
            async for piece in response.content.iter_any():
                body.feed(piece)
        except TooLarge:
            if not self._limits.cut:
                raise
            return exchange.done(body.begun(), None)
        whole = body.whole()
        return exchange.done(whole if sink is None else sink.body, None)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = self._new_session()
        return self._session

    def _new_session(self) -> aiohttp.ClientSession:
        limits = self._limits
        session = aiohttp.ClientSession(
            connector=self._connector(),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            headers={"User-Agent": self._user_agent, "Accept": "*/*", "Accept-Encoding": ACCEPTED},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=limits.connect, sock_read=limits.idle),
            max_line_size=limits.headers,
            max_field_size=limits.headers,
            max_headers=limits.header_count,
        )
        session._retry_connection = False  # aiohttp would ask twice where a connection ends, against delay and budget
        return session

    def _connector(self) -> aiohttp.TCPConnector:
        lookup = self._resolver
        if lookup is None:
            lookup = self._own_resolver = SystemResolver()
        connector = aiohttp.TCPConnector(
            resolver=Checked(lookup, allow_private=self._allow_private),
            socket_factory=None if self._allow_private else public_socket,
            use_dns_cache=self._limits.dns > 0,
            ttl_dns_cache=int(self._limits.dns),
            dns_cache_max_size=_NAMES,
            limit=self._limits.connections,
            keepalive_timeout=_IDLE,
            ssl=self._ssl_context or True,
        )
        connector._factory = cast("partial[ResponseHandler]", partial(Connection, loop=asyncio.get_running_loop()))
        return connector


def check_headers(headers: Mapping[str, str]) -> None:
    """Raise ParameterError for headers that cannot be sent."""
    for name, value in headers.items():
        if not name or not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise ParameterError(f"header name {name!r} is not made of letters, digits and hyphens")
        if not value.isprintable():
            raise ParameterError(f"the value of header {name} is not one line of text")


def _check_literal(url: str) -> None:
    """Refuse an address in the URL itself: those reach no resolver."""
    host = urlsplit(url).hostname or ""
    if ":" in host or host.rpartition(".")[2].isdigit():
        check_public(host)


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read a short body that nobody wants; one that is long, slow or broken closes the connection instead."""
    if (response.content_length or 0) > _DRAINED:
        return
    size = 0
    with suppress(aiohttp.ClientError, TimeoutError, OSError):
        async with asyncio.timeout(_DRAINED_FOR):
            async for piece in response.content.iter_any():
                size += len(piece)
                if size > _DRAINED:
                    return
