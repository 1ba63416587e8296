"""Some clocks at a time, for drivers whose calls must not wait until all are published."""

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit_lean
from recrawl.engine.clocks.arrays import Clocks
from recrawl.engine.clocks.publish_kernels import publish_one
from recrawl.schedule.exact.access_kernels import Header, drop_published, opened


@jit_lean
def publish_some(header: Header, c: Clocks, clocks: NDArray[np.int64], now: float) -> None:
    """Publish some clocks; the caller reinserts the pages that follow them."""
    s = opened(header)
    for clock in clocks:
        publish_one(s, c, clock, now)
    drop_published(s)
