"""Instants drawn for many pages at once: Poisson, also with rates that are constant by segments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Ids = NDArray[np.int64]


class Events(NamedTuple):
    """Instants by page: those of page i are ``at[offset[i]:offset[i + 1]]``, sorted."""

    offset: Ids
    at: Array

    @property
    def page(self) -> Ids:
        """The page of every instant."""
        return np.repeat(np.arange(len(self.offset) - 1), np.diff(self.offset))

    @classmethod
    def of(cls, page: Ids, at: Array, n: int) -> Events:
        """Events of n pages from columns in any order.

        >>> Events.of(np.array([1, 0, 1]), np.array([5.0, 2.0, 3.0]), 2).at.tolist()
        [2.0, 3.0, 5.0]
        """
        return cls(offsets(np.bincount(page, minlength=n)), at[np.lexsort((at, page))])


def offsets(count: ArrayLike) -> Ids:
    """Where each page's rows begin, and where the last ones end."""
    return np.concatenate([[0], np.cumsum(count)]).astype(np.int64)


def poisson_events(rate: Array, start: float, end: float, rng: np.random.Generator) -> Events:
    """Poisson instants of each page, at its rate, from start to end.

    >>> events = poisson_events(np.array([0.0, 2.0]), 10.0, 20.0, np.random.default_rng(1))
    >>> events.offset[1], bool((events.at >= 10.0).all())
    (np.int64(0), True)
    """
    count, at = segment_events(rate, np.full(len(rate), start), np.full(len(rate), end - start), rng)
    return Events(offsets(count), at)


def segment_events(rate: Array, begin: Array, length: Array, rng: np.random.Generator) -> tuple[Ids, Array]:
    """How many Poisson instants each segment of constant rate has, and when they are, segment by segment."""
    count = rng.poisson(rate * length)
    segment = np.repeat(np.arange(len(rate)), count)
    share = np.sort(segment + rng.random(len(segment))) - segment  # one sort for all segments
    return count, begin[segment] + length[segment] * share
