"""Curves: for each page, what a crawl rate earns under one objective, spacing and kind of signals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.model import _rate_kernels as kinds
from recrawl.model.pages import Pages
from recrawl.model.signals import matched_source
from recrawl.solver import _kernels
from recrawl.solver.parallel import chunks

Array = NDArray[np.float64]
_NONE = np.zeros(1)  # nothing left out

OBJECTIVES = ("freshness", "harmonic", "age")
SPACINGS = ("even", "random", "steps")

_PLAIN = {
    ("freshness", "even"): kinds.EVEN,
    ("freshness", "random"): kinds.RANDOM,
    ("freshness", "steps"): kinds.STEPS,
    ("harmonic", "even"): kinds.HARMONIC_EVEN,
    ("harmonic", "random"): kinds.HARMONIC_RANDOM,
    ("age", "even"): kinds.AGE_EVEN,
    ("age", "random"): kinds.AGE_RANDOM,
}
# Pages whose every change is signalled, and nothing else is.
_COMPLETE = {
    ("freshness", "even"): kinds.COMPLETE,
    ("freshness", "random"): kinds.COMPLETE,
    ("harmonic", "even"): kinds.COMPLETE_HARMONIC_EVEN,
    ("harmonic", "random"): kinds.COMPLETE_HARMONIC,
}
_NOISY = {("freshness", "even"): kinds.SIGNALS}


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
        sums = chunks(_kernels.totals, len(self), *self._columns(skip_below), price, surcharge)
        return math.fsum(s[0] for s in sums), math.fsum(s[1] for s in sums)

    def rates(self, price: float, surcharge: float = 0.0, skip_below: Array = _NONE, out: Array | None = None) -> Array:
        """Rates at that price; pages left out keep what ``out`` holds."""
        out = np.zeros(len(self)) if out is None else out
        chunks(_kernels.fill_rates, len(self), *self._columns(skip_below), price, surcharge, out)
        return out

    def weigh(self, rate: Array, price: Array) -> Outcome:
        """What a plan earns, and how the slopes of its curves lie to the prices of its pages."""
        limits = (self.low, self.high)
        sums = chunks(_kernels.weigh, len(self), *self._page_columns(), *limits, self.exponent, price, rate)
        parts = list(zip(*sums, strict=True))
        return Outcome(*(math.fsum(part) for part in parts[:-1]), max(parts[-1]))

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
        _kernels.fill_slopes(*some._page_columns(), rate, slopes)
        return float(np.median(slopes / some.cost)) or 1.0

    def _page_columns(self) -> tuple[Any, ...]:
        source = (self.missed_rate, self.signal_rate, self.weight)
        return self.kind, self.change_rate, self.importance, self.evidence, *source

    def _columns(self, skip_below: Array) -> tuple[Any, ...]:
        return *self._page_columns(), self.cost, self.low, self.high, skip_below, self.exponent


def build_curves(pages: Pages, objective: str, spacing: str, floor: ArrayLike, ceiling: ArrayLike | None) -> Curves:
    """Choose each page's curve, or say that no theory covers the combination."""
    if objective not in OBJECTIVES:
        raise ParameterError(f"objective {objective!r} is not one of {', '.join(OBJECTIVES)}")
    if spacing not in SPACINGS:
        raise ParameterError(f"spacing {spacing!r} is not one of {', '.join(SPACINGS)}")
    if (objective, spacing) not in _PLAIN:
        raise ParameterError(f"no optimum is known for objective {objective!r} with spacing {spacing!r}")
    if spacing == "steps":
        _first_row("change_rate", pages.change_rate > 1, "is a probability per step with spacing 'steps': at most 1")
    if (objective, spacing) != ("freshness", "even"):
        _first_row("evidence", np.isfinite(pages.evidence), "only even spacing for freshness takes uncertain rates")
    kind, source = _kinds(pages, objective, spacing)
    low, high = _limits(pages, kind, source, floor, ceiling)
    n = len(pages)
    return Curves(
        kind,
        np.ascontiguousarray(pages.change_rate),
        np.ascontiguousarray(pages.importance),
        _short(pages.evidence),
        *source,
        cost=_short(pages.cost),
        low=low,
        high=high,
        exponent=np.zeros(n if (kind == kinds.SIGNALS).any() else 1),
    )


def _kinds(pages: Pages, objective: str, spacing: str) -> tuple[NDArray[np.uint8], tuple[Array, Array, Array]]:
    plain = np.array([_PLAIN[objective, spacing]], np.uint8)
    if not pages.has_signals:
        return plain, (np.zeros(1), np.zeros(1), np.zeros(1))
    source = matched_source(pages)
    useful = source.weight > 0
    complete = useful & (source.missed_rate == 0) & np.isinf(source.weight)
    noisy = useful & ~complete
    what = f"objective {objective!r} with spacing {spacing!r}"
    if (objective, spacing) not in _COMPLETE:
        _first_row("recall", useful, f"no optimum is known for {what} and signals")
    if (objective, spacing) not in _NOISY:
        _first_row("recall", noisy, f"no optimum is known for {what} and noisy signals")
    _first_row("evidence", useful & np.isfinite(pages.evidence), "a page with signals needs a known rate")
    kind = np.full(len(pages), plain[0], np.uint8)
    kind[complete] = _COMPLETE.get((objective, spacing), 0)
    kind[noisy] = kinds.SIGNALS
    return kind, (source.missed_rate, source.signal_rate, source.weight)


def _limits(
    pages: Pages, kind: NDArray[np.uint8], source: tuple[Array, Array, Array], floor: ArrayLike, ceiling: ArrayLike | None
) -> tuple[Array, Array]:
    low = _rate_limit("floor", floor, len(pages))
    high = np.full(1, np.inf) if ceiling is None else _rate_limit("ceiling", ceiling, len(pages))
    if ceiling is not None:
        _first_row("ceiling", (high <= 0) | (high < low), "must be above 0 and not below the floor")
    if len(kind) == 1 and kind[0] != kinds.STEPS:
        return low, high
    cap = np.full(len(pages), np.inf)
    cap[np.broadcast_to(kind == kinds.STEPS, len(cap))] = 1.0
    _first_row("floor", (low > 1) & (kind == kinds.STEPS), "a page cannot be crawled more than once a step")
    complete = np.broadcast_to((kind >= kinds.COMPLETE) & (kind != kinds.SIGNALS), len(cap))
    cap[complete] = pages.change_rate[complete]
    lattice = np.broadcast_to(kind == kinds.SIGNALS, len(cap)) & (np.broadcast_to(source[0], len(cap)) == 0)
    cap[lattice] = np.broadcast_to(source[1], len(cap))[lattice]
    return low, np.maximum(np.minimum(high, cap), low)


def _rate_limit(name: str, value: ArrayLike, n: int) -> Array:
    limit = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if limit.ndim != 1 or len(limit) not in (1, n):
        raise ParameterError(f"{name} has {len(limit)} rows but there are {n} pages")
    _first_row(name, ~(limit >= 0), "must be at least 0")
    if name == "floor":
        _first_row(name, np.isinf(limit), "must be finite")
    return limit


def _first_row(name: str, bad: NDArray[np.bool_], rule: str) -> None:
    if bad.any():
        row = f", row {int(np.argmax(bad))}" if bad.size > 1 else ""
        raise ParameterError(f"{name}{row}: {rule}")


def _short(column: Array) -> Array:
    return column[:1].copy() if column.strides[0] == 0 else np.ascontiguousarray(column)
