"""Medians with intervals, and paired tests, as Han et al. 2020 report them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Median(NamedTuple):
    """A median with its 95% interval."""

    value: float
    low: float
    high: float


def median_interval(values: ArrayLike, level: float = 0.95) -> Median:
    """The median, with an interval from order statistics: no distribution is assumed.

    >>> median_interval(range(1, 12))
    Median(value=6.0, low=2.0, high=10.0)
    """
    from scipy.stats import binom

    x = np.sort(_known(values))
    if len(x) == 0:
        return Median(np.nan, np.nan, np.nan)
    below = int(binom.ppf((1 - level) / 2, len(x), 0.5))
    low = max(below - 1, 0)
    return Median(float(np.median(x)), float(x[low]), float(x[len(x) - 1 - low]))


def wilcoxon(a: ArrayLike, b: ArrayLike) -> float:
    """p value of the two-sided signed-rank test that paired values do not differ; 1 where none differs.

    >>> wilcoxon([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    1.0
    """
    from scipy.stats import wilcoxon as signed_rank

    x, y = np.asarray(a, np.float64).ravel(), np.asarray(b, np.float64).ravel()
    known = ~(np.isnan(x) | np.isnan(y))
    difference = (x - y)[known]
    if not np.any(difference):
        return 1.0
    return float(signed_rank(difference, method="approx").pvalue)


def increase(ours: ArrayLike, other: ArrayLike) -> dict[str, Any]:
    """By how much paired values exceed others: the median difference and increase in %, intervals, p value."""
    x, y = np.asarray(ours, np.float64).ravel(), np.asarray(other, np.float64).ravel()
    with np.errstate(divide="ignore", invalid="ignore"):
        percent = np.where(y > 0, 100 * (x / y - 1), np.nan)
    return {"difference": median_interval(x - y), "percent": median_interval(percent), "p": wilcoxon(x, y)}


def _known(values: ArrayLike) -> NDArray[np.float64]:
    x = np.asarray(values, np.float64).ravel()
    return x[~np.isnan(x)]
