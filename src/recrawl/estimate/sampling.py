"""Samples of a store's pages, for figures about databases that are too large to be read as a whole.

Pages are drawn without replacement, half by importance and half evenly: sums that are weighted by importance and sums
that are not are both estimated well. A page that was drawn with probability p stands for 1/p pages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_ROUNDS = 50


@dataclass(frozen=True)
class Sample:
    """Drawn pages: their rows among all pages, in order, and how many pages each stands for."""

    rows: Ids
    stands_for: Array


def sampling_error(importance: Array, stands_for: Array) -> float:
    """The standard error of a share of pages, weighted by importance, that is estimated from a sample: at most this.

    It is that of a share of one half that pages take on independently of each other. Where few pages, which are always
    drawn, have most of the importance, it is small and can be half of the true one.

    >>> round(sampling_error(np.ones(2500), np.full(2500, 100.0)), 4)
    0.0099
    """
    weight = stands_for * importance
    total = float(weight.sum())
    by_chance = 1.0 - 1.0 / stands_for
    return 0.5 * float(np.sqrt((by_chance * weight**2).sum())) / total if total > 0 else 0.0


def draw(importance: Array, most: int, rng: np.random.Generator) -> Sample:
    """At most so many pages and, if there are not more, all of them.

    The draw is systematic in a random order of the pages: equal steps along the running sum of the probabilities. In
    the order of the pages, a pattern that repeats (hosts by turns) could agree with the steps.

    >>> sample = draw(np.array([1.0, 1.0, 1.0, 97.0]), 2, np.random.default_rng(0))
    >>> len(sample.rows), int(sample.rows[-1]), float(sample.stands_for[-1])
    (2, 3, 1.0)
    """
    n = len(importance)
    if n <= most:
        return Sample(np.arange(n), np.ones(n))
    chance, order = chances(importance, most), rng.permutation(n)
    steps = np.floor(np.cumsum(chance[order]) + rng.random())
    rows = np.sort(order[np.diff(steps, prepend=0.0) > 0])
    return Sample(rows, 1.0 / chance[rows])


def chances(importance: Array, most: int) -> Array:
    """The probability with which each page is drawn; their sum is the size of the sample."""
    n, total = len(importance), float(importance.sum())
    score = np.full(n, 1.0 / n) if total <= 0 else 0.5 / n + 0.5 * importance / total
    chance = np.minimum(most * score, 1.0)
    for _ in range(_ROUNDS):  # what pages that are drawn for certain do not need goes to the others
        certain = chance >= 1.0
        others = float(score[~certain].sum())
        grown = np.where(certain, 1.0, np.minimum((most - certain.sum()) * score / others if others > 0 else 1.0, 1.0))
        if np.array_equal(grown >= 1.0, certain):
            return np.asarray(grown)
        chance = grown
    return chance
