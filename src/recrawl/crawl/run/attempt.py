"""Attempts: crawls that run in slots, each recorded and counted when it ends."""

from __future__ import annotations

import asyncio

from recrawl.crawl.polite.host_limiter import HOST_FAILURES
from recrawl.crawl.run.opening.components import Components
from recrawl.crawl.run.page_crawler import CrawlResult
from recrawl.engine.names.addresses import host_of
from recrawl.errors import RecrawlError
from recrawl.store.protocol import Copy, Outcome

Copies = asyncio.Task[dict[str, Copy]]  # the copies of the pages that start together


class Attempts:
    """Runs crawls; a mistake in a fetcher or detector is that page's failure, not the end of the run."""

    def __init__(self, components: Components) -> None:
        self._components = components
        self._engine, self._audits = components.engine, components.audits
        self._slots, self._counters, self._clock = components.slots, components.counters, components.clock

    def begin(self, page: int, url: str, copies: Copies, *, audit: bool = False) -> asyncio.Task[bool]:
        """Start a crawl; the task answers whether the page was crawled, and not only the robots.txt of its host."""
        self._counters.started += 1
        self._components.inbox.began(page)
        return self._components.pool.begin(self._attempt(page, url, copies, audit))

    async def _attempt(self, page: int, url: str, copies: Copies, audit: bool) -> bool:
        result, copy = CrawlResult(), None
        try:
            result, copy = await self._in_slot(url, copies, full=audit)
        finally:
            if audit and result.outcome is None:
                self._audits.retry(url, result.n_requests)
            elif result.outcome is None and self._engine.addresses.known([url])[0] == page:
                self._engine.release([page], self._clock.now())
        if result.outcome is None:
            self._components.inbox.ended([page])
            self._counters.requests += result.n_requests
            return False
        if audit:
            self._audits.ended(page, result.outcome, self._clock.now())
        self._components.recorder.ended(page, result.outcome, copy, result.retry_at, result.good_for)
        self._counters.add(result.outcome, result.n_bytes, host_of(url))
        self._components.report("crawled", outcome=result.outcome)
        if result.outcome.failure == "robots" and result.outcome.requests:
            self._unreachable(url, result.retry_at)
        return True

    def _unreachable(self, url: str, retry_at: float | None) -> None:
        """The robots.txt of a page's host was asked for and could not be read."""
        robots, now = self._components.robots, self._clock.now()
        rule = None if robots is None else robots.cached_rule(url)
        if rule is not None and rule.unreachable is not None:
            self._components.report.robots_unreachable(host_of(url), rule.unreachable, (retry_at or now) - now)

    async def _in_slot(self, url: str, copies: Copies, *, full: bool) -> tuple[CrawlResult, Copy | None]:
        """The result of a crawl, and the copy that it was compared with."""
        began, host, copy = self._clock.now(), host_of(url), None
        limit, answered = asyncio.timeout(None), False
        try:
            async with limit:
                with self._slots.taken(host, began, limit):
                    copy = (await asyncio.shield(copies)).get(url)
                    result = await self._components.page_crawler.crawl(url, copy, full=full)
            answered = result.outcome is None or result.outcome.failure not in HOST_FAILURES
        except RecrawlError:
            raise
        except Exception as problem:
            failure = self._failure(url, problem, limit)
            result = CrawlResult(Outcome(url, began, self._clock.now() - began, failure=failure))
        self._slots.ended(host, self._clock.now() - began, answered=answered)
        return result, copy

    def _failure(self, url: str, problem: Exception, limit: asyncio.Timeout) -> str:
        """The failure of a crawl that was ended for others, or in which there is a mistake."""
        if limit.expired():
            self._components.limiter.failed(host_of(url), busy=False)
            return "timeout"
        self._counters.errors += 1
        self._components.report("error", url=url, problem=problem)
        return f"error: {type(problem).__name__}"
