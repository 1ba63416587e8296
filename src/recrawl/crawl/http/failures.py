"""The failure (one of FAILURES) that an exception stands for."""

from __future__ import annotations

import ssl

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from recrawl.crawl.http.connect import ForbiddenAddress
from recrawl.crawl.http.encoding import BadCoding, TooLarge


class BadUrl(Exception):
    """The URL to fetch is no http or https URL."""


class BadRedirect(Exception):
    """Too many redirects, or one that cannot be followed."""


# The first kind that an error is of decides.
_KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (ForbiddenAddress, "forbidden-address"),
    (BadUrl, "bad-url"),
    (BadRedirect, "redirects"),
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
    (HttpProcessingError, "bad-response"),
    (aiohttp.ClientError, "reset"),
    (OSError, "reset"),
)


# aiohttp distinguishes these only by message.
_TOO_LARGE = ("Got more than", "Too many headers", "Too many trailers")
_CUT = "Not enough data"


def failure_name(error: BaseException) -> str | None:
    """The failure that an exception stands for; None for an exception that no server can cause."""
    cause = error.__cause__
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, ForbiddenAddress):
        return "forbidden-address"
    if isinstance(cause, HttpProcessingError):
        if cause.message.startswith(_TOO_LARGE):
            return "too-large"
        return "reset" if cause.message.startswith(_CUT) else "bad-response"
    return next((name for kind, name in _KINDS if isinstance(error, kind)), None)
