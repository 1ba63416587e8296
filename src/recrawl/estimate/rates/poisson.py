"""Tests of constant change rates: dispersion, bursts, hours and weekdays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.observations import Observations

Array = NDArray[np.float64]

HOUR, DAY, WEEK = 3600.0, 86400.0, 604800.0
N_BLOCKS = 8
MIN_CHANGES = 8


@dataclass(frozen=True)
class PoissonLook:
    """Results of the tests of constant rates. Ratios are observed over expected changes; 1 = Poisson.

    ``dispersion`` per page is a χ² over eight blocks of its history per degree of freedom (0 for pages not tested);
    ``rejected`` the share of tested pages whose constant rate is rejected at 5%, ``burst`` the changes found right
    after a changed interval over those expected there. ``by_hour`` (UTC) and ``by_weekday`` (Monday first) use only
    intervals short enough to resolve them; n_hour and n_weekday are the numbers of these intervals.
    """

    dispersion: Array
    n_tested: int
    rejected: float
    burst: float
    by_hour: Array
    n_hour: int
    by_weekday: Array
    n_weekday: int


def poisson_look(observations: Observations, change_rate: ArrayLike, ended_at: ArrayLike | None = None) -> PoissonLook:
    """Compare outcomes with those expected at each page's constant rate; times in seconds since 1970, UTC.

    Expected changes of an interval: p = 1 − e^{−rate·t}. Dispersion: Σ_blocks (seen − Σp)²/Σp(1 − p)/(blocks − 1),
    on pages with at least 8 changes and 8 unchanged intervals. Seasonality: Σ changed·share_h/Σ p·share_h, scaled
    to mean 1, share_h = part of the interval that lies in hour (weekday) h.

    >>> seen = Observations([0, 2], [3600.0, 3600.0], [True, False])
    >>> poisson_look(seen, [2e-4]).n_tested
    0
    """
    rate = np.asarray(change_rate, np.float64)
    if rate.shape != (len(observations),):
        raise ParameterError(f"change_rate must have one row per page, {len(observations)}")
    page = observations.page
    expected = -np.expm1(-rate[page] * observations.interval)
    dispersion, tested, rejected = _dispersion(observations, page, expected)
    flat = np.ones(24), 0, np.ones(7), 0
    season = flat if ended_at is None else _seasons(observations, expected, np.asarray(ended_at, np.float64))
    return PoissonLook(dispersion, tested, rejected, _burst(observations, page, expected), *season)


def _dispersion(observations: Observations, page: NDArray[np.int64], expected: Array) -> tuple[Array, int, float]:
    from scipy.special import chdtrc

    n, seen = observations.n_crawls, observations.n_changes
    place = np.arange(len(page)) - observations.offset[page]
    block = page * N_BLOCKS + place * N_BLOCKS // np.maximum(n[page], 1)
    spread = expected * (1 - expected)
    sums = [
        np.bincount(block, weights=w, minlength=len(n) * N_BLOCKS) for w in (observations.changed - expected, spread)
    ]
    gap, variance = (s.reshape(len(n), N_BLOCKS) for s in sums)
    squares = np.divide(gap**2, variance, out=np.zeros_like(gap), where=variance > 1e-9).sum(axis=1)
    tested = (seen >= MIN_CHANGES) & (n - seen >= MIN_CHANGES) & (n >= 3 * N_BLOCKS)
    dispersion = np.where(tested, squares / (N_BLOCKS - 1), 0.0)
    count = int(tested.sum())
    against = chdtrc(N_BLOCKS - 1, squares[tested]) < 0.05
    return dispersion, count, float(against.mean()) if count else 0.0


def _burst(observations: Observations, page: NDArray[np.int64], expected: Array) -> float:
    """Observed over expected changes in intervals that follow a changed interval of the same page."""
    if len(page) < 2:
        return 1.0
    after = observations.changed[:-1] & (page[1:] == page[:-1])
    awaited = float(expected[1:][after].sum())
    return float(observations.changed[1:][after].sum()) / awaited if awaited > 0 else 1.0


def _seasons(observations: Observations, expected: Array, ended_at: Array) -> tuple[Array, int, Array, int]:
    if ended_at.shape != observations.interval.shape:
        raise ParameterError("ended_at must have one row per crawl")
    by_hour, n_hour = _season(observations, expected, ended_at, HOUR, 24, 8 * HOUR)
    # 1970-01-01 was a Thursday: three days after a Monday.
    by_day, n_day = _season(observations, expected, ended_at + 3 * DAY, DAY, 7, 2.5 * DAY)
    return by_hour, n_hour, by_day, n_day


def _season(
    observations: Observations, expected: Array, ended_at: Array, width: float, n_bins: int, longest: float
) -> tuple[Array, int]:
    """Observed over expected changes per bin of a cycle, scaled to mean 1. Intervals are split over their bins."""
    use = (observations.interval > 0) & (observations.interval <= longest)
    length, end = observations.interval[use], ended_at[use]
    first = np.floor((end - length) / width)
    seen, hoped = np.zeros(n_bins), np.zeros(n_bins)
    for step in range(int(longest / width) + 2):
        left = (first + step) * width
        share = np.clip(np.minimum(end, left + width) - np.maximum(end - length, left), 0.0, None) / length
        place = ((first + step) % n_bins).astype(np.int64)
        seen += np.bincount(place, weights=share * observations.changed[use], minlength=n_bins)
        hoped += np.bincount(place, weights=share * expected[use], minlength=n_bins)
    level = seen.sum() / hoped.sum() if seen.sum() > 0 else 1.0
    return np.divide(seen / level, hoped, out=np.ones(n_bins), where=hoped > 0), int(use.sum())
