"""Problem: the curves of all pages with their host limits, asked for rates by price, and judged by duality."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.solver.curves import Curves
from recrawl.solver.hosts import Host, Settled
from recrawl.solver.multiplier import Bracket, find_price
from recrawl.solver.plan import Plan

Array = NDArray[np.float64]

_SAMPLE = 4096  # up to this many pages, the search begins without a sample
_FREE = 1e-120  # a price that is as good as nothing, in units of the typical one


@dataclass
class Found:
    """Rates, and the price they belong to (0: nothing is scarce)."""

    price: float
    rate: Array
    hosts: list[Settled] = field(default_factory=list)


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
    def _unlimited(self) -> bool:
        """Whether some page could use any budget."""
        return bool((self.curves.useful & np.isinf(self.curves.high) & (self._skip_below == 0)).any())

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

    def at_price(self, price: float) -> Found:
        """The best rates when a unit of cost has a fixed price."""
        return self.rates(price)

    def at_budget(self, budget: float) -> Found:
        """The best rates whose cost is the budget, or the most that can be used of it."""
        typical = self.curves.typical_price(budget)
        if typical == 0.0 or (not self._unlimited and self.spent(typical * _FREE) <= budget):
            found = self.rates((typical or 1.0) * _FREE)
            return Found(0.0, found.rate, found.hosts)
        if self.least >= budget * (1 - 1e-12):
            return self.rates(typical / _FREE)
        return self._mix(find_price(self.spent, budget, *self._first_guess(budget, typical)))

    def at_target(self, target: float) -> Found:
        """The cheapest rates whose freshness is the target."""
        goal = target * float(self.curves.importance.sum())
        typical = self.curves.typical_price(self.curves.sum_of(np.ones(1)))
        best, worst = self._fresh(typical * _FREE), self._fresh(typical / _FREE)
        if best < goal:
            raise ParameterError(f"target is {target}: the most that can be reached is {target * best / goal:.6g}")
        if worst >= goal:
            return self.rates(typical / _FREE)
        return self._mix(find_price(self._fresh, goal, typical))

    def _mix(self, found: Bracket) -> Found:
        """Rates between the two prices of a bracket such that the goal is met."""
        above = self.rates(found.high)
        if found.share == 0.0 or found.low == found.high:
            return above
        below = self.rates(found.low)
        below.rate -= above.rate
        below.rate *= found.share
        above.rate += below.rate
        return above

    def _fresh(self, price: float) -> float:
        found = self.rates(price)
        return self.curves.weigh(found.rate, np.full(1, price)).fresh

    def _first_guess(self, budget: float, typical: float) -> tuple[float, float]:
        """(price, elasticity of the total) from every 16th page, whose own first guess comes the same way."""
        n = len(self.curves)
        if n <= _SAMPLE:
            return typical, -0.6
        sample = Problem.of(self.curves.rows(np.arange(0, n, 16)))
        goal = budget * len(sample.curves) / n
        try:
            price = find_price(sample.spent, goal, *sample._first_guess(goal, typical), close=1e-6).high
            more, less = sample.spent(price * 0.998), sample.spent(price * 1.002)
        except ArithmeticError:
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

    def plan(self, found: Found, budget: float | None, objective: str) -> Plan:
        """Judge the rates: what they earn, and, by weak duality, how far from the optimum that can be.

        With all prices raised by the largest overshoot, no page earns more than its price; what pages then earn below
        their price, and budget that is left, bound the loss.
        """
        curves, rate = self.curves, found.rate
        price = found.price * curves.cost
        if self.hosts:
            price = np.broadcast_to(price, len(rate)).copy()
            for host, settled in zip(self.hosts, found.hosts, strict=True):
                price[host.rows] += settled.surcharge
        outcome = curves.weigh(rate, price)
        spent = curves.sum_of(rate)
        weight = float(curves.importance.sum())
        missing = found.price * max((spent if budget is None else budget) - spent, 0.0)
        for host, settled in zip(self.hosts, found.hosts, strict=True):
            if 0 < settled.surcharge < math.inf:
                missing += settled.surcharge * max(host.limit - float(settled.rate.sum()), 0.0)
        lost = outcome.slack + outcome.overshoot * outcome.paid + (1.0 + outcome.overshoot) * missing
        return Plan(
            crawl_rate=rate,
            threshold=found.price,
            freshness=min(outcome.fresh / weight, 1.0),
            objective=(outcome.gain if objective == "freshness" else -outcome.gain) / weight,
            budget=budget,
            spent=spent,
            gap=lost / abs(outcome.gain) if outcome.gain else 0.0,
            iterations=self.passes,
            host_price={
                host.name: float(settled.surcharge + found.price * host.curves.cost[0])
                for host, settled in zip(self.hosts, found.hosts, strict=True)
                if settled.surcharge > 0
            },
        )
