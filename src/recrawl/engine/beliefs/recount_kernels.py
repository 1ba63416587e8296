"""The tables of hosts and folders from the observations of pages that were read from rows."""

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import jit
from recrawl.engine.beliefs.arrays import ALL, Belief
from recrawl.engine.beliefs.posterior_kernels import believe

Ids = NDArray[np.int64]


@jit
def recount_all(b: Belief, ids: Ids, keep_all: bool) -> None:
    """Count pages in the tables one after the other; with `keep_all` the table of all pages stays as it is.

    Then the tables of a host depend on its own pages and on the table of all pages, not on which other pages are read.
    """
    prior, posterior = np.empty(b.rates.size), np.empty(b.rates.size)
    table, size = b.tables[ALL].copy(), b.sizes[ALL]
    for i in ids:
        believe(b, i, prior, posterior, True)
        if keep_all:
            b.tables[ALL] = table
            b.sizes[ALL] = size
