"""Limits of signals per speaker: token buckets for seconds and days, in a bounded table."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field

from recrawl.crawl.signals.sources import Source

_DAY = 86400.0
_BURST = 10.0  # seconds of signals that may come at once
SPEAKERS = 10_000  # that are remembered


@dataclass(frozen=True)
class Limit:
    """Signals that one speaker may send: on average per second, and per day.

    >>> Limit(per_second=5.0).burst
    100.0
    """

    per_second: float = 2000.0
    per_day: float = 5_000_000.0

    @property
    def burst(self) -> float:
        """Signals that may come at once."""
        return min(max(self.per_second * _BURST, 100.0), self.per_day)


@dataclass
class _Bucket:
    """What is left, and when it was counted."""

    rate: float
    most: float
    left: float
    at: float

    def fill(self, now: float) -> None:
        self.left = min(self.most, self.left + max(now - self.at, 0.0) * self.rate)
        self.at = max(now, self.at)

    def wait(self, n: float) -> float:
        if n <= self.left:
            return 0.0
        return math.inf if n > self.most else (n - self.left) / self.rate


@dataclass
class Limits:
    """The buckets of all speakers; of more than ``most`` speakers the one that was silent longest is forgotten.

    >>> limits = Limits(Limit(per_second=10.0, per_day=1000.0))
    >>> cms = Source("webhook", "cms")
    >>> limits.take(cms, 100, now=0.0)
    >>> limits.wait(cms, 20, now=0.0), limits.left(cms, now=1.0)
    (2.0, 10)
    """

    limit: Limit = field(default_factory=Limit)
    own: dict[Source, Limit] = field(default_factory=dict)  # of single speakers
    most: int = SPEAKERS
    _buckets: OrderedDict[Source, tuple[_Bucket, _Bucket]] = field(default_factory=OrderedDict)

    def of(self, source: Source) -> Limit:
        """The limit of a speaker."""
        return self.own.get(source, self.limit)

    def set(self, source: Source, limit: Limit | None) -> None:
        """Give a speaker a limit of its own, or take it away."""
        self._buckets.pop(source, None)
        if limit is None:
            self.own.pop(source, None)
        else:
            self.own[source] = limit

    def wait(self, source: Source, n: int, now: float) -> float:
        """The seconds until a speaker may send n signals; infinity if it never may."""
        return max(bucket.wait(n) for bucket in self._of(source, now))

    def take(self, source: Source, n: int, now: float) -> None:
        """A speaker sends n signals."""
        for bucket in self._of(source, now):
            bucket.left -= n

    def left(self, source: Source, now: float) -> int:
        """How many signals a speaker may send now."""
        return int(min(bucket.left for bucket in self._of(source, now)))

    def _of(self, source: Source, now: float) -> tuple[_Bucket, _Bucket]:
        found = self._buckets.get(source)
        if found is None:
            limit = self.of(source)
            day = _Bucket(limit.per_day / _DAY, limit.per_day, limit.per_day, now)
            found = self._buckets[source] = (_Bucket(limit.per_second, limit.burst, limit.burst, now), day)
            if len(self._buckets) > self.most:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(source)
        for bucket in found:
            bucket.fill(now)
        return found
