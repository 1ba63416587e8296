"""The end of crawls, for the live engine and for the simulator's compiled loop.

Both call `learn_crawls` (copies, beliefs, clocks), then `return_pages` (placement), then reinsert the pages that follow
the same clocks.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import jit_lean
from recrawl.engine.beliefs.arrays import Belief
from recrawl.engine.beliefs.kernels import fade_of, learn_outcome
from recrawl.engine.calibration import Calibration
from recrawl.engine.clocks.arrays import Clocks
from recrawl.engine.clocks.publish_kernels import learn_clock
from recrawl.engine.signals.pages import learn_signals
from recrawl.schedule.exact.access import renew_copy
from recrawl.schedule.exact.access_kernels import Header, group_of, opened

Array = NDArray[np.float64]
Ids = NDArray[np.int64]


class Learned(NamedTuple):
    """All that the engine has learned, as kernels take it."""

    belief: Belief
    calibration: Calibration
    clocks: Clocks


@jit_lean
def learn_crawls(
    header: Header,
    learned: Learned,
    ids: Ids,
    copies: Array,
    now: float,
    changed: NDArray[np.bool_],
) -> None:
    """Set the copies of pages and learn from what their crawls found; the caller places the pages again.

    `copies` has the times of the copies before and of the new ones.
    """
    s = opened(header)
    b, c = learned.belief, learned.calibration
    for k in range(ids.size):
        i = ids[k]
        renew_copy(s, i, copies[k, 1])
        both = (copies[k, 0], copies[k, 1])
        time, doubt, missed, own = learn_outcome(s, b, c, i, both, changed[k], b.signals.room)
        if b.signals.row_of.size > 0:
            learn_signals(s, b, i, both, now, (time, own, changed[k], fade_of(b, both[1] - both[0])))
        if group_of(s, i) >= 0:
            learn_clock(s, learned.clocks, i, both, now, (time, missed, doubt - missed, changed[k]))
