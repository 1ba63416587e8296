"""A slow, plain twin of a group's clock; it imports nothing from the package."""

from __future__ import annotations

import math

import numpy as np

BINS = 64


class Clock:
    """Paces by the number of a bin in a dictionary; the pace at any time, and its integral piece by piece."""

    def __init__(self, span: float, memory: float, tail: float = 1.0) -> None:
        self.span, self.memory, self.tail, self.ahead = span, memory, tail, 1.0
        self.paces: dict[int, float] = {}
        self.updated_at = -math.inf

    def pace(self, time: float) -> float:
        """The pace at a time."""
        if not self.paces:
            return 1.0
        if time >= self.updated_at:
            return 1.0 + (self.ahead - 1.0) * math.exp(-(time - self.updated_at) / self.memory)
        return self.paces.get(math.floor(time / self.span), self.tail)

    def between(self, since: float, now: float) -> float:
        """Clock time from one time to another."""
        if now <= since:
            return 0.0
        if not self.paces:
            return now - since
        total = max(now, self.updated_at) - max(since, self.updated_at)
        first, last = (max(time - self.updated_at, 0.0) / self.memory for time in (since, now))
        total += (self.ahead - 1.0) * self.memory * (math.exp(-first) - math.exp(-last))
        end = min(now, self.updated_at)
        for b, pace in self.paces.items():
            total += pace * max(min(end, (b + 1) * self.span) - max(since, b * self.span), 0.0)
        return total + self.tail * max(min(end, min(self.paces) * self.span) - since, 0.0)

    def publish(self, paces: list[float], ahead: float, now: float) -> None:
        """New paces of the newest bins; the others keep their clock time."""
        newest = math.floor(now / self.span)
        kept = {}
        for b in range(newest - BINS + 1, newest + 1):
            length = min((b + 1) * self.span, now) - b * self.span
            kept[b] = self.between(b * self.span, min((b + 1) * self.span, now)) / length if length > 0 else 1.0
        kept |= {newest - len(paces) + 1 + k: pace for k, pace in enumerate(paces)}
        self.paces = {b: float(np.float32(pace)) for b, pace in kept.items()}
        self.updated_at, self.ahead = now, ahead
