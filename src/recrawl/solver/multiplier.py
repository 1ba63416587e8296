"""The one search behind every solver: the price at which a falling total meets its goal.

Totals are power laws of the price over long stretches, so the search runs in the logarithms of both: a few secant steps,
which usually end it, then (at a jump, or where the steps do not settle) a bracket narrowed by inverse quadratic
interpolation guarded by bisection (Chandrupatla 1997).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

_CLOSE = 1e-11  # a total this near to its goal, relative, has met it
_APART = 1e-15  # prices this near, relative, have nothing useful between them
_FAR = 60.0  # stands for the logarithm of a total that is zero or infinite
_SECANT_STEPS = 7
_LIMIT = 650.0  # |log price| beyond which there is no answer


@dataclass
class Bracket:
    """Prices low ≤ high with total(low) ≥ goal ≥ total(high), and the share of `low` in the mix that meets the goal."""

    low: float
    high: float
    share: float


@dataclass
class _Search:
    total: Callable[[float], float]
    goal: float
    close: float
    seen: list[tuple[float, float, float]] = field(default_factory=list)  # (log price, log total/goal, total)

    def ask(self, t: float) -> float:
        value = self.total(math.exp(t))
        ratio = value / self.goal
        off = _FAR if math.isinf(ratio) else (max(math.log(ratio), -_FAR) if ratio > 0 else -_FAR)
        off = 0.0 if abs(ratio - 1.0) <= self.close else off
        self.seen.append((t, off, value))
        return off

    def answer(self) -> Bracket:
        met = [t for t, off, _ in self.seen if off == 0.0]
        if met:
            return Bracket(math.exp(met[-1]), math.exp(met[-1]), 0.0)
        low = max(point for point in self.seen if point[1] > 0)
        high = min(point for point in self.seen if point[1] < 0)
        share = (self.goal - high[2]) / (low[2] - high[2]) if math.isfinite(low[2]) else 0.0
        return Bracket(math.exp(low[0]), math.exp(high[0]), share)


def find_price(
    total: Callable[[float], float],
    goal: float,
    start: float,
    elasticity: float = -0.6,
    close: float = _CLOSE,
) -> Bracket:
    """Bracket the price at which ``total``, which falls as the price rises, equals ``goal``.

    ``elasticity`` is a guess of d log total / d log price. Ends when the total meets the goal, or, at a jump of the total,
    when the two prices touch: the caller then mixes both.
    """
    search = _Search(total, goal, close)
    t = math.log(start)
    off = search.ask(t)
    for _ in range(_SECANT_STEPS):
        if off == 0.0:
            return search.answer()
        step = max(-3.0, min(3.0, -off / elasticity))
        other = t + step
        beyond = search.ask(other)
        if beyond != off and other != t:
            elasticity = min((beyond - off) / (other - t), -1e-3)
        t, off = other, beyond
    _enclose(search, t, off)
    _narrow(search)
    return search.answer()


def _enclose(search: _Search, t: float, off: float) -> None:
    """Step on, ever further, until totals on both sides of the goal have been seen."""
    step = 1e-9
    while off != 0.0 and not (any(p[1] > 0 for p in search.seen) and any(p[1] < 0 for p in search.seen)):
        t += math.copysign(step, off)
        step *= 8.0
        if abs(t) > _LIMIT:
            raise ArithmeticError("no price meets the goal")
        off = search.ask(t)


def _narrow(search: _Search) -> None:
    if any(point[1] == 0.0 for point in search.seen):
        return
    a, fa, _ = max(point for point in search.seen if point[1] > 0)
    b, fb, _ = min(point for point in search.seen if point[1] < 0)
    share = 0.5
    while abs(b - a) > _APART * max(1.0, abs(b)):
        t = a + share * (b - a)
        if t in (a, b):
            return
        ft = search.ask(t)
        if ft == 0.0:
            return
        if (ft > 0) == (fa > 0):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = t, ft
        share = _interpolate(a, fa, b, fb, c, fc)


def _interpolate(a: float, fa: float, b: float, fb: float, c: float, fc: float) -> float:
    """Where between a and b to look next, as a share: quadratic if it can be trusted, else the middle."""
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    if not (phi**2 < xi and (1 - phi) ** 2 < 1 - xi):
        return 0.5
    share = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return min(max(share, 1e-9), 1 - 1e-9)
