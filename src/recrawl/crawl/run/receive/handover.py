"""Handover: where a page redirects to a host that another crawl asks, the goal becomes a page of that crawl."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from recrawl.crawl.clock import Clock
from recrawl.crawl.config.options import Others
from recrawl.crawl.run.commands import add_command
from recrawl.engine.names.addresses import host_of
from recrawl.store.protocol import Copy

MOST = 1000  # goals of the pages of one host, a day
_DAY = 86400.0


class Handover:
    """Adds goals as pages of other crawls, with the importance of the page that leads there; bounded by day."""

    def __init__(self, others: Others, importance_of: Callable[[str], float], clock: Clock) -> None:
        self._others, self._importance_of, self._clock = others, importance_of, clock
        self._day, self._today = -1, Counter[str]()

    def is_foreign(self, url: str) -> bool:
        """Whether another crawl asks the host of a URL."""
        return self._others.has(url)

    async def add(self, goal: str, page: str, copy: Copy | None) -> bool:
        """Let a goal be a page of its crawl, unless the page has led there already; False if its host has too many.

        A goal that the user has removed is not added again as long as the page leads there.
        """
        if copy is not None and copy.final_url == goal:
            return True
        day, host = int(self._clock.now() // _DAY), host_of(page)
        if day != self._day:
            self._day, self._today = day, Counter()
        if self._today[host] >= MOST:
            return False
        self._today[host] += 1
        await self._others.send(goal, add_command([goal], self._importance_of(page)))
        return True
