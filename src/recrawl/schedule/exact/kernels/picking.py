"""The pick: the pages of largest value, leased; and when there will be one to pick."""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import inline, jit, jit_lean
from recrawl.schedule.exact.kernels.blocks import park, spare_blocks
from recrawl.schedule.exact.kernels.layers import LEAST, advance
from recrawl.schedule.exact.kernels.leases import expire_leases, free_hosts, host_free, start_lease
from recrawl.schedule.exact.kernels.levels import lower, scan, shrink
from recrawl.schedule.exact.kernels.near import best_near, count_ripe, evaluate_all, refresh_near
from recrawl.schedule.exact.kernels.near_set import near_remove
from recrawl.schedule.exact.kernels.pages import host_of
from recrawl.schedule.exact.kernels.view import Header, opened
from recrawl.schedule.exact.kernels.wakes import wake_time
from recrawl.schedule.exact.layout import (
    BLOCK,
    DONE,
    FIT_NEAR,
    GROW_BLOCKS,
    GROW_LEASES,
    GROW_NEAR,
    LEAST_NEAR,
    NEAR_ROOM,
    State,
)

Ids = NDArray[np.int64]

_KEPT, _CLOCKED_KEPT = 8, 64


@jit
def pick(header: Header, now: float, n: int, out: Ids) -> tuple[int, int]:
    """(status, how many ids were written to `out`): the n largest values of all eligible pages, best first.

    When an array must grow first, what was taken so far is leased already, and the caller asks for the rest.
    """
    s = opened(header)
    if now < s.head[0].now:
        s.head[0].backwards += 1
    now = max(now, s.head[0].now)
    s.head[0].now = now
    if s.head[0].wanted != DONE:
        return s.head[0].wanted, 0
    if NEAR_ROOM * min(n, s.head[0].n_alive) > s.near_id.size:
        return GROW_NEAR, 0
    taken = 0
    status = fill_near(s, now, n)
    while status == DONE:
        ready = s.head[0].n_leased + n <= s.leases.size
        if not ready or spare_blocks(s) < s.head[0].n_near // BLOCK + s.hosts.shape[0] + 2:
            return GROW_BLOCKS if ready else GROW_LEASES, taken
        got = _take(s, now, n - taken, out[taken:])
        taken += got
        if taken == n or all_near(s):
            break
        if count_ripe(s, now, 1) == 0:
            status = lower(s, now, n)
    keep = kept(s, n)
    if status == DONE and s.head[0].n_near > keep + keep // 2 + 16 and count_ripe(s, now, keep + 1) > keep:
        s.head[0].wanted = shrink(s, now, keep)
    ample = max(NEAR_ROOM * keep, NEAR_ROOM * s.head[0].n_near, LEAST_NEAR)
    if s.head[0].wanted == DONE and 2 * s.near_id.size > 3 * ample:
        s.head[0].wanted = FIT_NEAR
    return status, taken


@inline
def all_near(s: State) -> bool:
    """Whether every page that can have a value now is near."""
    return bool(s.head[0].n_asleep == 0 or s.head[0].near_level <= LEAST)


@jit
def fill_near(s: State, now: float, n: int) -> int:
    """Make at least n ripe pages near, or all that there are."""
    refresh_near(s, now)
    status = expire_leases(s, now)
    if status == DONE and s.head[0].n_parked > 0:
        status = free_hosts(s, now)
    while status == DONE:
        status = advance(s, now)
        before = s.head[0].n_near
        if status != GROW_NEAR or before <= 4 * kept(s, n):
            break
        shrunk = shrink(s, now, kept(s, n))
        if shrunk != DONE or 2 * s.head[0].n_near > before:
            break
        status = DONE  # room was made instead
    if status == DONE and s.head[0].scan_at >= 0:
        status = scan(s, now, n)
    while status == DONE and count_ripe(s, now, n) < n and not all_near(s):
        status = lower(s, now, n)
    return status


@inline
def kept(s: State, n: int) -> int:
    """How many pages the near set is cut down to when n are picked at a time; more where not all are evaluated."""
    return (_KEPT if s.member.size == 0 else _CLOCKED_KEPT) + n + n // 8


@jit
def _take(s: State, now: float, n: int, out: Ids) -> int:
    """Lease up to n of the best near pages that nothing asleep can beat."""
    if n <= 4 or s.hosts.shape[0] > 0:
        return _take_one_by_one(s, now, n, out)
    evaluate_all(s, now)
    near = s.head[0].n_near
    order = np.argsort(-s.near_val[:near])
    least = LEAST if all_near(s) else s.head[0].near_level
    taken = 0
    while taken < min(n, near) and s.near_val[order[taken]] >= least:
        out[taken] = s.near_id[order[taken]]
        s.head[0].threshold = s.near_val[order[taken]]
        taken += 1
    for j in range(taken):
        near_remove(s, out[j])
        start_lease(s, out[j], now)
    return taken


@jit_lean
def _take_one_by_one(s: State, now: float, n: int, out: Ids) -> int:
    taken = 0
    while taken < n:
        j = best_near(s, now)
        if j < 0 or (s.near_val[j] < s.head[0].near_level and not all_near(s)):
            break
        i = s.near_id[j]
        h = host_of(s, i)
        value = s.near_val[j]
        near_remove(s, i)
        if h >= 0 and not host_free(s, h, now):
            park(s, i, h)
            continue
        s.head[0].threshold = value
        out[taken] = i
        taken += 1
        start_lease(s, i, now)
        if h >= 0 and s.hosts[h].spacing > 0.0:
            s.hosts[h].until = max(s.hosts[h].until, now + s.hosts[h].spacing)
    return taken


@jit_lean
def _park_blocked(s: State, now: float) -> None:
    """Set near pages of hosts that may not be crawled now aside, so that others can come near."""
    j = 0
    while j < s.head[0].n_near:
        i = s.near_id[j]
        h = host_of(s, i)
        if h >= 0 and not host_free(s, h, now):
            near_remove(s, i)
            park(s, i, h)
        else:
            j += 1


@jit
def next_time(header: Header, now: float) -> tuple[int, float]:
    """(status, the earliest time ≥ now at which a pick can return something)."""
    s = opened(header)
    now = max(now, s.head[0].now)
    s.head[0].now = now
    status = fill_near(s, now, 1)
    while status == DONE and s.hosts.shape[0] > 0:
        if spare_blocks(s) < s.head[0].n_near // BLOCK + s.hosts.shape[0] + 2:
            return GROW_BLOCKS, now
        _park_blocked(s, now)
        if count_ripe(s, now, 1) > 0 or all_near(s):
            break
        status = lower(s, now, 1)
    if status != DONE:
        return status, now
    soonest = math.inf
    evaluate_all(s, now)
    for j in range(s.head[0].n_near):
        h = host_of(s, s.near_id[j])
        if h < 0 or host_free(s, h, now):
            if s.near_val[j] > 0.0:
                return DONE, now
            if wake_time(s, s.near_id[j], now, LEAST, 0.0, -1.0)[0] < math.inf:
                soonest = np.nextafter(now, math.inf)  # fetched this very moment
    for h in range(s.hosts.shape[0]):
        if s.hosts[h].size > 0.0 and s.hosts[h].running < s.hosts[h].limit:
            soonest = min(soonest, max(s.hosts[h].until, now))
    if s.head[0].first_lease >= 0:
        soonest = min(soonest, s.leases[s.head[0].first_lease].until)
    return DONE, soonest
