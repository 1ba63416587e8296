"""Waiting: pages that wait for a time, because they failed, are gone or were deferred; and the timers behind it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]

FIRST_RETRY, LAST_RETRY = 60.0 / 86400.0, 7.0  # days until a failed page is tried again: doubling from and up to
FIRST_RECHECK, LAST_RECHECK = 30.0, 365.0  # days until a page that is gone is looked for again


_NONE = np.zeros(0, np.int64)


class Timers:
    """Times by number, and which come next."""

    def __init__(self) -> None:
        self._until: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._until)

    def __contains__(self, number: int) -> bool:
        return number in self._until

    def due(self, now: float) -> Ids:
        """The numbers whose time has come; they have none any longer."""
        if not self._heap or self._heap[0][0] > now:
            return _NONE
        found = []
        while self._heap and self._heap[0][0] <= now:
            at, number = heapq.heappop(self._heap)
            if self._until.get(number) == at:
                del self._until[number]
                found.append(number)
        return np.array(sorted(set(found)), np.int64)

    def next_at(self) -> float:
        """When the next time comes."""
        while self._heap and self._until.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else math.inf

    def until(self, number: int) -> float:
        """The time of a number (−infinity: it has none)."""
        return self._until.get(number, -math.inf)

    def times(self, numbers: list[int]) -> NDArray[np.float64]:
        """The times of numbers (−infinity: they have none)."""
        if not self._until:
            return np.full(len(numbers), -math.inf)
        return np.array([self._until.get(number, -math.inf) for number in numbers], np.float64)

    def set(self, number: int, until: float) -> None:
        """Give a number a time."""
        self._until[number] = until
        heapq.heappush(self._heap, (until, number))

    def drop(self, number: int) -> bool:
        """A number has no time any longer; whether it had one."""
        return self._until.pop(number, None) is not None

    def numbers(self) -> Ids:
        """The numbers that have a time."""
        return np.fromiter(self._until, np.int64, len(self._until))

    def items(self) -> list[tuple[int, float]]:
        """All numbers and their times."""
        return sorted(self._until.items())

    def saved(self) -> dict[str, NDArray[Any]]:
        """All numbers and their times, as columns."""
        return _columns_of(self._until, np.float64)

    def load(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Take over what was saved."""
        self._until = _mapping_of(saved)
        self._heap = [(until, number) for number, until in self._until.items()]
        heapq.heapify(self._heap)


class Waiting:
    """After the k-th failure in a row a page waits min(first·2^{k−1}, last); likewise each time it is found gone."""

    def __init__(self, day: float) -> None:
        self._day = day
        self._failed: dict[int, int] = {}
        self._gone: dict[int, int] = {}
        self._timers = Timers()

    def fail(self, page: int, now: float) -> None:
        """A crawl failed."""
        self._failed[page] = count = self._failed.get(page, 0) + 1
        self._timers.set(page, now + self._day * _doubled(FIRST_RETRY, count, LAST_RETRY))

    def lose(self, page: int, now: float) -> None:
        """A page was found to be gone."""
        self._gone[page] = count = self._gone.get(page, 0) + 1
        self._timers.set(page, now + self._day * _doubled(FIRST_RECHECK, count, LAST_RECHECK))

    def clear(self, page: int) -> None:
        """A crawl succeeded, or the page was removed: it waits no longer."""
        for column in (self._failed, self._gone):
            column.pop(page, None)
        self._timers.drop(page)

    def due(self, now: float) -> Ids:
        """The pages whose time has come; they wait no longer."""
        return self._timers.due(now)

    def next_at(self) -> float:
        """When the next page's time comes."""
        return self._timers.next_at()

    def failures(self, page: int) -> int:
        """Failures in a row."""
        return self._failed.get(page, 0)

    def times_gone(self, page: int) -> int:
        """How often in a row the page was found to be gone."""
        return self._gone.get(page, 0)

    def until(self, page: int) -> float:
        """When a page is tried again (−infinity: it does not wait)."""
        return self._timers.until(page)

    def columns(self, pages: list[int]) -> tuple[Ids, Ids, NDArray[np.float64]]:
        """Of pages: failures in a row, how often in a row they were found to be gone, when they are tried again."""
        failed, gone = (_counts(column, pages) for column in (self._failed, self._gone))
        return failed, gone, self._timers.times(pages)

    def counts(self) -> tuple[int, int]:
        """How many pages fail, and how many are gone."""
        return len(self._failed), len(self._gone)

    def put(self, page: int, failures: int, gone: int, until: float) -> None:
        """Take over what is known of a page."""
        for column, count in ((self._failed, failures), (self._gone, gone)):
            if count:
                column[page] = count
        if until > -math.inf:
            self._timers.set(page, until)

    def saved(self) -> dict[str, Any]:
        """Everything, as columns."""
        counts = {name: _columns_of(getattr(self, f"_{name}"), np.int64) for name in ("failed", "gone")}
        return {**counts, "until": self._timers.saved()}

    def load(self, saved: dict[str, Any]) -> None:
        """Take over what was saved."""
        self._failed, self._gone = _mapping_of(saved["failed"]), _mapping_of(saved["gone"])
        self._timers.load(saved["until"])


def _columns_of(mapping: Mapping[int, float], kind: type) -> dict[str, NDArray[Any]]:
    """Numbers, ascending, and what they have."""
    numbers = np.sort(np.fromiter(mapping, np.int64, len(mapping)))
    return {"numbers": numbers, "values": np.fromiter(map(mapping.__getitem__, numbers.tolist()), kind, len(mapping))}


def _mapping_of(columns: Mapping[str, NDArray[Any]]) -> dict[int, Any]:
    return dict(zip(columns["numbers"].tolist(), columns["values"].tolist(), strict=True))


def _counts(column: dict[int, int], pages: list[int]) -> Ids:
    """The entries of pages; 0 where there is none."""
    return np.array([column.get(page, 0) for page in pages], np.int64) if column else np.zeros(len(pages), np.int64)


def _doubled(first: float, count: int, last: float) -> float:
    return min(first * 2.0 ** min(count - 1, 60), last)
