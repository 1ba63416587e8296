"""Shards: pages to machines by host, and a budget divided among them so that a crawl is worth the same everywhere."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.model.pages import Pages
from recrawl.solver.solving import solve

Array = NDArray[np.float64]
Curve = Callable[[float], float]  # a shard's budget in, its threshold out

_ELASTICITY = -0.6  # how a budget follows the threshold (d ln budget / d ln threshold), before a shard has shown it

_LEAST = 1e-9  # what a shard keeps of an equal share, so that it can show what a crawl would be worth to it


def shard_of(host: ArrayLike, shards: int | Sequence[Any]) -> NDArray[np.int64]:
    """The shard of every page, chosen by its host so that a host lies on one shard: a number, or a position in a list.

    Rendezvous hashing: each host goes to the shard with the highest score hash(host, shard). It is the same on every
    machine and in every process. A new shard takes its share from all others and moves nothing between them; a shard
    taken out of the list gives its hosts to the others.

    >>> before, after = shard_of(["a.org", "b.org", "a.org"], 4), shard_of(["a.org", "b.org", "a.org"], 5)
    >>> bool(before[0] == before[2]), bool(np.all((before == after) | (after == 4)))
    (True, True)
    """
    names = list(range(shards)) if isinstance(shards, int) else list(shards)
    if not names:
        raise ParameterError("shards: at least one is needed")
    if len(set(names)) < len(names):
        raise ParameterError("shards: a name occurs twice")
    labels = np.atleast_1d(np.asarray(host)).tolist()
    rows: dict[Any, int] = {}
    row = np.array([rows.setdefault(label, len(rows)) for label in labels], np.int64)
    code = np.array([_hash(label) for label in rows], np.uint64)
    best, choice = np.zeros(len(code), np.uint64), np.zeros(len(code), np.int64)
    for k, name in enumerate(names):
        score = _mix(code ^ np.uint64(_hash(name)))
        higher = (score > best) | (k == 0)
        best[higher], choice[higher] = score[higher], k
    return choice[row]


def _hash(label: Any) -> int:
    return int.from_bytes(hashlib.blake2b(str(label).encode(), digest_size=8).digest(), "little")


def _mix(code: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64: every bit in changes every bit out with probability one half."""
    code = (code ^ (code >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    code = (code ^ (code >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return code ^ (code >> np.uint64(31))


def rebalance(budgets: ArrayLike, thresholds: ArrayLike, elasticity: ArrayLike = _ELASTICITY) -> Array:
    """One step towards equal thresholds: what each shard gets, from what it had and the threshold it reports.

    Each shard's budget is taken to follow budget ∝ threshold^elasticity; the common threshold is the one at which the
    budgets add up to what they did before. A shard whose threshold is 0 has more than it can use: half of that goes to
    the others.

    Shards with thresholds 4 and 1 and elasticity −1 meet at 2.5:

    >>> rebalance([1.0, 1.0], [4.0, 1.0], -1.0).round(9).tolist()
    [1.6, 0.4]
    """
    had, price = np.asarray(budgets, np.float64), np.asarray(thresholds, np.float64)
    power = np.broadcast_to(np.asarray(elasticity, np.float64), had.shape)
    if had.shape != price.shape or not (had > 0).all() or not (price >= 0).all() or not (power < 0).all():
        raise ParameterError("rebalance: positive budgets, thresholds of at least 0, negative elasticities are needed")
    active = price > 0
    if not active.any():
        return had.copy()
    share = np.where(active, had, had / 2)
    share[active] = _common(had[active], np.log(price[active]), power[active], had.sum() - share[~active].sum())
    return share


def _common(had: Array, log_price: Array, power: Array, total: float) -> Array:
    """Budgets on the shards' curves that add up to the total at one threshold, which is found by bisection."""
    low = float(log_price.min()) - math.log(total / had.sum()) / float(np.abs(power).min())
    high = float(log_price.max())
    for _ in range(100):
        middle = (low + high) / 2
        enough = float(np.sum(had * np.exp(power * (middle - log_price)))) > total
        low, high = (middle, high) if enough else (low, middle)
    share: Array = had * np.exp(power * ((low + high) / 2 - log_price))
    share *= total / share.sum()
    return share


def split_budget(
    curves: Sequence[Curve], budget: float, *, start: ArrayLike | None = None, tolerance: float = 1e-6, rounds: int = 50
) -> Array:
    """Budgets of shards that add up and at which their thresholds agree, found by asking each shard for its threshold.

    ``curves[i](b)`` is shard i's threshold at budget b (solved, or what its scheduler shows after running at it for a
    while). Each round is one ``rebalance``; elasticities are learned from the rounds before. Thresholds agree when they
    are within ``tolerance``, relatively; a shard on which no crawl is worth as much as elsewhere ends with next to
    nothing. ``start`` are the budgets to begin with (default: equal).

    Thresholds 4/b and 1/b agree when the first shard gets four times as much:

    >>> split_budget([lambda b: 4 / b, lambda b: 1 / b], 10.0).round(6).tolist()
    [8.0, 2.0]
    """
    if not curves or not (budget > 0 and math.isfinite(budget)):
        raise ParameterError("split_budget: at least one shard and a positive, finite budget are needed")
    least = _LEAST * budget / len(curves)
    share = np.maximum(np.ones(len(curves)) if start is None else np.asarray(start, np.float64), 0.0)
    share = share * (budget / share.sum())
    price = _ask(curves, share)
    power = np.full(len(curves), _ELASTICITY)
    for _ in range(rounds):
        if _agree(share, price, least, tolerance):
            break
        following = np.maximum(rebalance(share, price, power), least)
        following *= budget / following.sum()
        answer = _ask(curves, following)
        power = _learn(power, share, following, price, answer)
        share, price = following, answer
    return share


def _agree(share: Array, price: Array, least: float, tolerance: float) -> bool:
    """Whether a crawl is worth the same on all shards, and no more on those that get nothing."""
    inside = price[(share > 2 * least) & (price > 0)]
    idle = float(share[price == 0].sum())
    if len(inside) == 0:
        return True
    return bool(price.max() <= inside.min() * (1 + tolerance)) and idle <= tolerance * float(share.sum())


def _ask(curves: Sequence[Curve], share: Array) -> Array:
    return np.array([float(curve(float(b))) for curve, b in zip(curves, share, strict=True)])


def _learn(power: Array, share: Array, following: Array, price: Array, answer: Array) -> Array:
    """Elasticities from two rounds, where both moved enough to tell; smaller where a shard got more than it can use."""
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.log(answer / price)
        slope = np.log(following / share) / moved
    usable = np.isfinite(slope) & (np.abs(moved) > 1e-9) & (slope < 0)
    too_much = (answer == 0) & (following > share)
    return np.where(usable, np.clip(slope, -20.0, -0.01), np.where(too_much, power / 2, power))


@dataclass(frozen=True)
class ShardLoss:
    """What dividing a budget costs."""

    one: float  # freshness with one scheduler
    split: float  # freshness with the budget divided
    budgets: Array  # per shard
    thresholds: Array

    @property
    def loss(self) -> float:
        """Freshness that is lost."""
        return self.one - self.split


def shard_loss(
    pages: Pages,
    shard: ArrayLike,
    budget: float,
    split: Literal["equal", "pages", "threshold"] = "pages",
    **solving: Any,
) -> ShardLoss:
    """How much fresher one plan over all pages is than one plan per shard.

    ``split`` divides the budget equally, by pages, or so that thresholds agree. Further arguments go to ``solve``.

    Two shards of equal pages lose nothing:

    >>> abs(shard_loss(Pages([1.0, 1.0]), [0, 1], budget=4.0).loss) < 1e-12
    True
    """
    label = np.asarray(shard)
    if label.shape != (len(pages),):
        raise ParameterError(f"shard has {label.size} rows but there are {len(pages)} pages")
    parts = [pages[np.flatnonzero(label == name)] for name in np.unique(label)]
    size = np.array([1 if split == "equal" else len(part) for part in parts], np.float64)
    share = size * (budget / size.sum())
    if split == "threshold":
        curves = [lambda b, part=part: _threshold(part, b, solving) for part in parts]
        share = split_budget(curves, budget, start=share)
    elif split not in ("equal", "pages"):
        raise ParameterError(f"split {split!r} is not one of equal, pages, threshold")
    weight = np.array([part.importance.sum() for part in parts])
    plans = [_plan(part, b, solving) for part, b in zip(parts, share, strict=True)]
    fresh = math.fsum(w * f for w, (f, _) in zip(weight, plans, strict=True)) / float(weight.sum())
    one = solve(pages, budget, **solving).freshness
    return ShardLoss(one, fresh, share, np.array([threshold for _, threshold in plans]))


def _plan(pages: Pages, budget: float, solving: dict[str, Any]) -> tuple[float, float]:
    if not pages.importance.any():
        return 0.0, 0.0
    plan = solve(pages, budget, **solving)
    return plan.freshness, plan.threshold


def _threshold(pages: Pages, budget: float, solving: dict[str, Any]) -> float:
    return _plan(pages, budget, solving)[1]
