"""The downloader middleware, outermost: validators out, the last answer in."""

from __future__ import annotations

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response

from recrawl.contrib.scrapy.answers import META, LeaseEnded, NotModified, is_success, lease_of, report_of
from recrawl.contrib.scrapy.session import Session, session_of

_VALIDATORS = {"etag": "If-None-Match", "last_modified": "If-Modified-Since"}


class RecrawlDownloaderMiddleware:
    """Sees each request before all others and its last answer after all others.

    An answer that is retried or redirected does not come here: the new request carries the lease on.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RecrawlDownloaderMiddleware:
        """The middleware of a crawler that has the add-on."""
        return cls(session_of(crawler))

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        """Set validators. A request of an earlier run whose lease has ended is dropped."""
        lease = lease_of(request)
        if lease is None:
            return
        if not await self._session.take_up(request, lease):
            raise LeaseEnded(f"the lease of {request.url} has ended")
        known = request.meta[META]
        for name, header in _VALIDATORS.items():
            if name not in known:
                continue
            if request.meta.get("redirect_times"):  # they belong to the page, not to what it redirects to
                request.headers.pop(header, None)
            else:
                request.headers.setdefault(header, known[name])

    async def process_response(self, request: Request, response: Response, spider: Spider | None = None) -> Response:
        """Record answers that are no copies. Those that are wait for their callback."""
        lease = lease_of(request)
        if lease is None or is_success(response):
            return response
        self._session.end(report_of(response, request, lease, {}))
        if response.status == 304:
            self._session.count("not_modified")
            raise NotModified(f"{request.url} is not modified")
        return response

    def process_exception(self, request: Request, exception: Exception, spider: Spider | None = None) -> None:
        """Record a request that has failed for good."""
        self._session.failed(request, exception)
