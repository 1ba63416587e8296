"""Curves: for each page, what a crawl rate earns under one objective, spacing and kind of signals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.model.kernels import rates as kinds
from recrawl.model.kernels.outcomes import fill_outcomes
from recrawl.model.kinds import choose_kinds, first_row, one_if_constant
from recrawl.model.pages import Pages
from recrawl.solver import kernels as _kernels
from recrawl.solver.parallel import HEAVY, LIGHT, chunks

Array = NDArray[np.float64]
_NONE = np.zeros(1)  # nothing left out


class Outcome(NamedTuple):
    """Sums over the pages of a plan."""

    gain: float  # Σ importance·gain
    fresh: float  # Σ importance·freshness
    loss: float  # bound of what single pages lose against the rate that is best at their price
    paid: float  # Σ price (rate − floor)
    overshoot: float  # the share, of the size of rounding, by which slopes lie above prices


@dataclass(frozen=True)
class Curves:
    """Columns of all pages as kernels take them (one element where a single value stands for all rows)."""

    kind: NDArray[np.uint8]
    change_rate: Array
    importance: Array
    evidence: Array
    missed_rate: Array
    signal_rate: Array
    weight: Array
    cost: Array
    low: Array
    high: Array
    exponent: Array  # thresholds found last, where the next search starts

    def __len__(self) -> int:
        return len(self.change_rate)

    def rows(self, index: Any) -> Curves:
        """The same curves for some pages."""
        names = [name for name in self.__dataclass_fields__ if len(getattr(self, name)) == len(self)]
        return replace(self, **{name: np.ascontiguousarray(getattr(self, name)[index]) for name in names})

    def totals(self, price: float, surcharge: float = 0.0, skip_below: Array = _NONE) -> tuple[float, float]:
        """(Σ cost·rate, Σ rate) when a crawl has the price price·cost + surcharge."""
        sums = chunks(_kernels.totals, len(self), self._chunk, *self._columns(skip_below), price, surcharge)
        return math.fsum(s[0] for s in sums), math.fsum(s[1] for s in sums)

    def rates(self, price: float, surcharge: float = 0.0, skip_below: Array = _NONE, out: Array | None = None) -> Array:
        """Rates at that price; pages left out keep what ``out`` holds."""
        out = np.zeros(len(self)) if out is None else out
        chunks(_kernels.fill_rates, len(self), self._chunk, *self._columns(skip_below), price, surcharge, out)
        return out

    def weigh(self, rate: Array, price: Array) -> Outcome:
        """What a plan earns, and how the slopes of its curves lie to the prices of its pages."""
        limits = (self.low, self.high)
        sums = chunks(
            _kernels.weigh, len(self), self._chunk, *self._page_columns(), *limits, self.exponent, price, rate
        )
        parts = list(zip(*sums, strict=True))
        gain, fresh, loss, paid = (math.fsum(part) for part in parts[:-1])
        return Outcome(gain, fresh, loss, paid, max(parts[-1]))

    @property
    def _chunk(self) -> int:
        light = len(self.kind) == 1 and self.kind[0] in (kinds.RANDOM, kinds.HARMONIC_RANDOM, kinds.STEPS)
        return LIGHT if light or len(self) > 64 * LIGHT else HEAVY

    @property
    def useful(self) -> NDArray[np.bool_]:
        """Pages on which a crawl can gain anything."""
        return (self.change_rate > 0) & (self.importance > 0)

    def sum_of(self, rate: Array) -> float:
        """Σ cost·rate."""
        n = len(self)
        if len(self.cost) == 1:
            return float(self.cost[0]) * (n * float(rate[0]) if len(rate) == 1 else float(rate.sum()))
        return float(np.dot(self.cost, np.broadcast_to(rate, n)))

    def typical_price(self, budget: float) -> float:
        """What a crawl earns on the median page when all are crawled equally: where to begin to look for the price."""
        some = self.rows(np.arange(0, len(self), -(-len(self) // 1000)))
        some = some.rows(some.useful)
        if len(some) == 0:
            some = self.rows(self.useful)
        if len(some) == 0:
            return 0.0
        some = some.rows(slice(1000))
        each = budget / (len(self) * float(some.cost.mean()))
        rate = np.minimum(np.full(len(some), each), np.where(np.isfinite(some.high), some.high, each))
        slopes = np.empty(len(some))
        fill_outcomes(2, *some._page_columns(), rate, slopes)
        return float(np.median(slopes / some.cost)) or 1.0

    def _page_columns(self) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
        source = (self.missed_rate, self.signal_rate, self.weight)
        return self.kind, self.change_rate, self.importance, self.evidence, *source

    def _columns(self, skip_below: Array) -> tuple[Any, ...]:
        return *self._page_columns(), self.cost, self.low, self.high, skip_below, self.exponent


def build_curves(pages: Pages, objective: str, spacing: str, floor: ArrayLike, ceiling: ArrayLike | None) -> Curves:
    """Choose each page's curve, or say that no theory covers the combination."""
    kind, source = choose_kinds(pages, objective, spacing)
    low, high = _limits(pages, kind, source, floor, ceiling)
    n = len(pages)
    return Curves(
        kind,
        np.ascontiguousarray(pages.change_rate),
        np.ascontiguousarray(pages.importance),
        one_if_constant(pages.evidence),
        *source,
        cost=one_if_constant(pages.cost),
        low=low,
        high=high,
        exponent=np.zeros(n if (kind == kinds.SIGNALS).any() else 1),
    )


def _limits(
    pages: Pages,
    kind: NDArray[np.uint8],
    source: tuple[Array, Array, Array],
    floor: ArrayLike,
    ceiling: ArrayLike | None,
) -> tuple[Array, Array]:
    low = _rate_limit("floor", floor, len(pages))
    high = np.full(1, np.inf) if ceiling is None else _rate_limit("ceiling", ceiling, len(pages))
    if ceiling is not None:
        first_row("ceiling", (high <= 0) | (high < low), "must be above 0 and not below the floor")
    if len(kind) == 1 and kind[0] != kinds.STEPS:
        return low, high
    cap = np.full(len(pages), np.inf)
    cap[np.broadcast_to(kind == kinds.STEPS, len(cap))] = 1.0
    first_row("floor", (low > 1) & (kind == kinds.STEPS), "a page cannot be crawled more than once a step")
    complete = np.broadcast_to((kind >= kinds.COMPLETE) & (kind != kinds.SIGNALS), len(cap))
    cap[complete] = pages.change_rate[complete]
    lattice = np.broadcast_to(kind == kinds.SIGNALS, len(cap)) & (np.broadcast_to(source[0], len(cap)) == 0)
    cap[lattice] = np.broadcast_to(source[1], len(cap))[lattice]
    return low, np.maximum(np.minimum(high, cap), low)


def _rate_limit(name: str, value: ArrayLike, n: int) -> Array:
    limit = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if limit.ndim != 1 or len(limit) not in (1, n):
        raise ParameterError(f"{name} has {len(limit)} rows but there are {n} pages")
    first_row(name, ~(limit >= 0), "must be at least 0")
    if name == "floor":
        first_row(name, np.isinf(limit), "must be finite")
    return limit
