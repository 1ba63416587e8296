"""Requests: a Scrapy request for each page that is picked."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from scrapy import Request, Spider
from twisted.python.failure import Failure

from recrawl.contrib.scrapy.answers import META
from recrawl.desk import Picked
from recrawl.errors import ParameterError
from recrawl.urls import canonical

HOOK = "recrawl_request"  # the spider's method that makes the request of a URL
ERRBACK = "recrawl_failed"  # the name under which the spider gets the errback of these requests


class Templates:
    """Makes requests: by the spider's own method, by its start requests, or plain ones.

    Their errback is a bound method of the spider, because Scrapy keeps only such in a JOBDIR.
    """

    def __init__(self, spider: Spider, failed: Callable[[Request, BaseException], None]) -> None:
        self._make: Callable[[str], Request] | None = getattr(spider, HOOK, None)
        self._start: dict[str, Request] = {}

        def errback(self: Spider, failure: Failure) -> Failure:
            request: Request = failure.request  # type: ignore[attr-defined]
            failed(request, failure.value or RuntimeError("a failure without an exception"))
            return failure

        self._errback: Any = MethodType(errback, spider)
        setattr(spider, ERRBACK, self._errback)

    def keep(self, request: Request) -> None:
        """A start request that says more than its URL is used whenever its page is picked."""
        if self._make is None and (request.callback or request.errback or request.meta or request.cb_kwargs):
            try:
                self._start[canonical(request.url)] = request
            except ParameterError:
                return

    def request(self, picked: Picked) -> Request:
        """The request of a page; it carries its lease."""
        known: dict[str, Any] = {"lease": picked.lease, "until": picked.until}
        if picked.etag is not None:
            known["etag"] = picked.etag
        if picked.last_modified is not None:
            known["last_modified"] = picked.last_modified
        made = self._start.get(picked.url) if self._make is None else self._make(picked.url)
        if made is None:
            return Request(picked.url, meta={META: known}, dont_filter=True, errback=self._errback)
        return made.replace(meta={**made.meta, META: known}, dont_filter=True, errback=made.errback or self._errback)
