"""The inner loop of the policy that sees the future: which copies are stale, and how long a crawl would mend them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit
from recrawl.simulate.tally_kernels import Tally, count_crawl

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

N_STALE, NEXT = 0, 1  # places in `counts`: pages in the list, the next change


class Future(NamedTuple):
    """All changes in the order of time, and the pages whose copies are stale now."""

    changed_at: Array
    page: Ids
    until: Array  # per change: when the page changes again, or ends
    gone_at: Array  # per page; infinity: it stays
    weight: Array
    fresh_until: Array  # per page: how long a copy fetched now would be fresh
    stale: Ids  # the list, its first counts[N_STALE] places
    place: Ids  # per page: where in the list it is; −1: its copy is fresh
    counts: Ids


@inline
def _drop(f: Future, page: int) -> None:
    """Take a page off the list; the last one takes its place."""
    f.counts[N_STALE] -= 1
    last = f.stale[f.counts[N_STALE]]
    f.stale[f.place[page]] = last
    f.place[last] = f.place[page]
    f.place[page] = -1


@jit
def advance(f: Future, now: float) -> None:
    """The changes up to now happen."""
    k = f.counts[NEXT]
    while k < f.page.size and f.changed_at[k] <= now:
        page = f.page[k]
        f.fresh_until[page] = f.until[k]
        if f.place[page] < 0:
            f.place[page] = f.counts[N_STALE]
            f.stale[f.counts[N_STALE]] = page
            f.counts[N_STALE] += 1
        k += 1
    f.counts[NEXT] = k


@jit
def take_best(f: Future, now: float) -> int:
    """The stale page with the largest importance × time until it changes again or ends (−1: none is stale)."""
    best, value, j = -1, -1.0, 0
    while j < f.counts[N_STALE]:
        page = f.stale[j]
        if f.gone_at[page] <= now:
            _drop(f, page)
            continue
        worth = f.weight[page] * max(f.fresh_until[page] - now, 0.0)
        if worth > value or (worth == value and page < best):
            best, value = page, worth
        j += 1
    if best >= 0:
        _drop(f, best)
    return int(best)


@jit
def run_clairvoyant(f: Future, t: Tally, grid: Array, slot: int, last: int, batch: int) -> None:
    """Slots up to `last`, slot k at grid[0] + k·grid[1]: crawl the best stale pages, at most `batch` of them."""
    for k in range(slot, last):
        now = grid[0] + k * grid[1]
        advance(f, now)
        for _ in range(batch):
            page = take_best(f, now)
            if page < 0:
                break
            count_crawl(t, page, now)
