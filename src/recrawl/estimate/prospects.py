"""Prospects: from a crawl log, how fresh the copies are, and how fresh a budget could keep them.

The change rate of a page is a posterior distribution, not a number: a page may change that was never seen to change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.gamma import GammaPrior
from recrawl.estimate.observations import Observations
from recrawl.estimate.rates.change_rate import RateEstimate
from recrawl.model.freshness import page_freshness
from recrawl.model.pages import Pages
from recrawl.solver.solving import solve

Array = NDArray[np.float64]

_NODES = 16  # of the posterior, where a mean has no closed form
DRAWS = 100  # of the rates of all pages, behind an interval
_STEPS = 12  # of the search for a budget


@dataclass(frozen=True)
class History:
    """The crawls of a log and their outcomes.

    ``since`` is the time from each page's last crawl to the end of the log, or to when the page was found gone.
    ``live`` marks the pages that exist at the end; default: all.
    """

    observations: Observations
    importance: Array
    since: Array
    n_failed: int = 0
    live: NDArray[np.bool_] | None = None

    @property
    def there(self) -> NDArray[np.bool_]:
        """The pages to plan for."""
        return np.ones(len(self.observations), np.bool_) if self.live is None else self.live

    @property
    def page_time(self) -> float:
        """Σ over pages of the time from the first crawl to the end of the log."""
        return float(self.observations.total_time.sum() + self.since.sum())

    @property
    def budget(self) -> float:
        """Crawls per time that the log spends on the live pages; the first crawl of a page does not count."""
        crawls = len(self.observations.interval) + self.n_failed
        return crawls * int(self.there.sum()) / self.page_time if self.page_time > 0 else 0.0


@dataclass(frozen=True)
class FreshnessEstimate:
    """A freshness with its interval."""

    freshness: float
    low: float
    high: float


@dataclass(frozen=True)
class Prospect:
    """Freshness that a budget reaches with the best rates, and with the same rate for all pages."""

    budget: float
    best: FreshnessEstimate
    uniform: float
    n_never: int  # pages that the best rates never crawl


def fresh_time(gamma: GammaPrior, elapsed: Array) -> Array:
    """Expected time until the first change, at most ``elapsed``: ∫₀^elapsed (1 + t/rate)^{−shape} dt.

    >>> fresh_time(GammaPrior(2.0, 10.0), np.array([10.0])).tolist()
    [5.0]
    """
    a, growth = np.asarray(gamma.shape) - 1.0, np.log1p(elapsed / gamma.rate)
    small = np.abs(a * growth) < 1e-8
    power = np.divide(-np.expm1(-a * growth), a, out=np.zeros_like(growth + a), where=~small)
    return np.asarray(gamma.rate * np.where(small, growth, power))


def changed_share(exponent: Array) -> Array:
    """Expected share of an interval until its first change, given that there is one: 1/u − 1/(e^u − 1), u = rate·time.

    >>> changed_share(np.array([0.0, 50.0])).tolist()
    [0.5, 0.02]
    """
    u = np.maximum(exponent, 1e-4)
    return np.where(exponent < 1e-4, 0.5 - exponent / 12.0, 1.0 / u - np.exp(-u) / -np.expm1(-u))


@dataclass(frozen=True)
class FreshTime:
    """Importance × time of copies, how much of it was fresh, and the variance of that; parts of a log add up."""

    total: float
    fresh: float
    variance: float

    def __add__(self, other: FreshTime) -> FreshTime:
        return FreshTime(self.total + other.total, self.fresh + other.fresh, self.variance + other.variance)

    def freshness(self, level: float = 0.9) -> FreshnessEstimate:
        """The share that was fresh."""
        if not self.total > 0:
            raise ParameterError("no page was crawled twice: the log does not say how fresh its copies are")
        return _around(self.fresh / self.total, float(np.sqrt(self.variance)) / self.total, level)


def freshness_so_far(history: History, rates: RateEstimate, level: float = 0.9) -> FreshnessEstimate:
    """Freshness of the copies over the log, by its outcomes, weighted by importance × time (see `fresh_times`)."""
    return fresh_times(history, rates).freshness(level)


def fresh_times(history: History, rates: RateEstimate) -> FreshTime:
    """How long the copies of a log were fresh, by its outcomes.

    An unchanged interval is fresh throughout. Of a changed interval, the expected time before its first change is
    fresh. The time after a page's last crawl counts with its expected fresh time. The variance is that of the unknown
    instants of the changes.
    """
    seen, gamma = history.observations, rates.gamma()
    page = np.repeat(np.arange(len(seen)), np.diff(seen.offset))
    weight = history.importance[page]
    share = np.ones(len(seen.interval))
    which = np.flatnonzero(seen.changed)
    share[which] = np.mean([changed_share(node[page[which]] * seen.interval[which]) for node in nodes(gamma)], axis=0)
    fresh = fresh_time(gamma, history.since)
    total = float((weight * seen.interval).sum() + (history.importance * history.since).sum())
    lasted = float((weight * share * seen.interval).sum() + (history.importance * fresh).sum())
    # Variance: interval²/12 at most for the instant of a change (as if uniform), s(1 − s) after the last crawl.
    open_share = np.divide(fresh, history.since, out=np.ones(len(fresh)), where=history.since > 0)
    variance = float(((weight * seen.interval)[which] ** 2).sum()) / 12.0
    variance += float(((history.importance * history.since) ** 2 * open_share * (1.0 - open_share)).sum())
    return FreshTime(total, lasted, variance)


def freshness_of_schedule(history: History, rates: RateEstimate) -> float:
    """Expected freshness if the log's intervals went on and every page changed at its own constant rate."""
    return float(np.average(schedule_shares(history, rates), weights=history.importance[history.there]))


