"""Solve for pages in several parts: a price needs only sums of each part, so that no part has to be beside another.

``PartsProblem`` asks questions of all parts at a price and adds up the answers; how a part is read and where it is
asked (here, in other processes) is up to the caller. The answer is that of `Problem` for all pages in one piece.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.solver.curves import Curves, Outcome
from recrawl.solver.multiplier import PriceSearch, enclose
from recrawl.solver.problem import FREE, GOOD_GAP, Problem, gap_of

Array = NDArray[np.float64]
Each = Callable[..., list[Any]]  # (question, *arguments): the answers of all parts

_SAMPLE = 1000  # pages of each part among which the first price is looked for
_MOST_SAMPLED = 50_000  # pages of all parts among which it is


@dataclass(frozen=True)
class Facts:
    """What is known of a part before a price is."""

    n_pages: int
    importance: float
    least: float  # what the floor costs
    each: float  # what one crawl of every page costs
    unlimited: bool  # some page could use any budget
    useful: bool  # a crawl of some page can gain anything
    sample: Curves


@dataclass(frozen=True)
class Mix:
    """Rates between those at two prices: ``share`` of the lower price's; ``price`` is what they are judged by."""

    low: float
    high: float
    share: float
    price: float

    def rates(self, curves: Curves) -> Array:
        """The rates of a part's pages."""
        rate = curves.rates(self.high)
        if self.low != self.high:
            below = curves.rates(self.low)
            below -= rate
            below *= self.share
            rate += below
        return rate


@dataclass(frozen=True)
class Weighed:
    """What the rates of a part earn and cost."""

    outcome: Outcome
    spent: float
    n_never: int
    never_importance: float
    n_static: int  # pages that never change


@dataclass(frozen=True)
class PartsPlan:
    """A plan for all parts, without the rates: ``mix`` gives those of each part. Fields as in `Plan`."""

    mix: Mix
    n_pages: int
    threshold: float
    freshness: float
    objective: float
    budget: float | None
    spent: float
    gap: float
    iterations: int
    n_never: int
    never_importance: float
    n_static: int

    @property
    def unused(self) -> float:
        """Budget that no page can use."""
        return 0.0 if self.budget is None or self.threshold > 0 else max(self.budget - self.spent, 0.0)


# --- questions to one part ----------------------------------------------------------------------------------------


