"""The controller: what each shard gets of the budget, so that a crawl is worth the same on all of them.

Each shard publishes a plan: its threshold at several budgets, from what its engine believes. Shares are where the
thresholds of the plans meet. Thresholds of the last picks are no feedback: where pages are crawled every ten days, they
follow a share weeks later. There is no input or output here; `Round` and `Share` are what a controller must keep.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recrawl.cluster.shares.shares import Owner, Share, publish
from recrawl.crawl.polite.hours import Hours, rates
from recrawl.errors import ParameterError

if TYPE_CHECKING:
    from recrawl.engine import Engine

Array = NDArray[np.float64]

LEAST = 0.01  # of what a shard would get by its pages: its least share, so that it goes on learning
_REACH = 16.0  # a plan is of budgets from a sixteenth to sixteen times what a shard has or would get by its pages
_HORIZON = 0.25  # of a cycle (pages over budget): the time in which pages that are behind are to be crawled
_ELASTICITY = -0.6  # d ln budget / d ln threshold beyond the points of a plan, where these do not tell


@dataclass(frozen=True)
class ShardPlan:
    """What a shard publishes: pages, and its threshold at several budgets (crawls per time, ascending)."""

    pages: int
    budgets: tuple[float, ...] = ()
    thresholds: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        budgets, thresholds = np.array(self.budgets), np.array(self.thresholds)
        rising = (np.diff(budgets) > 0).all() and (budgets > 0).all()
        if len(budgets) != len(thresholds) or not rising or not (thresholds >= 0).all():
            raise ParameterError("plan of a shard: budgets must be above 0 and ascend, thresholds be at least 0")

    def budget(self, threshold: float) -> float:
        """The budget at a threshold: straight between points of ln budget and ln threshold, and beyond them.

        >>> plan = ShardPlan(10, (1.0, 4.0), (8.0, 2.0))
        >>> round(plan.budget(4.0), 6), round(plan.budget(0.5), 6)
        (2.0, 16.0)
        """
        n = sum(value > 0.0 for value in self.thresholds)
        if n == 0 or threshold <= 0.0:
            return self.budgets[-1]
        if n < len(self.budgets) and threshold < self.thresholds[n - 1]:  # beyond that, nothing is worth a crawl
            part = 1.0 - threshold / self.thresholds[n - 1]
            return self.budgets[n - 1] + part * (self.budgets[n] - self.budgets[n - 1])
        x, y = np.log(self.thresholds[:n]), np.log(self.budgets[:n])
        at = math.log(threshold)
        if at > x[0] or at < x[-1]:
            k = 0 if at > x[0] else n - 1
            return math.exp(min(y[k] + self._slope(x, y, k) * (at - x[k]), 700.0))
        return math.exp(float(np.interp(-at, -x, y)))

    def threshold(self, budget: float) -> float:
        """The threshold at a budget, by bisection.

        >>> round(ShardPlan(10, (1.0, 4.0), (8.0, 2.0)).threshold(2.0), 6)
        4.0
        """
        return _common([self], [0.0], budget)[0]

    @staticmethod
    def _slope(x: Array, y: Array, k: int) -> float:
        """d ln budget / d ln threshold at the first or the last point."""
        i, j = (0, 1) if k == 0 else (k - 1, k)
        if len(x) == 1 or x[i] == x[j]:
            return _ELASTICITY
        return float(np.clip((y[j] - y[i]) / (x[j] - x[i]), -20.0, -0.05))

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `ShardPlan.of` is the way back."""
        return asdict(self)

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> ShardPlan:
        """The plan of `as_dict`."""
        return cls(int(saved["pages"]), tuple(saved["budgets"]), tuple(saved["thresholds"]))


def plan_of(engine: Engine, now: float, *, share: float, by_pages: float) -> ShardPlan:
    """The plan that an engine publishes; ``share`` is what it has, ``by_pages`` what it would get by its pages.

    Both are crawls per time on average. A share of 0 is none yet.
    """
    n = len(engine)
    around = [rate for rate in (share, by_pages) if rate > 0.0]
    if n == 0 or not around:
        return ShardPlan(n)
    horizon = _HORIZON * n / by_pages if by_pages > 0.0 else math.inf
    least, most = min(around) / _REACH, max(around) * _REACH
    budgets, thresholds = engine.threshold_curve(least, most, now, horizon=horizon)
    return ShardPlan(n, tuple(budgets.tolist()), tuple(thresholds.tolist()))


