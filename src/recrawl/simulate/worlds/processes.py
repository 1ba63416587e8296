"""How pages change: each process has the mean rates it is asked for, and draws the instants of all pages at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.simulate.worlds.events import Events, poisson_events, segment_events

Array = NDArray[np.float64]
Ids = NDArray[np.int64]


class Changes(NamedTuple):
    """When pages changed, and the mean rate that each had over that time."""

    events: Events
    change_rate: Array


class Process(Protocol):
    """Draws changes."""

    def draw(self, change_rate: Array, start: float, end: float, rng: np.random.Generator) -> Changes:
        """Changes of pages with these mean rates from start to end."""
        ...


@dataclass(frozen=True)
class Constant:
    """A constant rate: changes are a Poisson process."""

    def draw(self, change_rate: Array, start: float, end: float, rng: np.random.Generator) -> Changes:
        """Changes of pages with these rates."""
        return Changes(poisson_events(change_rate, start, end, rng), change_rate)


@dataclass(frozen=True)
class Jumping:
    """Each page's rate is drawn again, lognormal around its own mean, after exponential times of mean ``every``.

    ``spread`` is the standard deviation of the rate's logarithm.
    """

    every: float = 50.0
    spread: float = 1.0

    def __post_init__(self) -> None:
        positive(every=self.every, spread=self.spread)

    def draw(self, change_rate: Array, start: float, end: float, rng: np.random.Generator) -> Changes:
        """Changes of pages whose rates have these means over all draws."""
        n = len(change_rate)
        jumps = poisson_events(np.full(n, 1.0 / self.every), start, end, rng)
        first = jumps.offset + np.arange(n + 1)  # the segments of page i are first[i] to first[i + 1]
        begin = np.full(first[-1], start)
        later = np.ones(first[-1], np.bool_)
        later[first[:-1]] = False
        begin[later] = jumps.at
        until = np.append(begin[1:], end)
        until[first[1:] - 1] = end
        factor = rng.lognormal(-0.5 * self.spread**2, self.spread, len(begin))
        return _from_segments(change_rate, first, begin, until - begin, factor, rng)


@dataclass(frozen=True)
class Wandering:
    """The logarithm of each page's rate is a random walk: ``spread`` per root of time, a step each ``every``.

    It starts at the rate asked for and is turned back at ``reach`` times that rate and at its ``reach``-th part.
    """

    every: float = 1.0
    spread: float = 0.1
    reach: float = 10.0

    def __post_init__(self) -> None:
        positive(every=self.every, spread=self.spread)
        if not 1 < self.reach < math.inf:
            raise ParameterError(f"reach is {self.reach:g}: must be finite and above 1")

    def draw(self, change_rate: Array, start: float, end: float, rng: np.random.Generator) -> Changes:
        """Changes of pages whose rates start at these."""
        n, steps = len(change_rate), max(1, math.ceil((end - start) / self.every))
        walk = rng.normal(0.0, self.spread * math.sqrt(self.every), (n, steps))
        walk[:, 0] = 0.0
        bound = math.log(self.reach)
        folded = bound - np.abs((np.cumsum(walk, axis=1) + bound) % (4 * bound) - 2 * bound)
        edge = np.minimum(start + self.every * np.arange(steps + 1), end)
        begin, length = np.tile(edge[:-1], n), np.tile(np.diff(edge), n)
        return _from_segments(change_rate, steps * np.arange(n + 1), begin, length, np.exp(folded.ravel()), rng)


def _from_segments(
    change_rate: Array, first: Ids, begin: Array, length: Array, factor: Array, rng: np.random.Generator
) -> Changes:
    page = np.repeat(np.arange(len(change_rate)), np.diff(first))
    rate = change_rate[page] * factor
    count, at = segment_events(rate, begin, length, rng)
    total = np.concatenate([[0], np.cumsum(count)])
    watched = np.add.reduceat(length, first[:-1])
    return Changes(Events(total[first], at), np.add.reduceat(rate * length, first[:-1]) / watched)


@dataclass(frozen=True)
class Renewal:
    """Independent gaps with a heavy tail and mean 1/rate, in equilibrium: bursts, then long silence.

    ``gaps`` is "lognormal" (``shape`` is σ) or "pareto" (from 0 on; ``shape`` is the exponent of the
    tail, above 1).
    """

    gaps: Literal["lognormal", "pareto"] = "lognormal"
    shape: float = 1.5

    def __post_init__(self) -> None:
        if self.gaps not in ("lognormal", "pareto"):
            raise ParameterError(f"gaps {self.gaps!r} is not one of lognormal, pareto")
        positive(shape=self.shape)
        if self.gaps == "pareto" and self.shape <= 1:
            raise ParameterError(f"shape is {self.shape:g}: a Pareto tail has a mean only above 1")

    def draw(self, change_rate: Array, start: float, end: float, rng: np.random.Generator) -> Changes:
        """Changes of pages with these rates."""
        page = np.flatnonzero(change_rate > 0)
        rate = change_rate[page]
        last = self._first(len(page), rng) / rate  # time since start
        pages, times, width = [page], [last], 8
        while (going := last < end - start).any():
            page, rate, last = page[going], rate[going], last[going]
            gap = self._gap((len(page), width), rng) / rate[:, None]
            later = last[:, None] + np.cumsum(gap, axis=1)
            pages.append(np.repeat(page, width))
            times.append(later.ravel())
            last, width = later[:, -1], min(2 * width, 1024)
        number, at = np.concatenate(pages), start + np.concatenate(times)
        return Changes(Events.of(number[at < end], at[at < end], len(change_rate)), change_rate)

    def _gap(self, size: tuple[int, int], rng: np.random.Generator) -> Array:
        if self.gaps == "lognormal":
            return rng.lognormal(-0.5 * self.shape**2, self.shape, size)
        return rng.pareto(self.shape, size) * (self.shape - 1.0)

    def _first(self, n: int, rng: np.random.Generator) -> Array:
        """Time to the first change in equilibrium: a uniform part of a gap drawn in proportion to its length."""
        if self.gaps == "lognormal":
            return rng.random(n) * rng.lognormal(0.5 * self.shape**2, self.shape, n)
        return rng.pareto(self.shape - 1.0, n) * (self.shape - 1.0)


@dataclass(frozen=True)
class SelfExciting:
    """Every change sets off ``offspring`` further ones on average, each after an exponential time of mean ``memory``.

    A Hawkes process, drawn as clusters: unprompted changes at (1 − offspring)·rate, then generation by generation.
    """

    offspring: float = 0.5
    memory: float = 0.25

    def __post_init__(self) -> None:
        positive(memory=self.memory)
        if not 0 <= self.offspring < 1:
            raise ParameterError(f"offspring is {self.offspring:g}: must be at least 0 and below 1")

    def draw(self, change_rate: Array, start: float, end: float, rng: np.random.Generator) -> Changes:
        """Changes of pages with these mean rates."""
        before = 40.0 * self.memory / (1.0 - self.offspring)  # a cluster older than this has died out but for e^−40
        roots = poisson_events((1.0 - self.offspring) * change_rate, start - before, end, rng)
        page, at = roots.page, roots.at
        pages, times = [page], [at]
        while len(page):
            count = rng.poisson(self.offspring, len(page))
            page = np.repeat(page, count)
            at = np.repeat(at, count) + rng.exponential(self.memory, len(page))
            page, at = page[at < end], at[at < end]
            pages.append(page)
            times.append(at)
        number, when = np.concatenate(pages), np.concatenate(times)
        return Changes(Events.of(number[when >= start], when[when >= start], len(change_rate)), change_rate)


def positive(**values: float) -> None:
    """Refuse settings that are not finite and above 0."""
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ParameterError(f"{name} is {value:g}: must be finite and above 0")
