"""A slow, plain twin of a group's excess rate; it imports nothing from the package."""

from __future__ import annotations

import math

BINS = 32


class Group:
    """Bins by number in dictionaries; everything is computed from them when asked."""

    def __init__(self, span: float, baseline: float, shrink: float) -> None:
        self.span, self.baseline, self.shrink = span, baseline, shrink
        self.excess: dict[int, float] = {}
        self.exposed: dict[int, float] = {}
        self.newest: int | None = None
        self.updated_at = -math.inf
        self.tail = self.tail_target = baseline

    def rate(self, b: int) -> float:
        known = max(self.excess.get(b, 0.0), 0.0) / self.span
        return (self.shrink * self.baseline + known) / (self.shrink + self.exposed.get(b, 0.0))

    def add_outcome(self, begin: float, end: float, own: float, weight: float, changed: bool) -> None:
        newest = math.floor(end / self.span)
        if self.newest is None:
            self.newest = newest
        for b in range(max(self.newest + 1, newest - BINS + 1), newest + 1):
            gone = b - BINS * math.ceil((b - self.newest) / BINS)  # the bin in whose place it comes
            self.tail_target += (self.rate(gone) - self.tail_target) / BINS
            self.excess.pop(gone, None)
            self.exposed.pop(gone, None)
        self.newest = max(newest, self.newest)
        self.tail = min(self.tail, self.tail_target)
        oldest = self.newest - BINS + 1
        pieces = {b: self._inside(b, begin, end) for b in range(oldest, self.newest + 1)}
        total = max(oldest * self.span - begin, 0.0) * (own + weight * self.tail)
        total += sum(time * (own + weight * self.rate(b)) for b, time in pieces.items())
        each = 1.0 / (1.0 - math.exp(-total)) if changed else 0.0
        more = {b: time * ((own + weight * self.rate(b)) * each - own) for b, time in pieces.items()}
        for b, time in pieces.items():
            self.excess[b] = self.excess.get(b, 0.0) + more[b]
            self.exposed[b] = self.exposed.get(b, 0.0) + time / self.span
        self.updated_at = end

    def _inside(self, b: int, begin: float, end: float) -> float:
        return max(min(end, (b + 1) * self.span) - max(begin, b * self.span), 0.0)

    def excess_since(self, since: float, now: float) -> float:
        if self.newest is None or since >= self.updated_at:
            return self.baseline * (now - since)
        oldest = self.newest - BINS + 1
        total = self.baseline * (now - self.updated_at) + self.tail * max(oldest * self.span - since, 0.0)
        return total + sum(
            self.rate(b) * self._inside(b, since, self.updated_at) for b in range(oldest, self.newest + 1)
        )


def fresh_value(x: float) -> float:
    """1 − e^{−x}(1 + x), by its series where that would cancel."""
    if x > 0.1:
        return 1.0 - math.exp(-x) * (1.0 + x)
    return math.exp(-x) * sum(x**k / math.factorial(k) for k in range(2, 20))