def split_shares(plans: Mapping[int, ShardPlan], budget: float) -> dict[int, float]:
    """The share of each shard: thresholds meet, and none with pages gets less than `LEAST` of its part by pages.

    A shard whose engine has said no thresholds yet gets its part by pages.

    >>> plans = {k: ShardPlan(10, (1.0, 2.0), (a, a / 2)) for k, a in enumerate((4.0, 1.0))}
    >>> {shard: round(share, 3) for shard, share in split_shares(plans, 10.0).items()}
    {0: 8.0, 1: 2.0}
    """
    total = sum(plan.pages for plan in plans.values())
    by_pages = {shard: budget * plan.pages / max(total, 1) for shard, plan in plans.items()}
    asked = [shard for shard, plan in plans.items() if plan.pages and plan.budgets]
    others = {shard: rate for shard, rate in by_pages.items() if shard not in asked}
    left = budget - math.fsum(others.values())
    found = _common([plans[shard] for shard in asked], [LEAST * by_pages[shard] for shard in asked], left)[1]
    return {**others, **dict(zip(asked, found, strict=True))}


def _common(plans: Sequence[ShardPlan], least: Sequence[float], budget: float) -> tuple[float, list[float]]:
    """The threshold at which plans, none of them below its least, add up to a budget; and what each gets there.

    At a threshold at which they jump, they get as much of the jump as the budget allows.
    """
    if not plans:
        return 0.0, []

    def at(threshold: float) -> Array:
        return np.array([max(plan.budget(threshold), low) for plan, low in zip(plans, least, strict=True)])

    high = max(1e-300, *(plan.thresholds[0] for plan in plans))
    while at(high).sum() > budget and high < 1e300 and math.fsum(least) < budget:
        high *= 16.0
    low = high
    while at(low).sum() <= budget and low > 1e-290:
        low /= 16.0
    for _ in range(100):
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (middle, high) if at(middle).sum() > budget else (low, middle)
    less, more = at(high), at(low)
    part = (budget - less.sum()) / (more.sum() - less.sum()) if more.sum() > less.sum() else 0.0
    shares = less + min(max(part, 0.0), 1.0) * (more - less)
    return high, [float(share) for share in shares * (budget / shares.sum())]


def cluster_rate(budget: str, plans: Iterable[ShardPlan], hours: Hours | None = None) -> tuple[float, float]:
    """Requests per second of all shards while the hours are open, and on average: a budget in words, as on one machine.

    Shares are of the first. A budget per page counts the pages of all plans.

    >>> cluster_rate("0.5/page/s", [ShardPlan(4), ShardPlan(2)])
    (3.0, 3.0)
    """
    return rates(budget, sum(plan.pages for plan in plans), hours)


@dataclass(frozen=True)
class Round:
    """When targets were last computed, for which budget and shards; `None` fields of a new cluster are 0 and empty."""

    at: float = -math.inf
    budget: float = 0.0
    shards: tuple[int, ...] = ()

    def due(self, now: float, every: float, budget: float, shards: tuple[int, ...]) -> bool:
        """Whether targets are to be computed again: it is time, or budget or shards have changed."""
        return now >= self.at + every or budget != self.budget or shards != self.shards


@dataclass(frozen=True)
class Seen:
    """What a controller reads in one transaction."""

    owners: Mapping[int, Owner]
    plans: Mapping[int, ShardPlan]
    budget: float  # requests per second while open
    shares: Mapping[int, Share] = field(default_factory=dict)
    last: Round = Round()


def control(seen: Seen, now: float, *, every: float) -> tuple[dict[int, Share], Round]:
    """One step of the controller: the shares to write, and the round that they belong to.

    Every ``every`` seconds, or when budget or shards have changed or a shard has got its first pages, targets come
    from the plans. Shards without an owner for `shares.GRACE` seconds get nothing, so that others can spend it; a shard
    that has an owner but does not answer keeps what is reserved for it.
    """
    live = tuple(sorted(shard for shard, owner in seen.owners.items() if owner.counts))
    made = seen.last
    given = {shard: share.target for shard, share in seen.shares.items()}
    waiting = any(given.get(shard, 0.0) <= 0.0 < plan.pages for shard, plan in seen.plans.items() if shard in live)
    if waiting or made.due(now, every, seen.budget, live):
        plans = {shard: seen.plans.get(shard, ShardPlan(0)) for shard in live}
        targets = split_shares(plans, seen.budget)
        made = Round(now, seen.budget, live)
    else:
        targets = given
    return publish(seen.shares, seen.owners, targets, seen.budget), made
