"""What an HTTP answer means to a crawler, the same for every fetcher."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from recrawl.crawl.urls import canonical

if TYPE_CHECKING:
    from recrawl.crawl.http.fetched import Fetched

REDIRECTS = frozenset({301, 302, 303, 307, 308})
KEEP_METHOD = frozenset({307, 308})  # redirects after which a form is sent again
LONGEST_WAIT = 7 * 86400.0  # a server cannot ask for more

_BUSY = frozenset({429, 503})
_GONE = frozenset({404, 410})


def failure_of(status: int, *, conditional: bool) -> str | None:
    """The failure that a final status stands for; ``conditional``: whether validators were sent."""
    if status in _BUSY:
        return "busy"
    if 400 <= status <= 499:
        return "http-4xx"
    if 500 <= status <= 599:
        return "http-5xx"
    if status == 304 and conditional:
        return None
    if 200 <= status <= 299 and status != 206:  # no range was asked for
        return None
    return "bad-response"


def is_gone(status: int) -> bool:
    """Whether the status means that the page is gone."""
    return status in _GONE


def redirect_goal(at: str, fetched: Fetched) -> str | None:
    """The target of a redirect from ``at`` that the fetcher did not follow; None if there is none."""
    location = fetched.headers.get("location")
    if fetched.failure != "redirects" or fetched.status not in REDIRECTS or not location or len(fetched.redirects) > 1:
        return None
    try:
        return canonical(urljoin(at, location))
    except ValueError:
        return None


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the server asks to wait, from a number or a date, at most a week.

    >>> retry_after({"retry-after": "120"}, 0.0), retry_after({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, 50.0)
    (120.0, 10.0)
    """
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return min(float(value[:12]), LONGEST_WAIT)
    at = http_date(value)
    return None if at is None else min(max(at - now, 0.0), LONGEST_WAIT)


def http_date(value: str) -> float | None:
    """Seconds since the epoch of a date in a header, or None.

    >>> http_date("Sun, 06 Nov 1994 08:49:37 GMT"), http_date("soon")
    (784111777.0, None)
    """
    try:
        at = parsedate_to_datetime(value)
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
        return (at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
