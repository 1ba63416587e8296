"""Fetched: the result of one fetch, in the same form from every fetcher.

A fetch never raises for what a server does: whatever went wrong is one of ``FAILURES``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from recrawl.crawl.http.charset import as_utf8, decode

FAILURES: Mapping[str, str] = MappingProxyType(
    {
        "bad-url": "the URL is no http or https URL",
        "dns": "the host has no address",
        "connect": "no connection to any address of the host",
        "tls": "no trusted encrypted connection",
        "timeout": "the time allowed ran out",
        "reset": "the connection ended before the answer did",
        "too-large": "body or headers beyond the limit",
        "bad-response": "what came is not an answer that HTTP allows here",
        "redirects": "redirects too many, in a circle, to what is no http or https URL, or to a host of another shard",
        "forbidden-address": "a private, local or reserved address: refused unless allow_private = true",
        "robots": "robots.txt does not allow it, or could not be read",
        "busy": "the server asks to come later (429, 503)",
        "http-4xx": "the server refuses (400 to 499 but 429); 404 and 410 also set `gone`",
        "http-5xx": "the server failed (500 to 599 but 503)",
    }
)


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of one fetch of a URL; times in seconds by the fetcher's clock."""

    url: str
    final_url: str  # after redirects
    status: int  # 0: no answer
    began_at: float
    took: float
    headers: Mapping[str, str] = field(default_factory=dict)  # lower-case names
    body: bytes = b""  # decoded; empty when not modified or failed
    not_modified: bool = False
    redirects: tuple[str, ...] = ()  # URLs passed through, the first of them ``url``
    failure: str | None = None  # one of FAILURES
    gone: bool = False  # 404 and 410
    retry_after: float | None = None  # seconds from began_at + took
    beside: tuple[str, ...] = ()  # URLs of further requests that the fetch made, such as those of a page's scripts
    failed_beside: tuple[Fetched, ...] = ()  # those of them that failed, without bodies

    def text(self) -> str:
        """The body as text: charset from a byte order mark, the header, a meta element or a guess; never raises."""
        return decode(self.body, self.headers.get("content-type", ""))

    def utf8(self) -> bytes:
        """The same text in UTF-8."""
        return as_utf8(self.body, self.headers.get("content-type", ""))


class Fetcher(Protocol):
    """The protocol of fetchers: plain HTTP, a rendering browser, a proxy pool."""

    async def fetch(
        self,
        url: str,
        *,
        etag: str | None = None,
        last_modified: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Fetched:
        """Fetch a URL, conditionally when validators are given; failures are returned, not raised."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


@runtime_checkable
class Poster(Protocol):
    """A fetcher that can also send forms, as subscriptions need it."""

    async def post(self, url: str, form: Mapping[str, str]) -> Fetched:
        """Send a form to a URL; failures are returned, not raised."""
        ...


class Sink(Protocol):
    """Takes a body of at most ``limit`` bytes piece by piece; ``body`` is what it keeps of it."""

    limit: int

    def feed(self, piece: bytes) -> None:
        """The next piece, decoded."""
        ...

    @property
    def body(self) -> bytes:
        """What is kept."""
        ...


@runtime_checkable
class Streamer(Protocol):
    """A fetcher that can pass a body on while it is read, as large sitemaps need it."""

    async def stream(
        self, url: str, sink: Sink, *, etag: str | None = None, last_modified: str | None = None
    ) -> Fetched:
        """Fetch a URL; its body goes to the sink, and the result has what that keeps. Failures are returned."""
        ...
