"""Processes with a common beat: hours and weekdays, and groups of pages that change together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.simulate.worlds.events import Events, poisson_events
from recrawl.simulate.worlds.processes import Changes, positive

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_HOURS = tuple(1.0 + 0.8 * math.cos(2 * math.pi * (hour - 15) / 24) for hour in range(24))
_WEEKDAYS = (1.2, 1.3, 1.3, 1.3, 1.1, 0.45, 0.35)


@dataclass(frozen=True)
class Seasonal:
    """Rates that follow the hour and the weekday: rate · hours[h] · weekdays[d] / their mean.

    The first day is a Monday at time 0; ``day`` is how long a day is. Drawn by inverting the cumulated rate.
    """

    hours: tuple[float, ...] = _HOURS
    weekdays: tuple[float, ...] = _WEEKDAYS
    day: float = 1.0

    def __post_init__(self) -> None:
        positive(day=self.day)
        for name, n in (("hours", 24), ("weekdays", 7)):
            column = np.asarray(getattr(self, name), np.float64)
            if column.shape != (n,) or not ((column >= 0) & np.isfinite(column)).all() or column.sum() == 0:
                raise ParameterError(f"{name}: {n} weights are needed, finite, at least 0 and not all 0")

    @property
    def profile(self) -> Array:
        """The rate in each of the 168 hours of a week, in units of its mean.

        >>> float(Seasonal().profile.mean().round(12))
        1.0
        """
        weight = np.outer(self.weekdays, self.hours).ravel()
        mean_one: Array = weight / weight.mean()
        return mean_one

    def draw(self, change_rate: Array, start: float, end: float, rng: np.random.Generator) -> Changes:
        """Changes of pages with these rates over whole weeks."""
        hour = self.day / 24.0
        first, last = math.floor(start / hour), math.ceil(end / hour)
        edge = hour * np.arange(first, last + 1)
        grown = np.concatenate([[0.0], np.cumsum(hour * self.profile[np.arange(first, last) % 168])])
        low, high = np.interp([start, end], edge, grown).tolist()
        events = poisson_events(change_rate, low, high, rng)
        at = np.clip(np.interp(events.at, grown, edge), start, end)
        return Changes(Events(events.offset, at), change_rate * ((high - low) / (end - start)))


@dataclass(frozen=True)
class Together:
    """Pages in groups of ``size`` neighbours: a group event touches each member with a probability of its own.

    A ``shared`` part of every page's changes comes from group events; the fastest member is touched with probability
    ``touch``, the others in proportion to their rates.
    """

    size: int = 20
    shared: float = 0.8
    touch: float = 0.5

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ParameterError(f"size is {self.size}: a group has at least one page")
        if not 0 <= self.shared <= 1:
            raise ParameterError(f"shared is {self.shared:g}: must lie between 0 and 1")
        if not 0 < self.touch <= 1:
            raise ParameterError(f"touch is {self.touch:g}: must be above 0 and at most 1")

    def group(self, n: int) -> Ids:
        """The group of each page."""
        return np.arange(n) // self.size

    def draw(self, change_rate: Array, start: float, end: float, rng: np.random.Generator) -> Changes:
        """Changes of pages with these rates."""
        n = len(change_rate)
        fastest = np.maximum.reduceat(change_rate, np.arange(0, n, self.size))
        events = poisson_events(self.shared * fastest / self.touch, start, end, rng)
        group = events.page
        members = np.minimum(self.size, n - group * self.size)
        row = np.repeat(np.arange(len(group)), members)
        page = group[row] * self.size + np.arange(len(row)) - np.repeat(np.cumsum(members) - members, members)
        hit = rng.random(len(row)) * fastest[group[row]] < self.touch * change_rate[page]
        own = poisson_events((1.0 - self.shared) * change_rate, start, end, rng)
        pages, times = np.concatenate([page[hit], own.page]), np.concatenate([events.at[row[hit]], own.at])
        return Changes(Events.of(pages, times, n), change_rate)
