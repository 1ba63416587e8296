"""Simulated pages for the estimation experiments; everything is seeded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.estimate import Observations, RateStream
from recrawl.reproduce.busafekete2025.quality import signalled_pages

Array = NDArray[np.float64]

__all__ = ["Array", "fixed_pattern", "outcomes", "self_chosen", "signalled_pages", "table"]


def outcomes(rng: np.random.Generator, rate: Array, interval: Array) -> NDArray[np.bool_]:
    """Whether a page of this rate changes within the interval."""
    return rng.random(interval.shape) < -np.expm1(-rate * interval)


def table(interval: Array, changed: NDArray[np.bool_]) -> Observations:
    """Rows of equal length as observations."""
    n, k = interval.shape
    return Observations(np.arange(n + 1) * k, interval.ravel(), changed.ravel())


def fixed_pattern(name: str, n: int, k: int, rng: np.random.Generator) -> Array:
    """Intervals in days: every day, exponential with mean 1, or spread over two decades around 1."""
    if name == "daily":
        return np.ones((n, k))
    if name == "exponential":
        return rng.exponential(1.0, (n, k))
    return 10.0 ** rng.uniform(-1, 1, (n, k))


def self_chosen(stream: RateStream, rate: Array, k: int, rng: np.random.Generator, ratio: float = 1.0) -> Observations:
    """k crawls per page at intervals that follow the stream's own estimate: interval = ratio/estimate."""
    n = len(rate)
    interval, changed = np.empty((n, k)), np.empty((n, k), bool)
    for i in range(k):
        interval[:, i] = ratio / stream.change_rate
        changed[:, i] = outcomes(rng, rate, interval[:, i])
        stream.update(np.arange(n), interval[:, i], changed[:, i])
    return table(interval, changed)
