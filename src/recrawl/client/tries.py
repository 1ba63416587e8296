"""Tries: when a request is sent again, and what an answer means; the same for both clients.

Every call may be sent twice: a lease is recorded and released once, pages are added once. A pick whose answer was lost
leaves leases that end by themselves.
"""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from recrawl.client.calls import Ask
from recrawl.errors import ParameterError, ServiceError

T = TypeVar("T")

_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_FIRST_WAIT, _LAST_WAIT = 0.1, 10.0  # seconds between two tries
_LONGEST_POLL = 30.0  # seconds that a pick may wait in the service


@dataclass(frozen=True)
class Answer:
    """What a service answered; ``wait`` is how many seconds it asks to wait."""

    status: int
    wait: float | None
    text: bytes


def seconds_asked(header: str) -> float | None:
    """The seconds of a Retry-After."""
    return float(header) if header.isdecimal() else None


class Service:
    """Where a service is, and how requests to it look. ``patience``: for how many seconds a request is tried again."""

    def __init__(self, url: str, token: str, timeout: float, patience: float) -> None:
        parts: SplitResult = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ParameterError(f"{url[:200]!r} is not the URL of a service")
        self.secure, self.host, self.netloc = parts.scheme == "https", parts.hostname, parts.netloc
        self.port = parts.port or (443 if self.secure else 80)
        self._base = parts.path.rstrip("/")
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.timeout, self.patience = timeout + _LONGEST_POLL, patience

    def target(self, ask: Ask[Any]) -> str:
        """The path and query of a request."""
        given = {k: v for k, v in (ask.query or {}).items() if v is not None}
        return self._base + ask.path + ("?" + urlencode(given, quote_via=quote) if given else "")

    @staticmethod
    def data(ask: Ask[Any]) -> bytes | None:
        """The body of a request."""
        return None if ask.body is None else json.dumps(ask.body).encode()


class Tries:
    """One call of a service: each answer, or problem, is its result, is raised, or says how long to wait."""

    def __init__(self, service: Service, ask: Ask[T]) -> None:
        self._service, self._ask = service, ask
        self._until, self._wait = time.monotonic() + service.patience, _FIRST_WAIT

    def wait_after(self, found: Answer | Exception) -> float | None:
        """Seconds until the request is sent again; None: the answer is a result. Raises what is final."""
        if isinstance(found, Answer):
            if found.status == 200:
                return None
            failure, status, asked = ServiceError(_detail(found), found.status), found.status, found.wait
        else:
            text = f"{self._service.netloc}: {type(found).__name__}: {found}"
            failure, status, asked = ServiceError(text), 0, None
        if not self._ask.again or (status and status not in _AGAIN) or time.monotonic() >= self._until:
            raise failure from None
        wait, self._wait = self._wait, min(2.0 * self._wait, _LAST_WAIT)
        return wait * (0.5 + random.random()) if asked is None else min(asked, _LAST_WAIT)


def result_of(service: Service, ask: Ask[T], answer: Answer) -> T:
    """What an answer means."""
    try:
        found = json.loads(answer.text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ServiceError(f"{service.netloc}: the answer is not a JSON object")
    return ask.read(found)


def _detail(answer: Answer) -> str:
    """What a refusal says."""
    try:
        return f"{answer.status}: {json.loads(answer.text)['detail']}"
    except (ValueError, KeyError, TypeError):
        return f"{answer.status}: {answer.text[:200].decode(errors='replace')}"