def facts_of(curves: Curves) -> Facts:
    """What is known of a part."""
    problem, n, useful = Problem.of(curves), len(curves), curves.useful
    sample = curves.rows(np.arange(0, n, -(-n // _SAMPLE)))
    each, weight = curves.sum_of(np.ones(1)), float(curves.importance.sum())
    return Facts(n, weight, problem.least, each, problem.unlimited, bool(useful.any()), sample)


def spent_at(curves: Curves, price: float) -> float:
    """Σ cost·rate of a part at a price."""
    return curves.totals(price)[0]


def fresh_at(curves: Curves, price: float) -> float:
    """Σ importance·freshness of a part at a price."""
    return curves.weigh(curves.rates(price), np.full(1, price)).fresh


def weighed(curves: Curves, mix: Mix) -> Weighed:
    """What the rates of a part earn and cost."""
    rate = mix.rates(curves)
    idle = rate == 0
    return Weighed(
        curves.weigh(rate, mix.price * curves.cost),
        curves.sum_of(rate),
        int(idle.sum()),
        float(np.broadcast_to(curves.importance, len(rate))[idle].sum()),
        int((curves.change_rate == 0).sum()),
    )


# --- all parts ----------------------------------------------------------------------------------------------------


class PartsProblem:
    """All parts together; ``each`` asks a question of every part, and counts as one pass."""

    def __init__(self, each: Each) -> None:
        self._each = each
        self.passes = 0
        found: list[Facts] = each(facts_of)
        self.n_pages = sum(facts.n_pages for facts in found)
        self.importance = math.fsum(facts.importance for facts in found)
        self._least = math.fsum(facts.least for facts in found)
        self._cost = math.fsum(facts.each for facts in found)
        self._unlimited = any(facts.unlimited for facts in found)
        self._useful = any(facts.useful for facts in found)
        self._sample = _joined([facts.sample for facts in found])
        if not self.importance:
            raise ParameterError("importance is 0 on every page: there is nothing to keep fresh")

    def solve(self, objective: str, **goal: float) -> PartsPlan:
        """The plan for a ``budget``, a ``price`` or a ``target``."""
        ((name, value),) = goal.items()
        budget = value if name == "budget" else None
        if budget is not None:
            mix, total = self._at_budget(budget)
        elif name == "price":
            mix, total = Mix(value, value, 0.0, value), self._weigh(Mix(value, value, 0.0, value))
        else:
            mix, total = self._at_target(value)
        gain = total.outcome.gain if objective == "freshness" else -total.outcome.gain
        return PartsPlan(
            mix=mix,
            n_pages=self.n_pages,
            threshold=mix.price,
            freshness=min(total.outcome.fresh / self.importance, 1.0),
            objective=gain / self.importance,
            budget=budget,
            spent=total.spent,
            gap=self._gap(mix, total, budget),
            iterations=self.passes,
            n_never=total.n_never,
            never_importance=total.never_importance / self.importance,
            n_static=total.n_static,
        )

    def _sum(self, question: Callable[[Curves, float], float], price: float) -> float:
        self.passes += 1
        return math.fsum(self._each(question, price))

    def _weigh(self, mix: Mix) -> Weighed:
        self.passes += 1
        found: list[Weighed] = self._each(weighed, mix)
        gain, fresh, loss, paid = (math.fsum(part) for part in zip(*(one.outcome[:4] for one in found), strict=True))
        return Weighed(
            Outcome(gain, fresh, loss, paid, max(one.outcome.overshoot for one in found)),
            math.fsum(one.spent for one in found),
            sum(one.n_never for one in found),
            math.fsum(one.never_importance for one in found),
            sum(one.n_static for one in found),
        )

    def _gap(self, mix: Mix, total: Weighed, budget: float | None) -> float:
        left = 0.0 if budget is None else mix.price * max(budget - total.spent, 0.0)
        return gap_of(total.outcome, left)

    def _at_budget(self, budget: float) -> tuple[Mix, Weighed]:
        if self._least > budget * (1 + 1e-12):
            text = f"floor: keeping to it costs {self._least:.6g} per time, above the budget of {budget:.6g}"
            raise ParameterError(text)
        share = budget * len(self._sample) / self.n_pages
        typical = self._sample.typical_price(share) or 1.0
        if not self._useful or (not self._unlimited and self._sum(spent_at, typical * FREE) <= budget):
            mix = Mix(typical * FREE, typical * FREE, 0.0, 0.0)
            return mix, self._weigh(mix)
        if self._least >= budget * (1 - 1e-12):
            mix = Mix(typical / FREE, typical / FREE, 0.0, typical / FREE)
            return mix, self._weigh(mix)
        guess = Problem.of(self._sample).first_guess(share, typical)
        search = PriceSearch(lambda price: self._sum(spent_at, price), budget).run(*guess)
        return self._best_mix(search, spent_at, budget)

    def _at_target(self, target: float) -> tuple[Mix, Weighed]:
        goal, typical = target * self.importance, self._sample.typical_price(self._cost) or 1.0
        best, worst = (self._sum(fresh_at, price) for price in (typical * FREE, typical / FREE))
        if best < goal:
            raise ParameterError(f"target is {target}: the most that can be reached is {target * best / goal:.6g}")
        if worst >= goal:
            mix = Mix(typical / FREE, typical / FREE, 0.0, typical / FREE)
            return mix, self._weigh(mix)
        search = PriceSearch(lambda price: self._sum(fresh_at, price), goal).run(typical)
        return self._best_mix(search, fresh_at, None)

    def _best_mix(
        self, search: PriceSearch, question: Callable[[Curves, float], float], budget: float | None
    ) -> tuple[Mix, Weighed]:
        """See `Problem`: rates mixed between two prices, narrowed as far as the gap asks for."""
        while True:
            found = enclose(search, lambda price: self._sum(question, price), lambda total: total)
            mix = Mix(found.low, found.high, found.share, found.high + found.share * (found.low - found.high))
            total = self._weigh(mix)
            if self._gap(mix, total, budget) <= GOOD_GAP or not search.narrow():
                return mix, total


def _joined(samples: list[Curves]) -> Curves:
    columns, every = {}, -(-sum(map(len, samples)) // _MOST_SAMPLED)
    for column in fields(Curves):
        parts = [np.broadcast_to(getattr(sample, column.name), len(sample))[::every] for sample in samples]
        columns[column.name] = np.ascontiguousarray(np.concatenate(parts))
    return Curves(**columns)
