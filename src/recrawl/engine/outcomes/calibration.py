"""Calibration: how often pages had changed, recently, where a probability of that was computed."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit_lean

Array = NDArray[np.float64]

_RECENT = 0.9995  # how often changes were found counts this much after the next outcome
_HELD_BY = 10.0  # prior of the calibration: as so many outcomes that agree with the computed probability
_BINS = 10


class Calibration(NamedTuple):
    """Computed and reported probabilities of changes beside what crawls found."""

    reliability: Array  # (bins, 3): by reported probability of a change: its sum, crawls, changes
    recent: Array  # (bins, 3): by computed probability, at crawls and at moments before them, with forgetting
    knots: Array  # (bins + 2, 2): computed probabilities and the calibrated ones, from 0 to 1


def new_calibration() -> Calibration:
    """A calibration by which probabilities are reported as they are computed."""
    knots = np.tile(np.array([0.0, *(np.arange(_BINS) + 0.5) / _BINS, 1.0])[:, None], 2)
    return Calibration(np.zeros((_BINS, 3)), np.zeros((_BINS, 3)), knots)


def calibrated_fresh(calibration: Calibration, computed: Array) -> Array:
    """Calibrated probabilities that copies are fresh, from computed ones."""
    return np.asarray(1.0 - np.interp(1.0 - computed, calibration.knots[:, 0], calibration.knots[:, 1]))


@inline
def calibrated_chance(c: Calibration, p: float) -> float:
    """The calibrated probability of a change for a computed one."""
    k = 1
    while p > c.knots[k, 0] and k + 1 < c.knots.shape[0]:
        k += 1
    width = c.knots[k, 0] - c.knots[k - 1, 0]
    share = (p - c.knots[k - 1, 0]) / width if width > 0.0 else 1.0
    return float(c.knots[k - 1, 1] + share * (c.knots[k, 1] - c.knots[k - 1, 1]))


@inline
def computed_chance(knots: Array, p: float) -> float:
    """The computed probability of a change whose calibrated one is p; the other way round."""
    last = knots.shape[0] - 1
    if p >= knots[last, 1]:
        return float(knots[last, 0])
    k = 0
    while k + 1 < last and p >= knots[k + 1, 1]:
        k += 1
    slope = (knots[k + 1, 0] - knots[k, 0]) / (knots[k + 1, 1] - knots[k, 1])
    return float(slope * (p - knots[k, 1]) + knots[k, 0])


@jit_lean
def update_calibration(c: Calibration, chance: float, changed: bool, before: float) -> None:
    """Compare reported and computed probabilities with an outcome, and update the calibration.

    `chance` is the computed probability that the page had changed by the crawl, `before` that it had at a moment since
    the last one. Pages are crawled when much speaks for a change, so that crawls alone say too much of the copies that
    wait. A page that was found changed had changed by that moment with probability before / chance.
    """
    _count(c.reliability, calibrated_chance(c, chance), 1.0 if changed else 0.0)
    for b in range(_BINS):
        for k in range(3):
            c.recent[b, k] *= _RECENT
    _count(c.recent, chance, 1.0 if changed else 0.0)
    _count(c.recent, before, before / chance if changed and chance > 0.0 else 0.0)
    for b in range(_BINS):
        middle = _HELD_BY * (b + 0.5) / _BINS
        c.knots[b + 1, 0] = (c.recent[b, 0] + middle) / (c.recent[b, 1] + _HELD_BY)
        c.knots[b + 1, 1] = max((c.recent[b, 2] + middle) / (c.recent[b, 1] + _HELD_BY), c.knots[b, 1])


@inline
def _count(bins: Array, p: float, changed: float) -> None:
    k = min(int(_BINS * p), _BINS - 1)
    bins[k, 0] += p
    bins[k, 1] += 1.0
    bins[k, 2] += changed
