"""Fetches of a command beside a crawl: the delays and holds of hosts are obeyed, those of the database too."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from recrawl.crawl.clock import Clock, SystemClock
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.http.fetched import Fetched, Fetcher
from recrawl.crawl.http.semantics import redirect_goal
from recrawl.crawl.polite.host_limiter import DELAY
from recrawl.engine.names.addresses import host_of
from recrawl.errors import ParameterError, StoreMissingError

_HOPS = 5  # redirects that are followed
_PATIENCE = 120.0  # seconds that a host may be held before the command gives up


class PoliteFetcher:
    """Fetches one URL after the other, each request no sooner than the delay of its host after the one before.

    ``delays`` and ``held_until`` are what is known of hosts. The fetcher behind it follows no redirects.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        delay: float,
        delays: Mapping[str, float] | None = None,
        held_until: Mapping[str, float] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._fetcher, self._delay, self._delays = fetcher, delay, dict(delays or {})
        self._free_at = dict(held_until or {})
        self._clock = clock or SystemClock()
        self.asked: dict[str, float] = {}  # hosts that were asked, and until when they rest

    async def fetch(self, url: str) -> Fetched:
        """Fetch a URL, with its redirects."""
        passed = [url]
        while True:
            fetched = await self._request(passed[-1])
            goal = redirect_goal(passed[-1], fetched)
            if goal is None:
                return fetched
            if goal in passed or len(passed) > _HOPS:
                raise ParameterError(f"{url}: redirects")
            passed.append(goal)

    async def _request(self, url: str) -> Fetched:
        host = host_of(url)
        wait = self._free_at.get(host, 0.0) - self._clock.now()
        if wait > _PATIENCE:
            until = datetime.fromtimestamp(self._free_at[host]).isoformat(" ", "seconds")
            raise ParameterError(f"{url}: its host is not asked until {until}, because of its failures or its budget")
        await self._clock.sleep(wait)
        try:
            return await self._fetcher.fetch(url)
        finally:
            rests = self._clock.now() + max(self._delay, self._delays.get(host, 0.0))
            self._free_at[host] = self.asked[host] = rests


def known_hosts(settings: Settings) -> tuple[dict[str, float], dict[str, float]]:
    """Of the hosts of a database the delays that they asked for, and until when they are held; empty without one."""
    from recrawl.store import BlockingStore, open_store

    try:
        opened = open_store(settings.database, exclusive=False, create=False)
    except StoreMissingError:
        return {}, {}
    with BlockingStore(opened) as store:
        rows = store.load([])
        delays = {name.removeprefix(DELAY): float(delay) for name, delay in store.notes(DELAY).items()}
    return delays, {} if rows is None else {host: until for host, (*_, until) in rows["hosts"].items()}
