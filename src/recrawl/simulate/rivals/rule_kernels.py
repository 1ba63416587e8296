"""What every rule of a rival works on: the columns of pages, the outcome of a crawl, and the instants of a grid."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

FIRST, CHANGED, UNCHANGED, FAILED = 0, 1, 2, 3  # what a crawl found; the first one has nothing to compare with

_NOISE = 1e-6  # how far, in steps, a multiple of a step may be off and still be it


class Rows(NamedTuple):
    """What a rival remembers, one row per page."""

    importance: Array
    interval: Array
    changed_at: Array  # the last change it knows of (NaN: none)
    memory: Array  # what else the rule remembers
    lastmod: Array  # the latest change that a signal reported (-infinity: none)
    crawled_at: Array  # -infinity: never
    due_at: Array  # infinity: not without news
    errors: Ids  # failures in a row


@inline
def clip(x: float, low: float, high: float) -> float:
    """The nearest number between two."""
    return min(max(x, low), high)


@inline
def grid_after(time: float, step: float) -> float:
    """The first multiple of a step that is later."""
    return float((np.floor(time / step + _NOISE) + 1.0) * step)


@inline
def grid_from(time: float, step: float) -> float:
    """The first multiple of a step that is not earlier."""
    return float(np.ceil(time / step - _NOISE) * step)
