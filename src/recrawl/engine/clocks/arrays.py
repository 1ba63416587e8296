"""The arrays of clocks: what was found and expected in each group, and how the levels are combined."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

LEVELS = ("all", "host", "above", "folder")  # of groups, from the widest to the narrowest
TERMS = 1 + 2 * len(LEVELS)  # of a clock: real time; each level without memory and with it
REAL_TIME = 0.7  # first weight of real time; the other terms share the rest
LENGTHS = 1 + TERMS  # row of `room`: how much of an interval lies in each bin
TIMES = 2 + TERMS  # row of `room`: how long an interval is by each term
NEVER = -(2**62)  # bin of a group in which nothing was found or expected yet


class Clocks(NamedTuple):
    """Per page its clock, per clock its groups, per group a ring of bins."""

    clock: NDArray[np.int32]  # (pages,): the clock of the page's folder
    group: NDArray[np.int32]  # (clocks, levels)
    found: Array  # (groups, bins): changes found, by when they most likely happened
    expected: Array  # (groups, bins): changes expected at the usual pace
    newest: Ids  # (groups,): number of the newest bin
    usual: Array  # (2,): changes found and expected on all pages in the long run, fading
    weight: Array  # (terms,): how much each term counts; they add up to 1
    slope: Array  # (terms,): of ln P(outcomes) by the weights, where all are 0
    curvature: Array  # (terms, terms): by how much the slope falls as weights rise
    scale: Array  # (2,): width of a bin; memory
    room: Array  # (terms + 3, bins): scratch: paces, terms, lengths, times
