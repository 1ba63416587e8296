"""Simulated pages for the estimation experiments; everything is seeded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.estimate import Observations, RateStream

Array = NDArray[np.float64]


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


def signalled_pages(n: int, horizon: float, rng: np.random.Generator) -> tuple[dict[str, Array], Observations]:
    """Appendix E: precision, recall ~ U[.2, .95], mean change interval ~ U[2, 20], crawl rate ¼ to 4 times the
    change rate."""
    true = {"precision": rng.uniform(0.2, 0.95, n), "recall": rng.uniform(0.2, 0.95, n)}
    rate = 1 / rng.uniform(2, 20, n)
    crawl_rate = rate * 2.0 ** rng.uniform(-2, 2, n)
    true |= {"change_rate": rate, "false_rate": true["recall"] * rate * (1 / true["precision"] - 1)}
    true["ratio"] = crawl_rate / rate
    gaps = [np.diff(np.sort(rng.uniform(0, horizon, rng.poisson(c * horizon))), prepend=0.0) for c in crawl_rate]
    interval = np.concatenate(gaps)
    page = np.repeat(np.arange(n), [len(g) for g in gaps])
    hits = rng.poisson((true["recall"] * rate)[page] * interval)
    missed = rng.poisson(((1 - true["recall"]) * rate)[page] * interval)
    signals = hits + rng.poisson(true["false_rate"][page] * interval)
    return true, Observations.from_pages(page, interval, hits + missed > 0, signals, n_pages=n)
