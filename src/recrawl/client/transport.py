"""Requests over one connection that is kept; each is sent again when its answer does not come.

Every call may be sent twice: a lease is recorded and released once, pages are added once. A pick whose answer was lost
leaves leases that end by themselves.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from recrawl.errors import ParameterError, ServiceError

_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_FIRST_WAIT, _LAST_WAIT = 0.1, 10.0  # seconds between two tries
_LONGEST_POLL = 30.0  # seconds that a pick may wait in the service


class Transport:
    """Sends JSON to a service and gets JSON; safe to use from several threads, one request at a time.

    ``patience`` is for how many seconds a request is tried again.
    """

    def __init__(self, url: str, token: str, *, timeout: float = 30.0, patience: float = 60.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ParameterError(f"{url[:200]!r} is not the URL of a service")
        self._parts, self._base = parts, parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._timeout, self._patience = timeout + _LONGEST_POLL, patience
        self._connection: http.client.HTTPConnection | None = None
        self._lock = threading.Lock()

    def call(
        self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None, *, again: bool = True
    ) -> dict[str, Any]:
        """The answer to a request, or ServiceError; it is sent ``again`` while no answer comes."""
        target = self._base + path
        if query:
            target += "?" + urlencode({k: v for k, v in query.items() if v is not None}, quote_via=quote)
        data = None if body is None else json.dumps(body).encode()
        until, wait = time.monotonic() + self._patience, _FIRST_WAIT
        while True:
            try:
                status, asked, text = self._send(method, target, data)
            except (OSError, http.client.HTTPException) as problem:
                failure = ServiceError(f"{self._parts.netloc}: {type(problem).__name__}: {problem}")
                status, asked = 0, None
            else:
                if status == 200:
                    return self._json(text)
                failure = ServiceError(_detail(status, text), status)
            if not again or (status and status not in _AGAIN) or time.monotonic() >= until:
                raise failure
            time.sleep(wait * (0.5 + random.random()) if asked is None else min(asked, _LAST_WAIT))
            wait = min(2.0 * wait, _LAST_WAIT)

    def _send(self, method: str, target: str, data: bytes | None) -> tuple[int, float | None, bytes]:
        """Status, seconds that the service asks to wait, and body."""
        with self._lock:
            if self._connection is None:
                secure = self._parts.scheme == "https"
                kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
                self._connection = kind(self._parts.hostname or "", self._parts.port, timeout=self._timeout)
            try:
                self._connection.request(method, target, data, self._headers)
                answer = self._connection.getresponse()
                text, asked = answer.read(), answer.headers.get("retry-after", "")
            except BaseException:
                self._connection.close()
                self._connection = None
                raise
            return answer.status, float(asked) if asked.isdecimal() else None, text

    def _json(self, text: bytes) -> dict[str, Any]:
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ServiceError(f"{self._parts.netloc}: the answer is not a JSON object")
        return found

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def _detail(status: int, text: bytes) -> str:
    """What a refusal says."""
    try:
        return f"{status}: {json.loads(text)['detail']}"
    except (ValueError, KeyError, TypeError):
        return f"{status}: {text[:200].decode(errors='replace')}"
