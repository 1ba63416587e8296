"""Page crawler: one crawl of a page, from robots.txt over redirects to the outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from recrawl.crawl.clock import Clock
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.http.cache_headers import fresh_for
from recrawl.crawl.http.fetched import Fetched, Fetcher
from recrawl.crawl.http.semantics import redirect_goal
from recrawl.crawl.polite.robots_gate import LONGEST_WAIT, RobotsGate
from recrawl.crawl.run.compare import Comparer, Hop
from recrawl.crawl.run.receive.handover import Handover
from recrawl.engine.names.addresses import host_of
from recrawl.store.protocol import Copy, Outcome, body_key

MOST_HOPS = 5
_PERMANENT = frozenset({301, 308})


@dataclass(frozen=True, slots=True)
class CrawlResult:
    """What a crawl came to: an outcome, or none where only robots.txt was read and the page is due again."""

    outcome: Outcome | None = None
    retry_at: float | None = None  # when a page that may not be fetched is tried again
    n_bytes: int = 0
    good_for: float | None = None  # seconds that the answer stays good, by its cache headers
    n_requests: int = 0  # for robots.txt alone, where there is no outcome


class PageCrawler:
    """Crawls one page at a time; ``is_page`` answers whether a URL is a page of its own."""

    def __init__(
        self,
        fetcher: Fetcher,
        gate: RobotsGate,
        comparer: Comparer,
        rules: Rules,
        clock: Clock,
        is_page: Callable[[str], bool],
    ) -> None:
        self._fetcher, self._gate, self._comparer, self._rules = fetcher, gate, comparer, rules
        self._clock, self._is_page = clock, is_page
        self._limiter, self._budget = gate.limiter, gate.budget
        self.handover: Handover | None = None  # of goals on hosts that this crawl does not ask
        self.on_fetched: Callable[[str, Fetched], None] | None = None  # gets the page and the last answer to a crawl
        self.on_changed: Callable[[str, Fetched], None] | None = None  # gets pages that are new or changed

    async def crawl(self, url: str, copy: Copy | None, *, full: bool = False) -> CrawlResult:
        """Crawl a page whose first request is paid for; with ``full`` it is fetched without validators."""
        began = self._clock.now()
        permission = await self._gate.check(url)
        if permission is None:
            return await self._read_robots(url, began)
        if not permission.allowed:
            return CrawlResult(Outcome(url, began, failure="robots", requests=0), permission.read_again_at)
        hop = Hop(url, url, began, full=full)
        while True:
            fetched = await self._fetch(hop, copy)
            goal = redirect_goal(hop.at, fetched)
            if goal is None:
                break
            if self.handover is not None and self.handover.is_foreign(goal):
                return CrawlResult(await self._handed_over(hop, goal, fetched, copy))
            failure = await self._follow(hop, goal, fetched.status)
            if failure is not None:
                return CrawlResult(self._stopped(hop, fetched, failure))
        if self.on_fetched is not None:
            self.on_fetched(url, fetched)
        good_for = fresh_for(fetched.headers, self._clock.now())
        outcome = await self._comparer.outcome(hop, fetched, copy)
        if self.on_changed is not None and outcome.fetched and outcome.changed is not False and fetched.body:
            self.on_changed(url, fetched)
        return CrawlResult(outcome, n_bytes=len(fetched.body), good_for=good_for)

    async def _read_robots(self, url: str, began: float) -> CrawlResult:
        """Read robots.txt: it is a request of its own, after which the host rests and the page is due again."""
        n = await self._gate.read(url)
        permission = await self._gate.check(url)
        if permission is None or not permission.unreachable:
            return CrawlResult(n_requests=n)
        return CrawlResult(Outcome(url, began, failure="robots", requests=n), permission.read_again_at)

    async def _fetch(self, hop: Hop, copy: Copy | None) -> Fetched:
        host = host_of(hop.at)
        async with self._limiter.request(host):
            if not hop.n_requests:
                hop.began = self._clock.now()
            etag, last_modified = self._comparer.validators(hop, copy)
            headers = self._rules.of(hop.at).headers
            fetched = await self._fetcher.fetch(hop.at, etag=etag, last_modified=last_modified, headers=headers or None)
        hop.n_requests += self._gate.settle(host, fetched)
        return fetched

    async def _follow(self, hop: Hop, goal: str, status: int) -> str | None:
        """Go where a redirect leads, if that is allowed; otherwise the failure."""
        hop.passed.append(hop.at)
        if goal in hop.passed or len(hop.passed) > MOST_HOPS:
            return "redirects"
        first = len(hop.passed) == 1
        hop.at = goal
        if first and status in _PERMANENT and self._is_page(goal):
            return "moved"
        permission = await self._gate.check(goal)
        if permission is None:
            await self._budget.further()
            self._limiter.charge(goal)
            hop.n_requests += await self._gate.read(goal)
            permission = await self._gate.check(goal)
        if permission is not None and not permission.allowed:
            return permission.failure
        elsewhere = host_of(goal) != host_of(hop.passed[-1])
        wait = self._limiter.start_wait(goal) if elsewhere else self._limiter.wait(host_of(goal))
        if wait > LONGEST_WAIT:
            return "busy"
        await self._budget.further()
        if elsewhere:
            await self._limiter.reserved(goal)
        else:
            self._limiter.charge(goal)
        return None

    async def _handed_over(self, hop: Hop, goal: str, fetched: Fetched, copy: Copy | None) -> Outcome:
        """The outcome of a redirect to a host that another crawl asks: the goal becomes a page of that crawl.

        A permanent redirect makes this page gone, as one to another page does. Of any other, the goal is the content.
        """
        assert self.handover is not None
        if not await self.handover.add(goal, hop.url, copy):
            return self._stopped(hop, fetched, "redirects")
        if not hop.passed and fetched.status in _PERMANENT:
            hop.at = goal
            return self._stopped(hop, fetched, "moved")
        there = replace(fetched, failure=None, final_url=goal, body=b"")
        return await self._comparer.outcome(hop, there, copy, digest=body_key(goal.encode()).hex())

    def _stopped(self, hop: Hop, fetched: Fetched, failure: str) -> Outcome:
        """The outcome of a redirect that was not followed; a permanent one to another page makes this page gone."""
        moved = failure == "moved"
        return Outcome(
            hop.url,
            hop.began,
            self._clock.now() - hop.began,
            fetched.status,
            failure=None if moved else failure,
            gone=moved,
            final_url=hop.at,
            requests=hop.n_requests,
        )
