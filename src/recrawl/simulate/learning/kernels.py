"""The loop in which each estimate of a page's change rate chooses the next crawl, compiled."""

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit
from recrawl.estimate.rates.kernels import solve_page

Array = NDArray[np.float64]


@jit
def follow_estimate(
    changed_at: Array, start: float, end: float, ratio: float, pseudo_t: Array, pseudo_unchanged: float
) -> tuple[Array, Array]:
    """Crawl after ratio/estimate, estimate again, and so on: when each interval ended, and since when it was stale.

    The last interval is cut off at ``end``; an interval without a change is stale since infinity.
    """
    room = 64
    until, since = np.empty(room), np.empty(room)
    t, w, buffer = np.empty(room + 16), np.ones(room + 16), np.empty((3, room + 16))
    n_seen = len(pseudo_t)
    t[:n_seen] = pseudo_t
    unchanged = pseudo_unchanged
    now, k, n = start, 0, 0
    while True:
        if n == room:
            room *= 2
            until, since = _grown(until, room), _grown(since, room)
            t, w, buffer = _grown(t, room + 16), np.ones(room + 16), np.empty((3, room + 16))
        crawl_at = now + ratio / solve_page(t, w, n_seen, unchanged, buffer)
        w[n_seen : n_seen + 8] = 1.0
        until[n] = min(crawl_at, end)
        changed = k < len(changed_at) and changed_at[k] <= until[n]
        since[n] = changed_at[k] if changed else np.inf
        n += 1
        if crawl_at >= end:
            return until[:n].copy(), since[:n].copy()
        if changed:
            t[n_seen] = crawl_at - now
            n_seen += 1
            while k < len(changed_at) and changed_at[k] <= crawl_at:
                k += 1
        else:
            unchanged += crawl_at - now
        now = crawl_at


@jit
def _grown(old: Array, room: int) -> Array:
    new = np.empty(room)
    new[: len(old)] = old
    return new
