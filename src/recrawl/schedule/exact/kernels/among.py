"""The pick among given pages: their order is the caller's; leases and hosts are kept as in any pick."""

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit
from recrawl.schedule.exact.kernels.events import take_out
from recrawl.schedule.exact.kernels.leases import expire_leases, free_hosts, host_free
from recrawl.schedule.exact.kernels.picking import lease_page, set_now
from recrawl.schedule.exact.kernels.state.pages import host_of
from recrawl.schedule.exact.kernels.state.view import Header, opened
from recrawl.schedule.exact.layout import DONE, GROW_LEASES

Ids = NDArray[np.int64]


@jit
def bring_back(header: Header, now: float) -> int:
    """Let pages come back whose leases have ended or whose hosts are free; what must grow first, or DONE."""
    s = opened(header)
    now = set_now(s, now)
    status = expire_leases(s, now)
    if status == DONE and s.head[0].n_parked > 0:
        status = free_hosts(s, now)
    return int(status)


@jit
def take_in_order(header: Header, ids: Ids, n: int, out: Ids) -> tuple[int, int]:
    """(status, how many ids were written to `out`): lease the first n of some waiting pages whose hosts are free.

    The others stay where they are, and so does the threshold: it is that of picks among all pages.
    """
    s = opened(header)
    if s.head[0].n_leased + n > s.leases.size:
        return GROW_LEASES, 0
    now, taken = s.head[0].now, 0
    for k in range(ids.size):
        if taken == n:
            break
        i = ids[k]
        h = host_of(s, i)
        if h < 0 or host_free(s, h, now):
            take_out(s, i)
            lease_page(s, i, h, now)
            out[taken] = i
            taken += 1
    return DONE, taken
