"""Waiting: pages that wait for a time, because they failed, are gone or were deferred."""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]

FIRST_RETRY, LAST_RETRY = 60.0 / 86400.0, 7.0  # days until a failed page is tried again: doubling from and up to
FIRST_RECHECK, LAST_RECHECK = 30.0, 365.0  # days until a page that is gone is looked for again


class Waiting:
    """After the k-th failure in a row a page waits min(first·2^{k−1}, last); likewise each time it is found gone."""

    def __init__(self, day: float) -> None:
        self._day = day
        self._failed: dict[int, int] = {}
        self._gone: dict[int, int] = {}
        self._until: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []

    def fail(self, page: int, now: float) -> None:
        """A crawl failed."""
        self._failed[page] = count = self._failed.get(page, 0) + 1
        self._put(page, now + self._day * _doubled(FIRST_RETRY, count, LAST_RETRY))

    def lose(self, page: int, now: float) -> None:
        """A page was found to be gone."""
        self._gone[page] = count = self._gone.get(page, 0) + 1
        self._put(page, now + self._day * _doubled(FIRST_RECHECK, count, LAST_RECHECK))

    def clear(self, page: int) -> None:
        """A crawl succeeded, or the page was removed: it waits no longer."""
        for column in (self._failed, self._gone, self._until):
            column.pop(page, None)

    def due(self, now: float) -> Ids:
        """The pages whose time has come; they wait no longer."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            at, page = heapq.heappop(self._heap)
            if self._until.get(page) == at:
                del self._until[page]
                found.append(page)
        return np.array(sorted(set(found)), np.int64)

    def next_at(self) -> float:
        """When the next page's time comes."""
        while self._heap and self._until.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else math.inf

    def failures(self, page: int) -> int:
        """Failures in a row."""
        return self._failed.get(page, 0)

    def times_gone(self, page: int) -> int:
        """How often in a row the page was found to be gone."""
        return self._gone.get(page, 0)

    def until(self, page: int) -> float:
        """When a page is tried again (−infinity: it does not wait)."""
        return self._until.get(page, -math.inf)

    def counts(self) -> tuple[int, int]:
        """How many pages fail, and how many are gone."""
        return len(self._failed), len(self._gone)

    def put(self, page: int, failures: int, gone: int, until: float) -> None:
        """Take over what is known of a page."""
        for column, count in ((self._failed, failures), (self._gone, gone)):
            if count:
                column[page] = count
        if until > -math.inf:
            self._put(page, until)

    def saved(self) -> dict[str, Any]:
        """Everything, as lists."""
        return {name: sorted(getattr(self, f"_{name}").items()) for name in ("failed", "gone", "until")}

    def load(self, saved: dict[str, Any]) -> None:
        """Take over what was saved."""
        self._failed, self._gone = dict(saved["failed"]), dict(saved["gone"])
        for page, until in saved["until"]:
            self._put(page, until)

    def _put(self, page: int, until: float) -> None:
        self._until[page] = until
        heapq.heappush(self._heap, (until, page))


def _doubled(first: float, count: int, last: float) -> float:
    return min(first * 2.0 ** min(count - 1, 60), last)
