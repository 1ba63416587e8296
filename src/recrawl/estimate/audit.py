"""Audits: the true freshness of copies from a random sample, and whether a forecast agrees with the sample.

Pages are drawn with replacement in proportion to importance. The probability that a draw finds a fresh copy is then the
freshness, whatever the importances are. The number of fresh draws is binomial, and the interval of Clopper and Pearson
holds the true freshness with at least its level, for every freshness and sample size.

Where pages are in strata, such as shards, draws are divided in proportion to importance (`allocate`) and the audits of
the strata put together (`stratified`). The share of fresh draws then varies less than a binomial one, so that the same
interval holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NotRequired, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

UNLIKELY = 0.01  # p-value below which forecasts and audits disagree
POOLED = (1, 10, 50)  # numbers of recent audits that are tested together
_FARTHEST = 8.0  # standard errors; larger surprises are cut


def draw_pages(importance: ArrayLike, n: int, rng: np.random.Generator) -> Ids:
    """n rows drawn with replacement in proportion to importance.

    >>> draw_pages([0.0, 2.0, 0.0], 3, np.random.default_rng(1)).tolist()
    [1, 1, 1]
    """
    total = np.cumsum(np.asarray(importance, np.float64))
    if not len(total) or not 0 < total[-1] < np.inf:
        raise ParameterError("importance is 0 on every page: there is nothing to audit")
    return np.asarray(np.searchsorted(total, rng.random(n) * total[-1], side="right"), np.int64)


def allocate(weights: ArrayLike, n: int, rng: np.random.Generator) -> Ids:
    """n draws divided in proportion to weights: each gets its part rounded down or up, on average its part.

    >>> allocate([2.0, 0.0, 2.0], 8, np.random.default_rng(1)).tolist()
    [4, 0, 4]
    """
    total = np.cumsum(np.asarray(weights, np.float64))
    if not len(total) or not 0 < total[-1] < np.inf:
        raise ParameterError("importance is 0 on every page: there is nothing to audit")
    ends = np.floor(n * (total / total[-1]) + rng.random())
    ends[total == total[-1]] = n
    return np.asarray(np.diff(np.minimum(ends, n), prepend=0.0), np.int64)


def share_interval(hits: float, n: float, level: float = 0.9) -> tuple[float, float]:
    """Clopper-Pearson interval of a share, after ``hits`` successes in n draws.

    At the lower end, P(at least ``hits``) = (1 − level)/2; at the upper end, P(at most ``hits``) = (1 − level)/2.

    >>> [round(end, 4) for end in share_interval(9, 10)]  # level 0.9
    [0.6058, 0.9949]
    """
    if not 0 < level < 1:
        raise ParameterError(f"level is {level}: must lie between 0 and 1")
    if not 0 <= hits <= n:
        raise ParameterError(f"hits is {hits}: must lie between 0 and {n}")
    from scipy.special import betaincinv

    tail = (1.0 - level) / 2.0
    low = 0.0 if hits == 0 else float(betaincinv(hits, n - hits + 1, tail))
    high = 1.0 if hits == n else float(betaincinv(hits + 1, n - hits, 1.0 - tail))
    return low, high


def surprise(fresh: ArrayLike, believed: ArrayLike, draws: ArrayLike = 1) -> float:
    """Distance between the fresh draws of a sample and their expectation, in standard errors; negative: too few.

    ``believed`` is the probability that each page is fresh. If all of them are right, Σ draws·fresh is
    Poisson-binomial. The result is the standard normal quantile of P(fewer) + ½ P(as many), computed exactly.

    >>> round(surprise([False] * 4, [0.9] * 4), 2), round(surprise([True, False], [0.5, 0.5]), 2)
    (-3.89, 0.0)
    """
    from scipy.special import ndtri

    chance = np.clip(np.asarray(believed, np.float64), 0.0, 1.0)
    times = np.broadcast_to(np.asarray(draws, np.int64), chance.shape)
    found = int((times * np.asarray(fresh, np.bool_)).sum())
    of_sum = np.ones(1)  # probability of each sum
    for p, m in zip(chance.tolist(), times.tolist(), strict=True):
        wider = np.zeros(len(of_sum) + m)
        wider[: len(of_sum)] += (1.0 - p) * of_sum
        wider[m:] += p * of_sum
        of_sum = wider
    below = float(of_sum[:found].sum()) + 0.5 * float(of_sum[found])
    return float(np.clip(ndtri(np.clip(below, 0.0, 1.0)), -_FARTHEST, _FARTHEST))


@dataclass(frozen=True)
class Audit:
    """The result of one sample. Times are seconds since 1970; a page drawn twice counts twice.

    ``forecast`` is the expected freshness of all pages while the sample was taken. ``believed`` is the expected
    freshness of the drawn pages, each when it was fetched. ``surprise`` is their distance from it, in standard errors.
    """

    began_at: float
    ended_at: float
    draws: int  # draws that could be judged
    fresh: int
    unknown: int  # draws of pages that could not be fetched or compared
    requests: int
    forecast: float
    believed: float
    surprise: float
    level: float = 0.9
    estimate: float | None = None  # of strata: the weighted freshness, and the draws that it is worth
    effective: float | None = None

    @property
    def freshness(self) -> float:
        """Share of draws whose copy was fresh; of strata, weighted."""
        return self.fresh / self.draws if self.estimate is None else self.estimate

    @property
    def interval(self) -> tuple[float, float]:
        """Interval that holds the true freshness with probability of at least ``level``."""
        n = self.draws if self.effective is None else self.effective
        return share_interval(min(self.freshness * n, n) if self.effective is not None else self.fresh, n, self.level)

    @property
    def holds_forecast(self) -> bool:
        """Whether the forecast lies in the interval."""
        low, high = self.interval
        return low <= self.forecast <= high

    def as_dict(self) -> dict[str, Any]:
        """The fields, the freshness and its interval, ready for JSON."""
        low, high = self.interval
        saved = {name: value for name, value in asdict(self).items() if value is not None}
        return {**saved, "freshness": self.freshness, "low": low, "high": high}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """The audit from the dictionary of ``as_dict``."""
        return cls(**{name: saved[name] for name in cls.__dataclass_fields__ if name in saved})


@dataclass(frozen=True)
class Judged:
    """One drawn page: number of draws, whether its copy was fresh, and the expected probability of that."""

    draws: int
    fresh: bool
    believed: float


class AuditFacts(TypedDict):
    """Keywords of `audit_of`: fields of `Audit` that are known without the drawn pages."""

    began_at: float
    ended_at: float
    forecast: float
    unknown: NotRequired[int]  # default: 0
    requests: NotRequired[int]  # default: 0
    level: NotRequired[float]  # default: 0.9


def audit_of(judged: Sequence[Judged], **facts: Unpack[AuditFacts]) -> Audit:
    """The audit of the pages that were drawn and judged. ParameterError if there is none."""
    times = np.array([one.draws for one in judged], np.int64)
    fresh = np.array([one.fresh for one in judged], np.bool_)
    believed = np.array([one.believed for one in judged])
    n = int(times.sum())
    if n == 0:
        raise ParameterError("no page could be judged: there is no audit")
    known: AuditFacts = {"unknown": 0, "requests": 0, **facts}
    return Audit(
        **known,
        draws=n,
        fresh=int(times[fresh].sum()),
        believed=float((times * believed).sum() / n),
        surprise=surprise(fresh, believed, times),
    )


def stratified(parts: Sequence[Audit]) -> Audit:
    """One audit of strata whose draws were divided by `allocate`. ParameterError if no page could be judged.

    A stratum counts by the draws it was given, also where some of its pages could not be judged. If n of its a draws
    were judged, the whole is worth (Σ a)² / Σ a²/n draws: all of them where all were judged.

    >>> one = Audit(0.0, 1.0, 40, 30, 0, 40, 0.8, 0.8, 0.0)
    >>> both = stratified([one, replace(one, draws=5, fresh=5, unknown=5)])
    >>> both.freshness, both.effective
    (0.8, 41.666666666666664)
    """
    judged = [one for one in parts if one.draws]
    if not judged:
        raise ParameterError("no page could be judged: there is no audit")
    given, n = np.array([[one.draws + one.unknown, one.draws] for one in judged], np.float64).T
    score = np.array([one.surprise for one in judged])

    def mean(values: list[float]) -> float:
        return float(np.average(values, weights=given))

    return Audit(
        min(one.began_at for one in parts),
        max(one.ended_at for one in parts),
        int(n.sum()),
        sum(one.fresh for one in judged),
        sum(one.unknown for one in parts),
        sum(one.requests for one in parts),
        mean([one.forecast for one in judged]),
        mean([one.believed for one in judged]),
        float((np.sqrt(n) * score).sum() / np.sqrt(n.sum())),
        judged[0].level,
        mean([one.fresh / one.draws for one in judged]),
        float(given.sum() ** 2 / (given**2 / n).sum()),
    )


@dataclass(frozen=True)
class Verdict:
    """Whether forecasts and audits agree: the p-value if the forecasts are right, and the number of audits tested."""

    agree: bool
    p_value: float
    audits: int
    direction: str  # of the copies: "staler" or "fresher" than forecast, or "now staler, now fresher"

    def as_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


def verdict(audits: Sequence[Audit]) -> Verdict | None:
    """Test forecasts against the last audit, the last ten and the last fifty; the smallest p-value counts.

    Several audits are tested by the mean of their surprises, weighted by the root of their draws (Stouffer), and by
    the sum of squared surprises (χ²), which finds errors in both directions. The smallest p-value is multiplied by
    the number of tests (Bonferroni). None without audits.
    """
    if not audits:
        return None
    tried = [
        Verdict(True, p_value, n, direction)
        for n in sorted({min(n, len(audits)) for n in POOLED})
        for p_value, direction in _judged(audits[-n:])
    ]
    least = min(tried, key=lambda one: one.p_value)
    p_value = min(least.p_value * len(tried), 1.0)
    return replace(least, agree=p_value >= UNLIKELY, p_value=p_value)


def _judged(audits: Sequence[Audit]) -> list[tuple[float, str]]:
    """P-value and direction of each test of several audits, if the forecasts are right."""
    from scipy.special import gammaincc, ndtr

    z, weight = np.array([one.surprise for one in audits]), np.sqrt([one.draws for one in audits])
    mean = float((weight * z).sum() / np.sqrt((weight**2).sum()))
    found = [(2.0 * float(ndtr(-abs(mean))), "staler" if mean < 0 else "fresher")]
    if len(z) > 1:
        found.append((float(gammaincc(len(z) / 2, float((z**2).sum()) / 2)), "now staler, now fresher"))
    return found
