"""Requests: a Scrapy request for each page that is picked."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from types import MethodType
from typing import Any

from scrapy import Request, Spider
from twisted.python.failure import Failure

from recrawl.contrib.scrapy.answers import META, LeaseEnded, NotModified
from recrawl.contrib.scrapy.request_file import RequestFile
from recrawl.desk import Picked
from recrawl.errors import ParameterError
from recrawl.logs import event_line
from recrawl.urls import canonical

log = logging.getLogger(__name__)
HOOK = "recrawl_request"  # the spider's method that makes the request of a URL
ERRBACK = "recrawl_failed"  # the name under which the spider gets the errback of these requests
_PASSING = frozenset(  # what Scrapy notes in the meta of a single request
    {META, "download_latency", "download_slot", "is_start_request", "retry_times"}
    | {f"redirect_{name}" for name in ("times", "ttl", "urls", "reasons")}
)


class NotRepeatable(Exception):
    """A request that a later run cannot make again; says why."""


class Templates:
    """Makes requests: by the spider's own method, by its start requests, as links were found, or plain ones.

    Their errback is a bound method of the spider, because Scrapy keeps only such in a JOBDIR. It calls the errback
    that the request has of its own.
    """

    def __init__(self, spider: Spider, failed: Callable[[Request, BaseException], None]) -> None:
        self._make: Callable[[str], Request] | None = getattr(spider, HOOK, None)
        self._spider = spider
        self._file: RequestFile
        self._start: dict[str, Request] = {}
        self._found: dict[str, str] = {}  # forms of links that are not in the file
        self._missing: set[str] = set()
        self._dropped = _PASSING

        def errback(self: Spider, failure: Failure) -> Any:
            request: Request = failure.request  # type: ignore[attr-defined]
            failed(request, failure.value or RuntimeError("a failure without an exception"))
            own = (request.meta.get(META) or {}).get("errback")
            if own is None or isinstance(failure.value, NotModified | LeaseEnded):
                return failure
            return getattr(self, own)(failure)

        self._errback: Any = MethodType(errback, spider)
        setattr(spider, ERRBACK, self._errback)

    def open(self, file: RequestFile, *, depth: bool) -> None:
        """Use a file for links; ``depth``: whether their depth is kept, for DEPTH_LIMIT."""
        self._file, self._dropped = file, _PASSING if depth else _PASSING | {"depth"}

    def keep(self, request: Request) -> None:
        """A start request that says more than its URL is used whenever its page is picked."""
        if self._make is None and (request.callback or request.errback or request.meta or request.cb_kwargs):
            try:
                self._start[canonical(request.url)] = request
            except ParameterError:
                return

    # --- links --------------------------------------------------------------------------------------------------------

    def form(self, request: Request) -> str | None:
        """How a link is requested, as JSON; None if its URL says all. NotRepeatable if only this run can request it."""
        if self._make is not None:
            return None
        headers = request.headers.to_unicode_dict()
        form = {
            "callback": self._named(request.callback, "callback"),
            "errback": self._named(request.errback, "errback"),
            "cb_kwargs": request.cb_kwargs,
            "meta": {name: value for name, value in request.meta.items() if name not in self._dropped},
            "headers": {name: value for name, value in headers.items() if name != "Referer"},
        }
        form = {name: value for name, value in form.items() if value}
        try:
            text = json.dumps(form)
        except (TypeError, ValueError, RecursionError) as problem:
            raise NotRepeatable(f"cb_kwargs, meta or headers are no JSON: {problem}") from None
        return text if form else None

    def found(self, url: str, form: str | None) -> None:
        """A link was found whose page is new in this run."""
        if form is not None:
            self._found[url] = form

    def write(self) -> None:
        """Write what links say to the file; before their pages are added."""
        found, self._found = self._found, {}
        self._file.keep(found.items())

    def close(self) -> None:
        """Close the file of links."""
        self._file.close()

    def _named(self, method: Any, what: str) -> str | None:
        """The name of a method of the spider."""
        if method is None:
            return None
        name = getattr(method, "__name__", "")
        if getattr(method, "__self__", None) is not self._spider or not hasattr(self._spider, name):
            raise NotRepeatable(f"its {what} {name or method!r} is no method of the spider")
        return name

    def _form(self, url: str) -> dict[str, Any]:
        """How the page of a link was requested when it was found; nothing is known of other pages."""
        text = self._file.form(url) if self._make is None else None
        if text is None:
            return {}
        form: dict[str, Any] = json.loads(text)
        for what in ("callback", "errback"):
            if what in form:
                form[what] = self._method(form[what], what, url)
        if form.get("callback") is None:
            form.pop("cb_kwargs", None)
        return form

    def _method(self, name: str, what: str, url: str) -> Any:
        """A method of the spider; None if it has it no longer."""
        found = getattr(self._spider, name, None)
        if found is None and name not in self._missing:
            self._missing.add(name)
            event_line(log, logging.WARNING, "scrapy.method_missing", method=name, what=what, url=url)
        return found

    # --- picks --------------------------------------------------------------------------------------------------------

    def request(self, picked: Picked) -> Request:
        """The request of a page; it carries its lease."""
        known: dict[str, Any] = {"lease": picked.lease, "until": picked.until}
        if picked.etag is not None:
            known["etag"] = picked.etag
        if picked.last_modified is not None:
            known["last_modified"] = picked.last_modified
        made = self._start.get(picked.url) if self._make is None else self._make(picked.url)
        form: dict[str, Any] = {} if made is None else {"meta": made.meta, "errback": made.errback}
        if made is None:
            form = self._form(picked.url)
        form |= {"errback": self._errback_of(form.get("errback"), known), "dont_filter": True}
        form["meta"] = {**form.get("meta", {}), META: known}
        return Request(picked.url, **form) if made is None else made.replace(**form)

    def _errback_of(self, own: Any, known: dict[str, Any]) -> Any:
        """The errback of a request that has one of its own or none; noted in what its meta says."""
        if own is not None:
            try:
                known["errback"] = self._named(own, "errback")
            except NotRepeatable:  # of a start request: it is called alone
                return own
        return self._errback
