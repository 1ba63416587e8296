"""Cache headers: hints of when a page changes, which the crawler may use or ignore."""

from __future__ import annotations

import re
from collections.abc import Mapping

from recrawl.crawl.http.semantics import http_date

LONGEST = 365 * 86400.0  # seconds; longer times count as this

_MAX_AGE = re.compile(r'(?:^|[\s,])(s-maxage|max-age)\s*=\s*"?(\d{1,12})')
_NEVER = re.compile(r"(?:^|[\s,])(?:no-cache|no-store)(?:$|[\s,])")


def fresh_for(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds from ``now`` for which caches may keep the answer: 0 to a year, None without such headers.

    >>> fresh_for({"cache-control": "public, max-age=600", "age": "60"}, 0.0), fresh_for({"expires": "0"}, 0.0)
    (540.0, 0.0)
    """
    control = headers.get("cache-control", "").lower()
    if _NEVER.search(control):
        return 0.0
    ages = dict(_MAX_AGE.findall(control))
    age = ages.get("s-maxage", ages.get("max-age"))
    if age is not None:
        return _bounded(float(age) - _age(headers))
    if "expires" not in headers:
        return None
    until = http_date(headers["expires"])
    said_at = http_date(headers.get("date", ""))
    if until is None:
        return 0.0  # a date that is none, 0 most often, means already stale
    return _bounded(until - (now if said_at is None else said_at) - _age(headers))


def modified_at(headers: Mapping[str, str]) -> float | None:
    """Last-Modified in seconds since the epoch."""
    return http_date(headers.get("last-modified", ""))


def _age(headers: Mapping[str, str]) -> float:
    age = headers.get("age", "").strip()
    return float(age[:12]) if age.isascii() and age.isdigit() else 0.0


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST)