def schedule_shares(history: History, rates: RateEstimate) -> Array:
    """Expected freshness of each live page if the log's intervals went on, at the page's own constant rate.

    The time since a page's last crawl counts as an interval if it is the page's longest.
    """
    seen, gamma = history.observations, rates.gamma()
    n = len(seen)
    page = np.repeat(np.arange(n), np.diff(seen.offset))
    longest = np.zeros(n)
    np.maximum.at(longest, page, seen.interval)
    waits = np.flatnonzero(history.since > longest)
    page, interval = np.concatenate([page, waits]), np.concatenate([seen.interval, history.since[waits]])
    fresh = fresh_time(GammaPrior(gamma.shape[page], gamma.rate[page]), interval)
    time = np.bincount(page, interval, minlength=n)
    share = np.divide(np.bincount(page, fresh, minlength=n), time, out=np.ones(n), where=time > 0)
    return np.asarray(share[history.there])


def drawn(gamma: GammaPrior, rng: np.random.Generator) -> Array:
    """Rates of pages, drawn from what is known of them."""
    return np.asarray(np.maximum(rng.gamma(gamma.shape) / gamma.rate, 1e-12 * gamma.mean))


def spread(found: Array, level: float) -> tuple[float, float]:
    """How far the freshness of drawn rates lies below and above their mean, with a probability."""
    low, high = np.quantile(found - found.mean(), [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)


class Prospects:
    """Expected freshness at any budget, for pages whose rates are posteriors. All budgets use the same random draws."""

    def __init__(self, gamma: GammaPrior, importance: Array, level: float, rng: np.random.Generator) -> None:
        self.pages = Pages(gamma.mean, importance, evidence=gamma.shape)
        self._level, self._importance = level, importance
        self._drawn = [drawn(gamma, rng) for _ in range(DRAWS)]

    def at(self, budget: float) -> Prospect:
        """Freshness at a budget. Crawl rates are chosen from the posteriors, not from the drawn rates."""
        plan = solve(self.pages, budget)
        found = np.array(
            [np.average(page_freshness(Pages(rate), plan.crawl_rate), weights=self._importance) for rate in self._drawn]
        )
        low, high = spread(found, self._level)
        each = np.full(len(self.pages), budget / len(self.pages))
        uniform = float(np.average(page_freshness(self.pages, each), weights=self._importance))
        best = FreshnessEstimate(plan.freshness, plan.freshness + low, min(plan.freshness + high, 1.0))
        return Prospect(budget, best, uniform, plan.n_never)

    def budget_for(self, target: float) -> tuple[float, float, float]:
        """The least budget whose expected freshness is the target, and its interval (low, high).

        At the low budget the upper end of the freshness interval is the target, at the high budget the lower end.
        """
        least = solve(self.pages, target=target).spent
        return least, self._search(target, least, "high"), self._search(target, least, "low")

    def _search(self, target: float, start: float, end: str) -> float:
        """The budget at which one end of the freshness interval is the target, by the secant method on ln budget."""
        at, slope = np.log(start), 0.0
        miss = getattr(self.at(start).best, end) - target
        step = -0.05 if miss > 0 else 0.05
        for _ in range(_STEPS):
            further = getattr(self.at(float(np.exp(at + step))).best, end) - target
            slope = (further - miss) / step
            at, miss = at + step, further
            if abs(miss) < 1e-5 or not slope > 0:
                break
            step = float(np.clip(-miss / slope, -1.0, 1.0))
        return float(np.exp(at))


def nodes(gamma: GammaPrior) -> list[Array]:
    """Quantiles of every page's posterior at the midpoints of equal probability bins."""
    return [gamma.quantile((k + 0.5) / _NODES) for k in range(_NODES)]


def _around(centre: float, error: float, level: float) -> FreshnessEstimate:
    from scipy.special import ndtri

    half = float(ndtri(0.5 + level / 2)) * error
    return FreshnessEstimate(centre, max(centre - half, 0.0), min(centre + half, 1.0))
