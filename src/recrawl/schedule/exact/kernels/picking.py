"""The pick: the pages of largest value, leased; and when there will be one to pick."""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit, jit_lean
from recrawl.schedule.exact.kernels.leases import expire_leases, free_hosts, host_free, start_lease
from recrawl.schedule.exact.kernels.places.best_first import heap_of_near, heap_pop, heap_push
from recrawl.schedule.exact.kernels.places.cohorts import CohortLists, step_out, top_page
from recrawl.schedule.exact.kernels.places.layers import LEAST, advance, room_for
from recrawl.schedule.exact.kernels.places.levels import lower, scan, shrink
from recrawl.schedule.exact.kernels.places.near import best_near, count_ripe, evaluate_all, refresh_near, value_all
from recrawl.schedule.exact.kernels.places.near_set import near_remove
from recrawl.schedule.exact.kernels.state.blocks import park, spare_blocks
from recrawl.schedule.exact.kernels.state.pages import host_of, whole
from recrawl.schedule.exact.kernels.state.view import Header, opened
from recrawl.schedule.exact.kernels.value.ranking import descending
from recrawl.schedule.exact.kernels.value.wakes import wake_time
from recrawl.schedule.exact.layout import (
    BLOCK,
    DONE,
    EXAMINE,
    FIT_NEAR,
    GROW_BLOCKS,
    GROW_LEASES,
    GROW_NEAR,
    LEAST_NEAR,
    NEAR_ROOM,
    State,
)

Ids = NDArray[np.int64]

# `whole(1)` below is any number: with the constant itself, a kernel would be compiled a second time
_KEPT, _CLOCKED_KEPT = 8, 64
_FEW = 4  # pages of a pick that are looked for one by one
_PARKED = -1  # instead of a page


@jit
def pick(header: Header, now: float, n: int, out: Ids) -> tuple[int, int]:
    """(status, how many ids were written to `out`): the n largest values of all eligible pages, best first.

    When an array must grow first, what was taken so far is leased already, and the caller asks for the rest.
    """
    return _pick(opened(header), None, now, n, out)


@jit
def pick_promoting(header: Header, lists: CohortLists, now: float, n: int, out: Ids) -> tuple[int, int]:
    """The same where cohorts are in use: for each page that is taken, the next of its family is scheduled at once.

    After EXAMINE, the page taken last is to be examined: either the next of its cohort is promoted by the caller, or
    no page of that cohort may be picked now.
    """
    return _pick(opened(header), lists, now, n, out)


@inline
def _pick(s: State, lists: CohortLists | None, now: float, n: int, out: Ids) -> tuple[int, int]:
    taken = 0
    now = set_now(s, now)
    status = _prepare(s, now, n)
    while status == DONE:
        status = _room_to_take(s, n)
        if status != DONE:
            return status, taken
        more = 0
        if lists is None or lists.waiting[0] == 0:
            more = _take(s, now, n - taken, out[taken:])
        else:
            status, more = _take_promoting(s, lists, now, n - taken, out[taken:])
        taken += more
        if status != DONE:
            return status, taken
        if taken == n or all_near(s):
            break
        if count_ripe(s, now, whole(1)) == 0:
            status = lower(s, now, n)
    if status == DONE:
        _tidy(s, now, n)
    return status, taken


@inline
def set_now(s: State, now: float) -> float:
    """The largest time known, from now on; a time that went back is counted."""
    if now < s.head[0].now:
        s.head[0].backwards += 1
    s.head[0].now = max(now, s.head[0].now)
    return float(s.head[0].now)


@inline
def _prepare(s: State, now: float, n: int) -> int:
    """Make enough pages near to take n; what must grow first, or DONE."""
    if s.head[0].wanted != DONE:
        return int(s.head[0].wanted)
    if NEAR_ROOM * min(n, s.head[0].n_alive) > s.near_id.size:
        return GROW_NEAR
    return fill_near(s, now, n)


@inline
def _room_to_take(s: State, n: int) -> int:
    """Whether n pages can be leased and the near ones parked, or what must grow first."""
    if s.head[0].n_leased + n > s.leases.size:
        return GROW_LEASES
    return GROW_BLOCKS if spare_blocks(s) < s.head[0].n_near // BLOCK + s.hosts.shape[0] + 2 else DONE


@jit
def _tidy(s: State, now: float, n: int) -> None:
    """After a pick: put near pages that are too many to sleep, and give room back that is too large."""
    keep = kept(s, n)
    if s.head[0].n_near > keep + keep // 2 + 16 and count_ripe(s, now, keep + 1) > keep:
        s.head[0].wanted = shrink(s, now, keep)
    ample = max(NEAR_ROOM * keep, NEAR_ROOM * s.head[0].n_near, LEAST_NEAR)
    if s.head[0].wanted == DONE and 2 * s.near_id.size > 3 * ample:
        s.head[0].wanted = FIT_NEAR


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
    if n <= _FEW:
        return _take_one_by_one(s, now, n, out)
    if s.hosts.shape[0] > 0:
        return _take_by_hosts(s, now, n, out)
    value_all(s, now)
    near = s.head[0].n_near
    order = descending(s.near_val[:near])
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


