"""The spider middleware: picks in, what callbacks yield out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response

from recrawl.contrib.scrapy.answers import META, digest_of, digest_of_all, is_success, lease_of, report_of
from recrawl.contrib.scrapy.requests import NotRepeatable
from recrawl.contrib.scrapy.session import Session, session_of
from recrawl.errors import RecrawlError
from recrawl.logs import event_line

log = logging.getLogger(__name__)
_MANY = 1000  # start requests that are added at once


class RecrawlSpiderMiddleware:
    """Feeds picks to the spider, and tells from its callbacks what has changed."""

    def __init__(self, crawler: Crawler, session: Session) -> None:
        self._crawler, self._session = crawler, session
        self._warned = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RecrawlSpiderMiddleware:
        """The middleware of a crawler that has the add-on."""
        return cls(crawler, session_of(crawler))

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """The spider's own start, its requests as pages; then picks, for as long as the spider is open."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            error = "needs asyncio: leave TWISTED_REACTOR at its default, AsyncioSelectorReactor"
            event_line(log, logging.ERROR, "scrapy.failed", error=error)
            return
        try:
            await self._session.open()
            async for one in start:
                if isinstance(one, Request) and self._is_page(one) and self._session.options.start:
                    await self._add(one)
                else:
                    yield one
            await self._session.outbox.flush()
            async for request in self._session.requests():
                yield request
        except RecrawlError as problem:  # the spider ends
            self._session.complain(problem)

    async def _add(self, request: Request) -> None:
        """A start request as a page."""
        self._session.templates.keep(request)
        self._session.outbox.add([request.url])

    def _is_page(self, request: Request) -> bool:
        """Whether a request can be a page: anybody may repeat it, and the spider did not keep it for itself."""
        return request.method == "GET" and not request.body and request.meta.get(META) is not False

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any], spider: Spider | None = None
    ) -> AsyncIterator[Any]:
        """What a callback yields; when it has ended, what came of the page is recorded."""
        lease, items, whole = lease_of(response.request), list[str](), False
        if not await self._session.is_usable():
            async for one in result:
                yield one
            return
        try:
            async for one in result:
                if isinstance(one, Request):
                    if lease_of(one) is not None:  # a callback that passes its meta on does not pass the lease on
                        one.meta.pop(META)
                    if self._session.options.links and self._is_page(one) and self._found(one):
                        continue
                elif one is not None and lease is not None and self._session.options.change == "items":
                    items.append(digest_of([one], self._session.options.ignored))
                yield one
            whole = True
        finally:
            if lease is not None:
                self._end(response, lease, items if whole else None)

    def process_spider_exception(self, response: Response, exception: Exception, spider: Spider | None = None) -> None:
        """A callback has failed: the page was fetched; its items say nothing."""
        lease = lease_of(response.request)
        if lease is not None:
            self._end(response, lease, None)

    def _end(self, response: Response, lease: str, items: list[str] | None) -> None:
        if not is_success(response) or not self._session.is_open(lease):
            return
        assert response.request is not None
        by: dict[str, Any] = {"body": response.body}
        if self._session.options.change == "items":
            by = {} if items is None else {"digest": digest_of_all(items)}
        self._session.end(report_of(response, response.request, lease, by))

    def _found(self, request: Request) -> bool:
        """A link: its page is added if it is of the spider's sites. False: it can only be requested by this run."""
        sites = getattr(self._crawler.spider, "allowed_domains", None) or ()
        host = (urlsplit(request.url).hostname or "").lower()
        if sites and not any(host == site.lower() or host.endswith(f".{site.lower()}") for site in sites):
            return True
        try:
            form = self._session.templates.form(request)
        except NotRepeatable as why:
            if not self._warned:
                self._warned = True
                event_line(log, logging.WARNING, "scrapy.fetched_once", url=request.url, reason=str(why))
            return False
        for url in self._session.outbox.add([request.url]):
            self._session.templates.found(url, form)
        return True
