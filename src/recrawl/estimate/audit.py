"""Audits: how fresh copies truly are, from a random sample, and whether a forecast fits what the sample shows.

Pages are drawn with replacement in proportion to importance, so that each draw meets a fresh copy with exactly the
probability that is asked for: the freshness. Whatever the importances are, the fresh draws are then binomial, and the
interval of Clopper and Pearson holds the true freshness with at least its level, at every freshness and sample size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

UNLIKELY = 0.01  # an agreement less likely than this is called none
POOLED = (1, 10, 50)  # how many of the last audits are looked at together
_FARTHEST = 8.0  # standard errors beyond which nothing more is told apart


def draw_pages(importance: ArrayLike, n: int, rng: np.random.Generator) -> Ids:
    """n rows drawn with replacement in proportion to importance.

    >>> draw_pages([0.0, 2.0, 0.0], 3, np.random.default_rng(1)).tolist()
    [1, 1, 1]
    """
    total = np.cumsum(np.asarray(importance, np.float64))
    if not len(total) or not 0 < total[-1] < np.inf:
        raise ParameterError("importance is 0 on every page: there is nothing to audit")
    return np.asarray(np.searchsorted(total, rng.random(n) * total[-1], side="right"), np.int64)


def share_interval(hits: int, n: int, level: float = 0.9) -> tuple[float, float]:
    """The interval of Clopper and Pearson for a share of which n draws were ``hits`` times right.

    Its ends are the shares at which so many hits, or so few, have the probability (1 − level)/2.

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
    """How far the fresh pages of a sample lie from what was believed of each, in standard errors; below 0: too few.

    The exact distribution of Σ draws·fresh, were every belief right (Poisson-binomial), at its middle: the standard
    normal quantile of P(less) + ½ P(as many).

    >>> round(surprise([False] * 4, [0.9] * 4), 2), round(surprise([True, False], [0.5, 0.5]), 2)
    (-3.89, 0.0)
    """
    from scipy.special import ndtri

    chance = np.clip(np.asarray(believed, np.float64), 0.0, 1.0)
    times = np.broadcast_to(np.asarray(draws, np.int64), chance.shape)
    found = int((times * np.asarray(fresh, np.bool_)).sum())
    mass = np.ones(1)
    for p, m in zip(chance.tolist(), times.tolist(), strict=True):
        wider = np.zeros(len(mass) + m)
        wider[: len(mass)] += (1.0 - p) * mass
        wider[m:] += p * mass
        mass = wider
    below = float(mass[:found].sum()) + 0.5 * float(mass[found])
    return float(np.clip(ndtri(np.clip(below, 0.0, 1.0)), -_FARTHEST, _FARTHEST))


@dataclass(frozen=True)
class Audit:
    """What one sample showed. Times are seconds since 1970; a page drawn twice counts twice.

    ``forecast`` is the freshness of all pages that was believed in while the sample was taken, ``believed`` the same
    of the drawn pages, each when it was fetched, and ``surprise`` how far they lie from that, in standard errors.
    """

    began_at: float
    ended_at: float
    draws: int  # that could be judged
    fresh: int
    unknown: int  # draws of pages that could not be fetched or compared
    requests: int
    forecast: float
    believed: float
    surprise: float
    level: float = 0.9

    @property
    def freshness(self) -> float:
        """The share of draws that met a fresh copy."""
        return self.fresh / self.draws

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true freshness lies, with at least ``level``."""
        return share_interval(self.fresh, self.draws, self.level)

    @property
    def holds_forecast(self) -> bool:
        """Whether the forecast lies in the interval."""
        low, high = self.interval
        return low <= self.forecast <= high

    def as_dict(self) -> dict[str, Any]:
        """The fields and what follows from them, ready for JSON."""
        low, high = self.interval
        return {**asdict(self), "freshness": self.freshness, "low": low, "high": high}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """The audit that ``as_dict`` gave."""
        return cls(**{name: saved[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Judged:
    """One drawn page: how often it was drawn, whether its copy was fresh, and what was believed."""

    draws: int
    fresh: bool
    believed: float


def audit_of(
    judged: Sequence[Judged],
    *,
    began_at: float,
    ended_at: float,
    forecast: float,
    unknown: int = 0,
    requests: int = 0,
    level: float = 0.9,
) -> Audit:
    """The audit of the pages that were drawn; at least one of them must have been judged."""
    times = np.array([one.draws for one in judged], np.int64)
    fresh = np.array([one.fresh for one in judged], np.bool_)
    believed = np.array([one.believed for one in judged])
    n = int(times.sum())
    if n == 0:
        raise ParameterError("no page could be judged: there is no audit")
    return Audit(
        began_at=began_at,
        ended_at=ended_at,
        draws=n,
        fresh=int(times[fresh].sum()),
        unknown=unknown,
        requests=requests,
        forecast=forecast,
        believed=float((times * believed).sum() / n),
        surprise=surprise(fresh, believed, times),
        level=level,
    )


@dataclass(frozen=True)
class Verdict:
    """Whether forecasts fit audits: the likelihood of what was seen, were the forecasts right, and how many audits it
    rests on."""

    agree: bool
    p_value: float
    audits: int
    direction: str  # of the copies: "staler" or "fresher" than forecast, or "now staler, now fresher"

    def as_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


def verdict(audits: Sequence[Audit]) -> Verdict | None:
    """Judge forecasts by the last audit, the last ten and the last fifty, whichever is the least likely.

    Together audits are judged by the mean of their surprises, weighed by the roots of their draws (Stouffer), and by
    the sum of the squares (χ²), which shows forecasts that are wrong now one way, now the other. The likelihood is
    multiplied by how many ways were tried (Bonferroni). None without audits.
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
    """How likely audits together are, were the forecasts right, and which way they were wrong."""
    from scipy.special import gammaincc, ndtr

    z, weight = np.array([one.surprise for one in audits]), np.sqrt([one.draws for one in audits])
    mean = float((weight * z).sum() / np.sqrt((weight**2).sum()))
    found = [(2.0 * float(ndtr(-abs(mean))), "staler" if mean < 0 else "fresher")]
    if len(z) > 1:
        found.append((float(gammaincc(len(z) / 2, float((z**2).sum()) / 2)), "now staler, now fresher"))
    return found
