"""The last crawls of a running crawl, in memory: what the live feed shows."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from recrawl.serve.crawls.view import Crawled, kind_of
from recrawl.store.protocol import Outcome

_KEPT = 500  # crawls


class RecentCrawls:
    """Listens to a crawl and keeps its last outcomes, the newest first."""

    def __init__(self) -> None:
        self._crawls: deque[Crawled] = deque(maxlen=_KEPT)
        self._last = 0  # number of the newest

    def __call__(self, name: str, fields: Mapping[str, Any]) -> None:
        """Something happened in the crawl."""
        if name == "crawled":
            self._last += 1
            self._crawls.appendleft(crawled(self._last, fields["outcome"]))

    def crawls(self) -> list[Crawled]:
        """All that are kept, the newest first."""
        return list(self._crawls)


def crawled(number: int, one: Outcome) -> Crawled:
    """An outcome as the live feed shows it."""
    return Crawled(number, one.began_at, one.url, kind_of(one), one.status, one.failure, one.took)
