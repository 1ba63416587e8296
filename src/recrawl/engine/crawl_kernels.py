"""The end of crawls, for the live engine and for the simulator's compiled loop.

Both call `learn_crawls` (copies and beliefs), then `return_pages` (placement), then reinsert the pages' groups.
"""

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import jit
from recrawl.engine.beliefs.arrays import Belief
from recrawl.engine.beliefs.kernels import learn_outcome
from recrawl.engine.effects.kernels import EffectArrays
from recrawl.schedule.exact.access import renew_copy
from recrawl.schedule.exact.access_kernels import Header, opened, signals_since

Array = NDArray[np.float64]
Ids = NDArray[np.int64]


@jit
def learn_crawls(
    header: Header, b: Belief, effects: EffectArrays, ids: Ids, copies: Array, now: float, changed: NDArray[np.bool_]
) -> None:
    """Set the copies of pages and learn from what their crawls found; the caller places the pages again.

    `copies` has the times of the copies before and of the new ones. With several signal sources the signals that came
    after a new copy are not known by source, and dropped; the caller writes the beliefs then.
    """
    s = opened(header)
    later = np.zeros(b.heard.shape[1])  # signals that came after the new copy
    for k in range(ids.size):
        i = ids[k]
        renew_copy(s, i, copies[k, 1])
        if later.size == 1:
            later[0] = min(signals_since(s, i), b.heard[i, 0])
        learn_outcome(s, b, effects, i, (copies[k, 0], copies[k, 1]), now, changed[k], later)
