"""Whether pages are likely enough to have changed, where that is known at once."""

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit_lean
from recrawl._compile.packed import Numbers
from recrawl.engine.beliefs.staleness_kernels import doubts, exponent_of
from recrawl.engine.outcomes.crawl_kernels import learned_from
from recrawl.schedule.exact.access_kernels import Header, fetched_at, opened

Ids = NDArray[np.int64]


@jit_lean
def all_likely(header: Header, packed: Numbers, ids: Ids, limits: tuple[float, float, float]) -> bool:
    """Whether all of some pages have no copy, or have changed with a calibrated probability.

    `limits`: now, that probability, and the time of fetching that stands for "no copy".
    """
    s, learned, (now, probability, no_copy_at) = opened(header), learned_from(packed), limits
    exponent = exponent_of(learned.calibration.knots, probability)
    for k in range(ids.size):
        begin = fetched_at(s, ids[k])
        if begin > no_copy_at and doubts(s, learned.belief, ids[k], begin, max(now, begin))[1] < exponent:
            return False
    return True
