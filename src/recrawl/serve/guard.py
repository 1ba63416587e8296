"""What is checked of every request: for whom it is, where it comes from, its size, its token."""

from __future__ import annotations

import asyncio
import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from recrawl.crawl.signals.tokens import Token, Tokens
from recrawl.serve.problems import ProblemError, answer

PATIENCE = 30.0  # seconds that a body may take
_HOST = re.compile(r"(?:\[(?P<six>[0-9a-f.]*:[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::\d{1,5})?", re.ASCII)


class HostGuard:
    """Refuses requests for foreign hosts and from foreign origins.

    A name that resolves to this machine would let any web page talk to it through the browser of its reader. So
    ``Host`` must be an IP address, ``localhost`` or the host of the public URL, and ``Origin``, where there is one, the
    same host.
    """

    def __init__(self, app: ASGIApp, public_url: str = "") -> None:
        parts = urlsplit(public_url.lower())
        self._app, self._name, self._origin = app, parts.hostname, f"{parts.scheme}://{parts.netloc}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let the app answer it."""
        problem = self._problem(Headers(scope=scope)) if scope["type"] == "http" else None
        await (self._app if problem is None else answer(problem))(scope, receive, send)

    def _problem(self, headers: Headers) -> ProblemError | None:
        host = headers.get("host", "").lower()
        found = _HOST.fullmatch(host)
        name = "" if found is None else found["six"] or found["name"]
        if not name or (name != self._name and not _is_local(name)):
            return ProblemError(421, "the Host of the request is not served here")
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in {f"http://{host}", f"https://{host}", self._origin}:
            return ProblemError(403, "requests from other origins are refused")
        return None


def _is_local(name: str) -> bool:
    """Whether a name is an IP address or localhost."""
    try:
        return name == "localhost" or ip_address(name) is not None
    except ValueError:
        return False


async def read_body(request: Request, most: int) -> bytes:
    """The body of a request, which has at most so many bytes and comes within some seconds."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await _read_body(request, most)
    except TimeoutError:
        raise ProblemError(408, f"the body did not come within {PATIENCE:g} s") from None


async def _read_body(request: Request, most: int) -> bytes:
    body = bytearray()
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > most:
        raise ProblemError(413, f"the body has {length} bytes: at most {most} are taken")
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise ProblemError(413, f"the body is larger than {most} bytes")
    return bytes(body)


def authorize(request: Request, tokens: Tokens, scope: str) -> Token:
    """The token of a request, which must have a scope."""
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    token = tokens.find(text.strip()) if kind.lower() == "bearer" else None
    if token is None:
        raise ProblemError(401, "a valid bearer token is needed", headers={"www-authenticate": "Bearer"})
    if not token.allows(scope):
        header = f'Bearer error="insufficient_scope", scope="{scope}"'
        raise ProblemError(403, f"the token has no scope {scope}", headers={"www-authenticate": header})
    return token
