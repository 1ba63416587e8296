"""The clock of all pages, shared by engines: the bins of others are added to those of an engine's own pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.clocks.arrays import NEVER, TERMS, Clocks
from recrawl.engine.clocks.kernels import _USUAL_BINS
from recrawl.engine.outcomes.lessons import ClockLessons
from recrawl.schedule.exact.access_kernels import BINS

Array = NDArray[np.float64]

_ALL = 0  # the group of all pages


@dataclass
class OtherClocks:
    """What others have added to the group of all pages, in its bins up to the newest when they did."""

    newest: int
    bins: Array  # (2, bins): found and expected, oldest first
    usual: Array
    slope: Array
    curvature: Array


def no_others() -> OtherClocks:
    """Nothing was added."""
    return OtherClocks(NEVER, np.zeros((2, BINS)), np.zeros(2), np.zeros(TERMS), np.zeros((TERMS, TERMS)))


def own_lessons(c: Clocks, others: OtherClocks) -> ClockLessons:
    """The sums of an engine's own pages."""
    newest, found, usual = NEVER, np.zeros((2, BINS)), c.usual.copy()
    if len(c.newest) and c.newest[_ALL] > NEVER:
        newest = int(c.newest[_ALL])
        rings = np.stack([c.found[_ALL], c.expected[_ALL]])
        found = np.maximum(rings[:, _places(newest)] - _moved(others.bins, others.newest, newest), 0.0)
        usual = np.maximum(usual - others.usual * _fade(others.newest, newest), 0.0)
    return ClockLessons(float(c.scale[0]), newest, found[0], found[1], usual, c.slope.copy(), c.curvature.copy())


def add_others(c: Clocks, before: OtherClocks, lessons: Sequence[ClockLessons]) -> OtherClocks:
    """Replace what others have added to the group of all pages; what they have added now."""
    own, span = own_lessons(c, before), float(c.scale[0])
    taken = [_rebinned(one, span) for one in lessons if one.newest > NEVER]
    total = no_others()
    for one in lessons:
        total.slope += one.slope
        total.curvature += one.curvature
    if not taken or not len(c.newest):
        return total
    total.newest = max(own.newest, *(newest for newest, _, _ in taken))
    for newest, bins, usual in taken:
        total.bins += _moved(bins, newest, total.newest)
        total.usual += usual * _fade(newest, total.newest)
    mine = _moved(np.stack([own.found, own.expected]), own.newest, total.newest)
    places = _places(total.newest)
    c.found[_ALL, places], c.expected[_ALL, places] = mine + total.bins
    c.usual[:] = own.usual * _fade(own.newest, total.newest) + total.usual
    c.newest[_ALL] = total.newest
    return total


def _places(newest: int) -> NDArray[np.int64]:
    """Where the bins up to the newest lie in a ring, oldest first."""
    return np.asarray((newest - BINS + 1 + np.arange(BINS)) % BINS)


def _fade(earlier: int, later: int) -> float:
    """What sums of the long run count when a later bin has come."""
    return math.exp(-max(later - earlier, 0) / _USUAL_BINS) if earlier > NEVER else 0.0


def _moved(bins: Array, newest: int, later: int) -> Array:
    """Bins up to another newest one."""
    out = np.zeros_like(bins)
    shift = later - newest
    if newest > NEVER and abs(shift) < BINS:
        if shift >= 0:
            out[:, : BINS - shift] = bins[:, shift:]
        else:
            out[:, -shift:] = bins[:, : BINS + shift]
    return out


def _rebinned(one: ClockLessons, span: float) -> tuple[int, Array, Array]:
    """The newest bin, the bins and the sums of the long run of others, in bins of another width."""
    bins = np.stack([one.found, one.expected])
    if one.span == span:
        return one.newest, bins, one.usual
    edges = (one.newest - BINS + 1 + np.arange(BINS + 1)) * one.span
    newest = math.ceil(edges[-1] / span - 1e-9) - 1
    asked = (newest - BINS + 1 + np.arange(BINS + 1)) * span
    sums = np.concatenate([np.zeros((2, 1)), np.cumsum(bins, axis=1)], axis=1)
    return newest, np.array([np.diff(np.interp(asked, edges, line)) for line in sums]), one.usual
