"""Webhook: events sent to a server of the user by signed POST requests."""

from __future__ import annotations

import hashlib
import hmac
import json
import ssl
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import aiohttp

from recrawl.crawl.deliver.session import posting_session
from recrawl.crawl.deliver.subscribers import NotDelivered
from recrawl.crawl.http.semantics import retry_after
from recrawl.errors import ParameterError
from recrawl.store.events import Event

TIMESTAMP, SIGNATURE = "Recrawl-Timestamp", "Recrawl-Signature"
LARGEST = 1 << 20  # bytes of a request's body, unless one event alone is longer
_SHORTEST = 16  # characters of a secret


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """What the header ``Recrawl-Signature`` holds: HMAC-SHA256 over timestamp, a full stop and the body.

    >>> sign("a secret of length", "1700000000", b"{}")[:11]
    'v1=44253ea1'
    """
    return "v1=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def verify(
    secret: str, timestamp: str, signature: str, body: bytes, *, now: float | None = None, within: float = 300.0
) -> bool:
    """Whether a request was signed with the secret, not longer ago than ``within`` seconds: for receivers."""
    if not hmac.compare_digest(sign(secret, timestamp, body).encode(), signature.encode()):
        return False
    return timestamp.isdigit() and abs((time.time() if now is None else now) - int(timestamp)) <= within


class Webhook:
    """Sends events to a URL by POST; an answer 2xx accepts them, anything else does not.

    TLS is verified, redirects are not followed, and of an answer only status and headers are read. Neither URL nor
    secret is part of any message.
    """

    def __init__(
        self,
        url: str,
        secret: str,
        *,
        user_agent: str = "recrawl",
        timeout: float = 10.0,
        now: Callable[[], float] = time.time,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        check_webhook(url, secret)
        self._url, self._secret, self._agent = url, secret, user_agent
        self._timeout, self._now, self._ssl = timeout, now, ssl_context
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, events: list[Event], missed: int) -> int:
        """Send as many events as fit into a request; how many were accepted."""
        parts = _fitting([_json(event) for event in events])
        while True:
            status, wait = await self._post(b'{"missed": %d, "events": [%b]}' % (missed, b", ".join(parts)))
            if 200 <= status <= 299:
                return len(parts)
            if status != 413 or len(parts) == 1:
                raise NotDelivered(f"answered {status}", wait)
            parts = parts[: len(parts) // 2]

    async def _post(self, body: bytes) -> tuple[int, float | None]:
        """The status, and for how many seconds the server asks not to be called again."""
        timestamp = str(int(self._now()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": self._agent,
            TIMESTAMP: timestamp,
            SIGNATURE: sign(self._secret, timestamp, body),
        }
        try:
            request = self._opened().post(self._url, data=body, headers=headers, allow_redirects=False)
            async with request as response:
                given = {name.lower(): value for name, value in response.headers.items()}
                return response.status, retry_after(given, self._now())
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise NotDelivered(failure_reason(problem, self._timeout)) from None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = posting_session(self._timeout, self._ssl)
        return self._session

    async def close(self) -> None:
        """Close the connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


def check_webhook(url: str, secret: str) -> None:
    """Raise ParameterError if events cannot be sent to a URL, or signed with a secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ParameterError("webhook is no http or https URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ParameterError("webhook is no http or https URL")
    if len(secret) < _SHORTEST:
        raise ParameterError(
            f"the secret of the webhook has {len(secret)} characters: give at least {_SHORTEST}, in the environment "
            "variable RECRAWL_WEBHOOK_SECRET or in a file that webhook_secret_file names"
        )


def _json(event: Event) -> bytes:
    return json.dumps(event.as_dict(), ensure_ascii=False).encode("utf-8", "replace")


def _fitting(parts: list[bytes]) -> list[bytes]:
    """The first of some parts that fit into one body: at least one."""
    size = 0
    for n, part in enumerate(parts):
        size += len(part) + 2
        if n and size > LARGEST:
            return parts[:n]
    return parts


def failure_reason(problem: Exception, timeout: float) -> str:
    """Why a post got no answer, without its URL."""
    if isinstance(problem, TimeoutError):
        return f"no answer within {timeout:g} s"
    if isinstance(problem, aiohttp.ClientSSLError | ssl.SSLError):
        return "no trusted encrypted connection"
    if isinstance(problem, aiohttp.ClientConnectorError):
        return "no connection"
    if isinstance(problem, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError):
        return "the connection ended before the answer"
    return f"no usable answer ({type(problem).__name__})"
