"""The end of crawls, for the live engine and for the simulator's compiled loop.

Both call `learn_crawls` (copies, beliefs, clocks), then `return_pages` (placement), then reinsert the pages that follow
the same clocks.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import jit
from recrawl.engine.beliefs.arrays import Belief
from recrawl.engine.beliefs.kernels import learn_outcome
from recrawl.engine.calibration import Calibration
from recrawl.engine.clocks.arrays import Clocks
from recrawl.engine.clocks.publish_kernels import ROOM, learn_clock
from recrawl.schedule.exact.access import renew_copy
from recrawl.schedule.exact.access_kernels import BINS, Header, group_of, opened, signals_since

Array = NDArray[np.float64]
Ids = NDArray[np.int64]


class Learned(NamedTuple):
    """All that the engine has learned, as kernels take it."""

    belief: Belief
    calibration: Calibration
    clocks: Clocks


@jit
def learn_crawls(
    header: Header,
    learned: Learned,
    ids: Ids,
    copies: Array,
    now: float,
    changed: NDArray[np.bool_],
) -> None:
    """Set the copies of pages and learn from what their crawls found; the caller places the pages again.

    `copies` has the times of the copies before and of the new ones. With several signal sources the signals that came
    after a new copy are not known by source, and dropped; the caller writes the beliefs then.
    """
    s = opened(header)
    b, c = learned.belief, learned.calibration
    paces = np.empty((ROOM, BINS))
    room = np.zeros((3, max(b.rates.size, b.heard.shape[1])))
    later = room[2]  # signals that came after the new copy
    for k in range(ids.size):
        i = ids[k]
        renew_copy(s, i, copies[k, 1])
        if b.heard.shape[1] == 1:
            later[0] = min(signals_since(s, i), b.heard[i, 0])
        both = (copies[k, 0], copies[k, 1])
        time, own, heard = learn_outcome(s, b, c, i, both, now, changed[k], room)
        if group_of(s, i) >= 0:
            learn_clock(s, learned.clocks, i, both, now, (time, own, heard, changed[k]), paces)
