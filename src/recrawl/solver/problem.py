"""Problem: the curves of all pages with their host limits, asked for rates by price, and judged by duality."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.solver.curves import Curves, Outcome
from recrawl.solver.hosts import Host, Settled
from recrawl.solver.multiplier import PriceSearch, enclose
from recrawl.solver.plan import Plan

Array = NDArray[np.float64]

_SAMPLE = 4096  # up to this many pages, the search begins without a sample
GOOD_GAP = 1e-11  # good enough; a worse one asks for a narrower bracket
FREE = 1e-120  # a price that is as good as nothing, in units of the typical one


@dataclass
class Found:
    """Rates, and the price they belong to (0: nothing is scarce)."""

    price: float
    rate: Array
    hosts: list[Settled] = field(default_factory=list)


@dataclass
class Judged:
    """Rates with what they earn and how good they are."""

    found: Found
    outcome: Outcome
    spent: float
    gap: float


def gap_of(outcome: Outcome, left: float) -> float:
    """How far from the optimum a plan can be, relative to what it earns; ``left`` is the worth of unused budget."""
    lost = outcome.loss + outcome.overshoot * outcome.paid + (1.0 + outcome.overshoot) * left
    return lost / abs(outcome.gain) if outcome.gain else 0.0


class Problem:
    """All pages together: totals and rates as functions of the common price."""

    def __init__(self, curves: Curves, hosts: list[Host]) -> None:
        self.curves = curves
        self.hosts = hosts
        self.passes = 0
        self._skip_below = self._own_prices()

    @classmethod
    def of(cls, curves: Curves) -> Problem:
        """A problem without host limits."""
        return cls(curves, [])

    @property
    def least(self) -> float:
        """What the floor alone costs."""
        return self.curves.sum_of(self.curves.low)

    @property
    def unlimited(self) -> bool:
        """Whether some page could use any budget."""
        endless = np.isinf(self.curves.high) & (self._skip_below == 0)
        return bool(endless[0]) if endless.size == 1 else bool((self.curves.useful & endless).any())

    def spent(self, price: float) -> float:
        """Σ cost·rate at a common price."""
        self.passes += 1
        free, _ = self.curves.totals(price, 0.0, self._skip_below)
        return free + math.fsum(settled.spent for _, settled in self._apart(price))

    def rates(self, price: float) -> Found:
        """Rates at a common price."""
        self.passes += 1
        rate = self.curves.rates(price, 0.0, self._skip_below)
        hosts = []
        for host in self.hosts:
            settled = host.settle(price)
            rate[host.rows] = settled.rate
            hosts.append(settled)
        return Found(price, rate, hosts)

    def at_price(self, price: float) -> Judged:
        """The best rates when a unit of cost has a fixed price."""
        return self.judge(self.rates(price), None)

    def at_budget(self, budget: float) -> Judged:
        """The best rates whose cost is the budget, or the most that can be used of it."""
        typical = self.curves.typical_price(budget)
        if typical == 0.0 or (not self.unlimited and self.spent(typical * FREE) <= budget):
            found = self.rates((typical or 1.0) * FREE)
            return self.judge(Found(0.0, found.rate, found.hosts), budget)
        if self.least >= budget * (1 - 1e-12):
            return self.judge(self.rates(typical / FREE), budget)
        search = PriceSearch(self.spent, budget).run(*self.first_guess(budget, typical))
        return self._best_mix(search, lambda found: self.curves.sum_of(found.rate), budget)

    def at_target(self, target: float) -> Judged:
        """The cheapest rates whose freshness is the target."""
        goal = target * float(self.curves.importance.sum())
        typical = self.curves.typical_price(self.curves.sum_of(np.ones(1)))
        best, worst = (self._fresh_of(self.rates(price)) for price in (typical * FREE, typical / FREE))
        if best < goal:
            raise ParameterError(f"target is {target}: the most that can be reached is {target * best / goal:.6g}")
        if worst >= goal:
            return self.judge(self.rates(typical / FREE), None)
        search = PriceSearch(lambda price: self._fresh_of(self.rates(price)), goal).run(typical)
        return self._best_mix(search, self._fresh_of, None)

    def _best_mix(self, search: PriceSearch, measure: Callable[[Found], float], budget: float | None) -> Judged:
        """Rates mixed between the two prices of a search; prices narrowed as far as the gap asks for."""
        while True:
            mix = enclose(search, self.rates, measure)
            found, below = mix.above, mix.below
            if below is not found:
                below.rate -= found.rate
                below.rate *= mix.share
                found.rate += below.rate
                found.price += mix.share * (mix.low - mix.high)
            judged = self.judge(found, budget)
            if judged.gap <= GOOD_GAP or not search.narrow():
                return judged

    def _fresh_of(self, found: Found) -> float:
        return self.curves.weigh(found.rate, np.full(1, found.price)).fresh

    def first_guess(self, budget: float, typical: float) -> tuple[float, float]:
        """(price, elasticity of the total) from every 16th page, whose own first guess comes the same way."""
        n = len(self.curves)
        if n <= _SAMPLE:
            return typical, -0.6
        sample = Problem.of(self.curves.rows(np.arange(0, n, 16)))
        goal = budget * len(sample.curves) / n
        try:
            search = PriceSearch(sample.spent, goal, close=1e-6).run(*sample.first_guess(goal, typical))
            price = search.prices()[1]
            more, less = sample.spent(price * 0.998), sample.spent(price * 1.002)
        except ParameterError:
            return typical, -0.6
        return price, min(math.log(less / more) / math.log(1.002 / 0.998), -0.05) if less > 0 else -0.6

    def _own_prices(self) -> Array:
        if not self.hosts:
            return np.zeros(1)
        own = np.zeros(len(self.curves))
        for host in self.hosts:
            own[host.rows] = np.inf if host.known is None else host.known.surcharge
        return own

    def _apart(self, price: float) -> list[tuple[Host, Settled]]:
        """Hosts that are not part of the common pass: at their limit, or with crawls of different cost."""
        return [
            (host, host.settle(price))
            for host in self.hosts
            if host.known is None or price * host.curves.cost[0] < host.known.surcharge
        ]

    def judge(self, found: Found, budget: float | None) -> Judged:
        """What the rates earn, and, by weak duality, how far from the optimum that can be.

        The loss is at most what pages earn below their price, what pages with a higher slope than price could still
        gain, and the worth of budget that is left.
        """
        curves, rate = self.curves, found.rate
        price = found.price * curves.cost
        left = 0.0
        if self.hosts:
            price = np.broadcast_to(price, len(rate)).copy()
            for host, settled in zip(self.hosts, found.hosts, strict=True):
                price[host.rows] += settled.surcharge
                if 0 < settled.surcharge < math.inf:
                    left += settled.surcharge * max(host.limit - float(settled.rate.sum()), 0.0)
        outcome = curves.weigh(rate, price)
        spent = curves.sum_of(rate)
        left += found.price * max((spent if budget is None else budget) - spent, 0.0)
        return Judged(found, outcome, spent, gap_of(outcome, left))

    def plan(self, judged: Judged, budget: float | None, objective: str) -> Plan:
        """The answer in the caller's terms."""
        found, outcome = judged.found, judged.outcome
        weight = float(self.curves.importance.sum())
        return Plan(
            crawl_rate=found.rate,
            threshold=found.price,
            freshness=min(outcome.fresh / weight, 1.0),
            objective=(outcome.gain if objective == "freshness" else -outcome.gain) / weight,
            budget=budget,
            spent=judged.spent,
            gap=judged.gap,
            iterations=self.passes,
            host_price={
                host.name: float(settled.surcharge + found.price * host.curves.cost[0])
                for host, settled in zip(self.hosts, found.hosts, strict=True)
                if settled.surcharge > 0
            },
        )
