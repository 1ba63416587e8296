"""Answers: Scrapy's responses, exceptions and items as reports to the desk."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from itemadapter import ItemAdapter
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from recrawl.crawl.http.semantics import retry_after
from recrawl.desk import Report
from recrawl.desk.reports import MOST_REQUESTS

_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
META = "recrawl"  # the key of a request's meta under which its lease is

_FAILURES = {  # names of exceptions, those of Twisted and those of Scrapy since 2.14
    "CannotResolveHostError": "dns",
    "DNSLookupError": "dns",
    "DownloadConnectionRefusedError": "connect",
    "ConnectError": "connect",
    "DownloadTimeoutError": "timeout",
    "TimeoutError": "timeout",
    "DownloadCancelledError": "too-large",
    "CancelledError": "too-large",
    "DownloadFailedError": "reset",
    "ResponseDataLossError": "reset",
    "ResponseFailed": "reset",
    "ConnectionLost": "reset",
    "ConnectionDone": "reset",
    "UnsupportedURLSchemeError": "bad-url",
    "NotSupported": "bad-url",
}


class NotModified(IgnoreRequest):
    """The copy is still current; Scrapy logs no error of it."""


class LeaseEnded(IgnoreRequest):
    """A request of an earlier run whose lease is over."""


def lease_of(request: Request | None) -> str | None:
    """The lease that a request carries; None: it carries none."""
    found = None if request is None else request.meta.get(META)
    return found.get("lease") if isinstance(found, dict) else None


def is_success(response: Response) -> bool:
    """Whether an answer is a copy of the page, for the callback."""
    return 200 <= response.status < 300


def n_requests(request: Request) -> int:
    """Requests made for a page: the first, its retries and its redirects."""
    meta = request.meta
    return min(1 + int(meta.get("redirect_times", 0)) + int(meta.get("retry_times", 0)), MOST_REQUESTS)


def report_of(response: Response, request: Request, lease: str, changed_by: dict[str, Any]) -> Report:
    """The report of an answer; ``changed_by`` is what decides whether it is a change: body, digest or nothing."""
    now, meta, asked = time.time(), request.meta, _header(response, "retry-after")
    took = float(meta.get("download_latency", 0.0))
    return Report(
        lease,
        response.status,
        etag=_header(response, "etag"),
        last_modified=_header(response, "last-modified"),
        content_type=_header(response, "content-type"),
        final_url=response.url if meta.get("redirect_times") else None,
        fetched_at=now - took,
        took=took,
        requests=n_requests(request),
        retry_after=None if asked is None else retry_after({"retry-after": asked}, now),
        **changed_by,
    )


def failure_report(exception: BaseException, request: Request, lease: str) -> Report:
    """The report of a request without an answer."""
    if isinstance(exception, IgnoreRequest):  # another middleware refuses the page: robots.txt, other sites
        ended = request.meta.get("redirect_ttl") == 0  # Scrapy follows no more redirects
        return Report(lease, error="redirects" if ended else "robots", requests=n_requests(request) - (not ended))
    names = [kind.__name__ for kind in type(exception).__mro__]
    word = next((_FAILURES[name] for name in names if name in _FAILURES), "bad-response")
    return Report(lease, error=word, requests=n_requests(request))


def digest_of(items: Iterable[Any], ignored: frozenset[str]) -> str:
    """A digest of items and their order; fields by name, without those that do not count."""
    return _digest({name: value for name, value in _fields(item).items() if name not in ignored} for item in items)


def digest_of_all(digests: Sequence[str]) -> str:
    """The digest of a page whose items have these digests."""
    return _digest([{"items": digests}])


def _digest(tables: Iterable[Mapping[str, Any]]) -> str:
    hashed = hashlib.blake2b(digest_size=16)
    for table in tables:
        hashed.update(json.dumps(table, sort_keys=True, default=repr).encode() + b"\n")
    return hashed.hexdigest()


def _fields(item: Any) -> Mapping[str, Any]:
    """The fields of an item, also of items inside it; a plain table of plain values is what it is."""
    if type(item) is dict and all(type(value) in _PLAIN for value in item.values()):
        return item
    return ItemAdapter(item).asdict()


def _header(response: Response, name: str) -> str | None:
    value = response.headers.get(name)
    return None if value is None else value.decode("latin-1")
