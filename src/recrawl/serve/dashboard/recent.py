"""The last crawls of a running crawl, in memory: what the live feed shows."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from recrawl.store.protocol import Outcome

_KEPT = 500  # crawls
KINDS = ("changed", "unchanged", "new", "failed", "gone")


class Crawled(NamedTuple):
    """One crawl that ended."""

    number: int
    at: float
    url: str
    kind: str  # one of KINDS
    status: int | None
    reason: str | None  # of a failure
    took: float


class RecentCrawls:
    """Listens to a crawl and keeps its last outcomes, the newest first."""

    def __init__(self) -> None:
        self._crawls: deque[Crawled] = deque(maxlen=_KEPT)
        self.last = 0  # number of the newest

    def __call__(self, name: str, fields: Mapping[str, Any]) -> None:
        """Something happened in the crawl."""
        if name == "crawled":
            one: Outcome = fields["outcome"]
            self.last += 1
            crawled = Crawled(self.last, one.began_at, one.url, kind_of(one), one.status, one.failure, one.took)
            self._crawls.appendleft(crawled)

    def after(self, number: int = 0, most: int = 100) -> list[Crawled]:
        """The crawls after a number, the newest first."""
        return [one for one in self._crawls if one.number > number][:most]


def kind_of(outcome: Outcome) -> str:
    """What a crawl came to, in one word of KINDS."""
    if outcome.gone:
        return "gone"
    if outcome.failure is not None:
        return "failed"
    return "new" if outcome.changed is None else "changed" if outcome.changed else "unchanged"
