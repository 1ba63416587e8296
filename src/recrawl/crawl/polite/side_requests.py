"""Side requests: what a crawl asks of the web beside its pages, as politely: key files and hubs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from recrawl.crawl.clock import Clock
from recrawl.crawl.http.fetched import Fetched, Fetcher, Poster, Sink, Streamer
from recrawl.crawl.http.semantics import redirect_goal
from recrawl.crawl.polite.robots_gate import LONGEST_WAIT, RobotsGate
from recrawl.engine.names.addresses import host_of
from recrawl.urls import canonical

MOST_HOPS = 5


class SideRequests:
    """Requests that wait for the budget and for their host like those of crawls, and are counted like them.

    ``counted`` is called with the number of requests made. The fetcher follows no redirects: this does.
    """

    def __init__(self, fetcher: Fetcher, gate: RobotsGate, clock: Clock, counted: Callable[[int], None]) -> None:
        self._fetcher, self._gate, self._clock, self._counted = fetcher, gate, clock, counted
        self._limiter, self._budget = gate.limiter, gate.budget

    @property
    def can_post(self) -> bool:
        """Whether the fetcher can send forms."""
        return isinstance(self._fetcher, Poster)

    def wait(self, url: str) -> float:
        """Seconds until the host of a URL may be asked, as far as is known now."""
        return self._limiter.start_wait(canonical(url))

    async def get(
        self, url: str, *, etag: str | None = None, last_modified: str | None = None, sink: Sink | None = None
    ) -> Fetched:
        """Fetch a URL as far as robots.txt allows; redirects are followed within the host.

        The validators are sent with each request: they are those of the last answer, after redirects. The body goes
        to the ``sink`` while it is read, if the fetcher can do that.
        """
        passed = [canonical(url)]

        async def fetch(at: str) -> Fetched:
            if sink is None or not isinstance(self._fetcher, Streamer):
                return await self._fetcher.fetch(at, etag=etag, last_modified=last_modified)
            return await self._fetcher.stream(at, sink, etag=etag, last_modified=last_modified)

        while True:
            at = passed[-1]
            failure = await self._forbidden(at)
            if failure is not None:
                return self._failed(at, failure)
            fetched = await self._made(at, fetch)
            goal = redirect_goal(at, fetched)
            if goal is None or goal in passed or len(passed) > MOST_HOPS or host_of(goal) != host_of(url):
                return fetched
            passed.append(goal)

    async def post(self, url: str, form: Mapping[str, str], sent: Callable[[], None]) -> Fetched:
        """Send a form to a URL, and where it is redirected to with the same method; robots.txt is about crawls.

        ``sent`` is called when the request begins: before, it may wait for the budget for long.
        """
        fetcher, passed = self._fetcher, [canonical(url)]
        assert isinstance(fetcher, Poster)

        async def send(at: str) -> Fetched:
            sent()
            return await fetcher.post(at, form)

        while True:
            at = passed[-1]
            fetched = await self._made(at, send)
            goal = redirect_goal(at, fetched)
            if goal is None or goal in passed or len(passed) > MOST_HOPS:
                return fetched
            passed.append(goal)

    async def _forbidden(self, url: str) -> str | None:
        """The failure of a URL that robots.txt does not allow; robots.txt is read first where that was not done."""
        permission = await self._gate.check(url)
        if permission is None:
            await self._budget.further()
            await self._limiter.reserved(url)
            self._counted(await self._gate.read(url))
            permission = await self._gate.check(url)
        return None if permission is None else permission.failure

    async def _made(self, url: str, make: Callable[[str], Awaitable[Fetched]]) -> Fetched:
        """Make one request when budget and host allow it; a host that must be waited for too long is busy."""
        host = host_of(url)
        if self._limiter.start_wait(url) > LONGEST_WAIT:
            return self._failed(url, "busy")
        await self._budget.further()
        await self._limiter.reserved(url)
        async with self._limiter.request(host):
            fetched = await make(url)
        self._counted(self._gate.settle(host, fetched))
        return fetched

    def _failed(self, url: str, failure: str) -> Fetched:
        return Fetched(url, url, 0, self._clock.now(), 0.0, failure=failure)
