"""The one search behind every solver: the price at which a falling total meets its goal.

Totals are power laws of the price over long stretches, so the search runs in the logarithms of both: a few secant
steps, which usually end it, then a bracket narrowed by inverse quadratic interpolation guarded by bisection
(Chandrupatla 1997). Between two prices that nearly touch, rates are mixed so that the goal is met: for pages whose rate
is smooth in the price the error of that is of second order, and for a page whose rate jumps there it is the optimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from recrawl.errors import ParameterError

A = TypeVar("A")

_CLOSE = 1e-11  # a total this near to its goal, relative, has met it
_NEAR = 1e-7  # a bracket this narrow, relative, is mixed; judged by its gap, it may be narrowed further
_TOUCH = 1e-15  # prices this near have nothing between them
_STEP = 1e-14  # the first step outwards where an answer computed again lies on the other side of the goal
_FAR = 60.0  # stands for the logarithm of a total that is zero or infinite
_SECANT_STEPS = 4
_LIMIT = 650.0  # |log price| beyond which there is no answer


@dataclass
class PriceSearch:
    """Brackets the price at which ``total``, which falls as the price rises, equals ``goal``."""

    total: Callable[[float], float]
    goal: float
    close: float = _CLOSE
    _seen: list[tuple[float, float, float]] = field(default_factory=list)  # (log price, log total/goal, total)

    def run(self, start: float, elasticity: float = -0.6) -> PriceSearch:
        """Search from ``start``; ``elasticity`` is a guess of d log total / d log price."""
        t = math.log(start)
        off = self._ask(t)
        for _ in range(_SECANT_STEPS):
            if off == 0.0:
                return self
            other = t + max(-3.0, min(3.0, -off / elasticity))
            beyond = self._ask(other)
            if beyond != off and other != t:
                elasticity = min((beyond - off) / (other - t), -1e-3)
            t, off = other, beyond
        self._enclose(t, off)
        self.narrow(_NEAR)
        return self

    def narrow(self, width: float = _TOUCH) -> bool:
        """Make the bracket narrower than ``width``; False where it already was."""
        if self.met is not None:
            return False
        a, fa, _ = self.low
        b, fb, _ = self.high
        share, moved = 0.5, False
        while abs(b - a) > max(width, _TOUCH * abs(b)):
            t = a + share * (b - a)
            if t in (a, b):
                break
            ft = self._ask(t)
            moved = True
            if ft == 0.0:
                break
            if (ft > 0) == (fa > 0):
                c, fc = a, fa
            else:
                c, fc, b, fb = b, fb, a, fa
            a, fa = t, ft
            share = _interpolate(a, fa, b, fb, c, fc)
        return moved

    @property
    def met(self) -> float | None:
        """The price at which the goal was met, if one was asked about."""
        return next((math.exp(t) for t, off, _ in reversed(self._seen) if off == 0.0), None)

    @property
    def low(self) -> tuple[float, float, float]:
        """The highest price seen whose total is above the goal."""
        return max(point for point in self._seen if point[1] > 0)

    @property
    def high(self) -> tuple[float, float, float]:
        """The lowest price seen whose total is below the goal."""
        return min(point for point in self._seen if point[1] < 0)

    def prices(self) -> tuple[float, float, float]:
        """(low, high, share of the low price's rates in the mix that meets the goal)."""
        met = self.met
        if met is not None:
            return met, met, 0.0
        low, high = self.low, self.high
        share = (self.goal - high[2]) / (low[2] - high[2]) if math.isfinite(low[2]) else 0.0
        return math.exp(low[0]), math.exp(high[0]), share

    def _ask(self, t: float) -> float:
        if abs(t) > _LIMIT:
            raise ParameterError(f"no crawl rates meet {self.goal:g}: it is too large or too small for these pages")
        value = self.total(math.exp(t))
        ratio = value / self.goal
        off = _FAR if math.isinf(ratio) else (max(math.log(ratio), -_FAR) if ratio > 0 else -_FAR)
        off = 0.0 if abs(ratio - 1.0) <= self.close else off
        self._seen.append((t, off, value))
        return off

    def _enclose(self, t: float, off: float) -> None:
        """Step on, ever further, until totals on both sides of the goal have been seen."""
        step = 1e-7
        while off != 0.0 and not {True, False} <= {point[1] > 0 for point in self._seen}:
            t += math.copysign(step, off)
            step *= 8.0
            off = self._ask(t)


@dataclass(frozen=True)
class Enclosed(Generic[A]):
    """Answers at two prices around a goal, and the share of the lower price's answer in the mix that meets it."""

    low: float
    high: float
    below: A
    above: A
    share: float


def enclose(search: PriceSearch, answer: Callable[[float], A], measure: Callable[[A], float]) -> Enclosed[A]:
    """Ask again at the prices of a search, and step outwards where the answers do not lie around the goal.

    Thresholds of noisy pages are searched from where the last search ended. Where a rate is almost a step of the price,
    that is enough for another answer at the same price: what is mixed must be what is handed out.
    """
    goal = search.goal
    low, high, _ = search.prices()
    above = answer(high)
    less = measure(above)
    if low == high and abs(less / goal - 1.0) <= 10.0 * _CLOSE:
        return Enclosed(low, high, above, above, 0.0)
    step = _STEP
    while less > goal and step < 1e-3:
        high *= 1.0 + step
        step *= 8.0
        above = answer(high)
        less = measure(above)
    below = answer(low)
    more = measure(below)
    step = _STEP
    while more < goal and step < 1e-3:
        low *= 1.0 - step
        step *= 8.0
        below = answer(low)
        more = measure(below)
    share = (goal - less) / (more - less) if math.isfinite(more) and more > less else 0.0
    return Enclosed(low, high, below, above, min(max(share, 0.0), 1.0))


def _interpolate(a: float, fa: float, b: float, fb: float, c: float, fc: float) -> float:
    """Where between a and b to look next, as a share: quadratic if it can be trusted, else the middle."""
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    if not (phi**2 < xi and (1 - phi) ** 2 < 1 - xi):
        return 0.5
    share = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return min(max(share, 1e-9), 1 - 1e-9)
