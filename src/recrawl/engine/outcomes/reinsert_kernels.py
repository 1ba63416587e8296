"""The pages that follow some clocks, reinserted by one call for all clocks that a batch of crawls has moved."""

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit_lean
from recrawl.schedule.exact.access import DONE, reinsert_members
from recrawl.schedule.exact.access_kernels import Header


@jit_lean
def reinsert_some(header: Header, clocks: NDArray[np.int64], now: float) -> int:
    """Reinsert the pages whose values some clocks can have raised too far; what must grow first, or DONE."""
    for clock in clocks:
        status = reinsert_members(header, clock, now)
        if status != DONE:
            return int(status)
    return DONE
