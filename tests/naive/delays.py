"""Slow, plain twin of what outcomes after signals say about the delays of signals: the whole history, sum by sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

FIRST, LONGER, LEAST, KEPT, DOUBT, FOLLOW = 0.003, 0.7, -16.0, 0.995, 0.02, 0.9


class Outcome(NamedTuple):
    """A crawl after a signal: its age, P(unchanged) without it, what a signal of credit 1 takes of that, a change."""

    age: float
    silent: float
    taken: float
    changed: bool


def heard(mean: float, age: float) -> float:
    """P(delay ≤ age) of an exponential delay."""
    return 1.0 if mean == 0 else -math.expm1(-age / mean)


def first_shares(n: int) -> list[float]:
    """Probabilities of the delays before anything is known."""
    late = [LONGER**j for j in range(n - 1)]
    return [1.0 - FIRST, *(FIRST * each / sum(late) for each in late)]


class Judge:
    """Evidence for each delay from outcomes; ``follow`` is how far a prior counts that is given with each outcome."""

    def __init__(self, delays: Sequence[float], follow: float) -> None:
        self.delays, self.follow = delays, follow
        self.evidence = [0.0] * len(delays)
        self.shares = first_shares(len(delays))
        self.ages: list[float] = []

    def sums(self) -> list[float]:
        """The fading sum of P(delay ≤ age), for each delay."""
        n = len(self.ages)
        return [sum(KEPT ** (n - 1 - i) * heard(d, age) for i, age in enumerate(self.ages)) for d in self.delays]

    def credit(self, delay: int, age: float) -> float:
        """What multiplies the precision of a signal, were a delay the true one."""
        sums = self.sums()
        return heard(self.delays[delay], age) * sums[0] / max(sums[delay], 1e-9)

    def mean_credit(self, age: float) -> float:
        """The same by all delays together."""
        return 1.0 if not self.ages else sum(share * self.credit(j, age) for j, share in enumerate(self.shares))

    def learn(self, one: Outcome, prior: Sequence[float]) -> None:
        """Add an outcome."""
        self.ages.append(one.age)

        def log_chance(delay: int) -> float:
            unchanged = max(one.silent - one.taken * self.credit(delay, one.age), DOUBT * one.silent)
            return math.log(max(1.0 - unchanged if one.changed else unchanged, 1e-6))

        gains = [log_chance(j) - log_chance(0) for j in range(len(self.delays))]
        self.evidence = [old + gain for old, gain in zip(self.evidence, gains, strict=True)]
        top = max(self.evidence)
        self.evidence = [max(each - top, LEAST) for each in self.evidence]
        before = [self.follow * p + (1 - self.follow) * f for p, f in zip(prior, first_shares(len(prior)), strict=True)]
        weights = [p * math.exp(e) for p, e in zip(before, self.evidence, strict=True)]
        self.shares = [w / sum(weights) for w in weights]
