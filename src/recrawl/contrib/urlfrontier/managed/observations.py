"""Observations: what a client puts of a URL that it fetched, as a report to the desk."""

from __future__ import annotations

from typing import Any

from recrawl.contrib.urlfrontier.api.wire import URLInfo
from recrawl.crawl.http.semantics import REDIRECTS, failure_of, is_gone
from recrawl.desk import Report

SIGNATURE, STATUS, CAUSE = "signature", "fetch.statusCode", "error.cause"
ERRORS, GOAL = "fetch.error.count", "_redirTo"  # failures in a row; where a redirect goes
_GONE = 410


def report_of(lease: str, date: int, metadata: bytes) -> Report:
    """What a put says of a lease. Without a status or a signature it renews the copy and teaches nothing."""
    info = URLInfo.FromString(metadata)
    status, signature = _status(info), _first(info, SIGNATURE)
    failed = _first(info, CAUSE) is not None
    if date == 0 and failed:
        return Report(lease, status if status is not None and is_gone(status) else _GONE)
    if status is not None and status >= 400:
        return Report(lease, status)
    if failed or _first(info, ERRORS) is not None:
        return Report(lease, error="bad-response")
    if status in REDIRECTS:
        return Report(lease, 200, digest=_first(info, GOAL))
    if status == 304:
        return Report(lease, 304)
    if status is not None and failure_of(status, conditional=True) is not None:
        return Report(lease, status)
    return Report(lease, status or 200, digest=signature)


def says_gone(date: int, metadata: bytes) -> bool:
    """Whether a put says that a URL is gone."""
    return date == 0 and bool(metadata) and _first(URLInfo.FromString(metadata), CAUSE) is not None


def _first(info: Any, name: str) -> str | None:
    """The first value of a key, if there is one."""
    values = info.metadata[name].values if name in info.metadata else ()
    return str(values[0]) if values and values[0] else None


def _status(info: Any) -> int | None:
    """The status of the answer, if it is one of HTTP."""
    text = _first(info, STATUS) or ""
    return int(text) if len(text) == 3 and text.isascii() and text.isdigit() and 100 <= int(text) <= 599 else None
