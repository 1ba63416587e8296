"""What a crawl finds, and how long the copy it replaces was stale: exact, in O(1) per crawl and change."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit_lean

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

FROM, TO, WIDTH = 0, 1, 2  # places in `span`: when counting begins and ends, the width of a bin


class Tally(NamedTuple):
    """What happens, and what was counted, by page."""

    offset: Ids
    changed_at: Array
    deleted_at: Array
    weight: Array
    request_offset: Ids  # empty: no requests
    requested_at: Array
    span: Array
    next_change: Ids  # the first change that the copy has not seen
    next_request: Ids
    stale: Array  # time during which the copy was stale
    crawls: Ids
    found: Ids  # crawls that found a change
    requests: Ids  # (2, pages): readers that asked, and that saw a fresh copy
    bins: Array  # importance × stale time, by bin of time


@inline
def count_crawl(t: Tally, page: int, now: float) -> bool:
    """Crawl a page: whether it changed since its copy was fetched."""
    k, last = t.next_change[page], t.offset[page + 1]
    changed = k < last and t.changed_at[k] <= now
    if t.request_offset.size > 0:
        _count_requests(t, page, now)
    if changed:
        _count_stale(t, page, t.changed_at[k], now)
        while k < last and t.changed_at[k] <= now:
            k += 1
        t.next_change[page] = k
    if now >= t.span[FROM]:
        t.crawls[page] += 1
        t.found[page] += changed
    return bool(changed)


@jit_lean
def _count_stale(t: Tally, page: int, since: float, until: float) -> None:
    since, until = max(since, t.span[FROM]), min(until, t.deleted_at[page])
    if until <= since:
        return
    t.stale[page] += until - since
    width = t.span[WIDTH]
    for b in range(int((since - t.span[FROM]) / width), t.bins.size):
        low = t.span[FROM] + b * width
        if low >= until:
            break
        t.bins[b] += t.weight[page] * max(min(until, low + width) - max(since, low), 0.0)


@jit_lean
def _count_requests(t: Tally, page: int, now: float) -> None:
    k, last = t.next_request[page], t.request_offset[page + 1]
    stale_from = np.inf
    if t.next_change[page] < t.offset[page + 1]:
        stale_from = t.changed_at[t.next_change[page]]
    while k < last and t.requested_at[k] <= now:
        if t.requested_at[k] >= t.span[FROM]:
            t.requests[0, page] += 1
            t.requests[1, page] += t.requested_at[k] < stale_from
        k += 1
    t.next_request[page] = k


@jit_lean
def close(t: Tally) -> None:
    """Count what is stale when the time ends."""
    for page in range(t.stale.size):
        k = t.next_change[page]
        if t.request_offset.size > 0:
            _count_requests(t, page, t.span[TO])
        if k < t.offset[page + 1]:
            _count_stale(t, page, t.changed_at[k], t.span[TO])
            t.next_change[page] = t.offset[page + 1]


@jit_lean
def count_crawls(t: Tally, ids: Ids, now: float, changed: NDArray[np.bool_]) -> None:
    """Crawl pages one after the other."""
    for j in range(ids.size):
        changed[j] = count_crawl(t, ids[j], now)