@jit
def _take_by_hosts(s: State, now: float, n: int, out: Ids) -> int:
    """The same where hosts have rules: pages of hosts that are not free are parked."""
    value_all(s, now)
    heap = np.empty(s.head[0].n_near, np.int64)
    size = heap_of_near(s, heap)
    taken = 0
    while taken < n and size > 0 and _is_worth(s, whole(s.rec[heap[0]].pos)):
        i = _lease_or_park(s, heap_pop(s, heap, size), now)
        size -= 1
        if i >= 0:
            out[taken] = i
            taken += 1
    return taken


@jit_lean
def _take_one_by_one(s: State, now: float, n: int, out: Ids) -> int:
    taken = 0
    while taken < n:
        j = best_near(s, now)
        if j < 0 or not _is_worth(s, j):
            break
        i = _lease_or_park(s, whole(s.near_id[j]), now)
        if i >= 0:
            out[taken] = i
            taken += 1
    return taken


@jit
def _take_promoting(s: State, lists: CohortLists, now: float, n: int, out: Ids) -> tuple[int, int]:
    """(status, how many were taken): the same, and the next page of each family is scheduled at once."""
    taken = size = 0
    many = n > _FEW
    heap = np.empty(s.head[0].n_near + n if many else 0, np.int64)
    if many:
        value_all(s, now)
        size = heap_of_near(s, heap)
    while taken < n:
        status = room_for(s, 1)
        if status != DONE:
            return status, taken
        j = best_near(s, now) if not many else whole(s.rec[heap[0]].pos) if size > 0 else -1
        if j < 0 or not _is_worth(s, j):
            break
        if many:
            heap_pop(s, heap, size)
            size -= 1
        i = _lease_or_park(s, whole(s.near_id[j]), now)
        if i < 0:
            continue
        out[taken] = i
        taken += 1
        cohort = lists.cohort[i]
        if cohort >= 0 and top_page(s, lists, lists.family[cohort]) >= 0:
            if s.rec[i].importance < lists.bar[cohort]:
                return EXAMINE, taken
            before = s.head[0].n_near
            step_out(s, lists, i)
            if many and s.head[0].n_near > before:
                heap_push(s, heap, size, whole(s.near_id[before]))
                size += 1
    return DONE, taken


@inline
def _is_worth(s: State, j: int) -> bool:
    """Whether the near page at a place, the best of all near ones, is worth something, and no less than all asleep."""
    value = s.near_val[j]
    return bool(value > 0.0 and (value >= s.head[0].near_level or all_near(s)))


@jit_lean
def _lease_or_park(s: State, i: int, now: float) -> int:
    """Lease a near page and give its id; _PARKED if its host is not free."""
    h = host_of(s, i)
    value = s.near_val[s.rec[i].pos]
    near_remove(s, i)
    if h >= 0 and not host_free(s, h, now):
        park(s, i, h)
        return _PARKED
    s.head[0].threshold = value
    lease_page(s, i, h, now)
    return i


@inline
def lease_page(s: State, i: int, h: int, now: float) -> None:
    """Lease a page of a host (−1: none), which is not asked again before its delay is over."""
    start_lease(s, i, now)
    if h >= 0 and s.hosts[h].spacing > 0.0:
        s.hosts[h].until = max(s.hosts[h].until, now + s.hosts[h].spacing)


@jit_lean
def _park_blocked(s: State, now: float) -> None:
    """Set near pages of hosts that may not be crawled now aside, so that others can come near."""
    j = 0
    while j < s.head[0].n_near:
        i = whole(s.near_id[j])
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
    status = fill_near(s, now, whole(1))
    while status == DONE and s.hosts.shape[0] > 0:
        if spare_blocks(s) < s.head[0].n_near // BLOCK + s.hosts.shape[0] + 2:
            return GROW_BLOCKS, now
        _park_blocked(s, now)
        if count_ripe(s, now, whole(1)) > 0 or all_near(s):
            break
        status = lower(s, now, whole(1))
    if status != DONE:
        return status, now
    soonest = math.inf
    evaluate_all(s, now)
    for j in range(s.head[0].n_near):
        h = host_of(s, whole(s.near_id[j]))
        if h < 0 or host_free(s, h, now):
            if s.near_val[j] > 0.0:
                return DONE, now
            if wake_time(s, whole(s.near_id[j]), now, LEAST, 0.0, -1.0)[0] < math.inf:
                soonest = np.nextafter(now, math.inf)  # fetched this very moment
    for h in range(s.hosts.shape[0]):
        if s.hosts[h].size > 0.0 and s.hosts[h].running < s.hosts[h].limit:
            soonest = min(soonest, max(s.hosts[h].until, now))
    if s.head[0].first_lease >= 0:
        soonest = min(soonest, s.leases[s.head[0].first_lease].until)
    return DONE, soonest
