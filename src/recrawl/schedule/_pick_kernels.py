"""What a scheduler does from outside: pick, record, release, signal, add, remove, pause, hold."""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import inline, jit, jit_lean
from recrawl.schedule._core_kernels import (
    LEAST,
    advance,
    count_ripe,
    lower,
    place,
    refresh_near,
    rest,
    room_for,
    scan,
    shrink,
)
from recrawl.schedule._set_kernels import (
    host_of,
    near_remove,
    park,
    set_state,
    spare_blocks,
    state_of,
    unpark,
    wake_up,
)
from recrawl.schedule._value_kernels import value_of, wake_time
from recrawl.schedule.layout import (
    ALIVE,
    ASLEEP,
    BACKWARDS,
    BLOCK,
    DECISIONS,
    DELAY_AT,
    DELAY_SHARE,
    DONE,
    EVALUATED,
    EXPIRED,
    EXPONENT,
    FIRST_LEASE,
    FREE_LEASE,
    FREE_LOG,
    GONE,
    GROW_BLOCKS,
    GROW_LEASES,
    GROW_LOG,
    GROW_NEAR,
    H_HEAD,
    H_LIMIT,
    H_PAUSED,
    H_RUNNING,
    H_SIZE,
    H_SPACING,
    H_TOP,
    H_UNTIL,
    LAST_LEASE,
    LATE,
    LEASE_TIME,
    LEASED,
    N_ASLEEP,
    N_DELAYS,
    N_LEASED,
    N_LEASES,
    N_LOG,
    N_NEAR,
    N_PAGES,
    N_PARKED,
    NEAR,
    NEAR_LEVEL,
    NOW,
    PARKED,
    PAUSED,
    REMOVED_ID,
    SCAN_AT,
    THRESHOLD,
    UNKNOWN_ID,
    WANTED,
    WINDOW,
    State,
)

Ids = NDArray[np.int64]
Array = NDArray[np.float64]


@jit
def pick(s: State, now: float, n: int, out: Ids) -> tuple[int, int]:
    """(status, how many ids were written to `out`): the n largest values of all eligible pages, best first.

    When an array must grow first, what was taken so far is leased already, and the caller asks for the rest.
    """
    if now < s.flts[NOW]:
        s.ints[BACKWARDS] += 1
    now = max(now, s.flts[NOW])
    s.flts[NOW] = now
    taken = 0
    status = come_near(s, now, n)
    while status == DONE:
        ready = s.ints[N_LEASES] + n <= s.leases.size
        if not ready or spare_blocks(s) < s.ints[N_NEAR] // BLOCK + s.hosts.shape[0] + 2:
            return GROW_BLOCKS if ready else GROW_LEASES, taken
        got = _take(s, now, n - taken, out[taken:])
        taken += got
        if taken == n or all_near(s):
            break
        if count_ripe(s) == 0:
            status = lower(s, now, n)
    if status == DONE and s.ints[N_NEAR] > kept(n) + kept(n) // 2 + 16:
        s.ints[WANTED] = shrink(s, now, kept(n))
    return status, taken


@inline
def all_near(s: State) -> bool:
    """Whether every page that can have a value now is near."""
    return bool(s.ints[N_ASLEEP] == 0 or s.flts[NEAR_LEVEL] <= LEAST)


@jit
def come_near(s: State, now: float, n: int) -> int:
    """Make at least n ripe pages near, or all that there are."""
    refresh_near(s, now)
    status = expire_leases(s, now)
    if status == DONE and s.ints[N_PARKED] > 0:
        status = free_hosts(s, now)
    while status == DONE:
        status = advance(s, now)
        if status == GROW_NEAR and s.ints[N_NEAR] > 4 * kept(n) and shrink(s, now, kept(n)) == DONE:
            status = DONE  # room was made instead
        else:
            break
    if status == DONE and s.ints[SCAN_AT] >= 0:
        status = scan(s, now, n)
    while status == DONE and count_ripe(s) < n and not all_near(s):
        status = lower(s, now, n)
    return status


@inline
def kept(n: int) -> int:
    """How many pages the near set is cut down to when n are picked at a time."""
    return 8 + n + n // 8


@inline
def _best(s: State) -> int:
    best, value = -1, 0.0
    for j in range(s.ints[N_NEAR]):
        if s.near_val[j] > value:
            best, value = j, s.near_val[j]
    return best


@jit
def _take(s: State, now: float, n: int, out: Ids) -> int:
    """Lease up to n of the best near pages that nothing asleep can beat."""
    if n <= 4 or s.hosts.shape[0] > 0:
        return _take_one_by_one(s, now, n, out)
    near = s.ints[N_NEAR]
    order = np.argsort(-s.near_val[:near])
    least = LEAST if all_near(s) else s.flts[NEAR_LEVEL]
    taken = 0
    while taken < min(n, near) and s.near_val[order[taken]] >= least:
        out[taken] = s.near_id[order[taken]]
        s.flts[THRESHOLD] = s.near_val[order[taken]]
        taken += 1
    for j in range(taken):
        near_remove(s, out[j])
        _lease(s, out[j], now)
    return taken


@jit_lean
def _take_one_by_one(s: State, now: float, n: int, out: Ids) -> int:
    taken = 0
    while taken < n:
        j = _best(s)
        if j < 0 or (s.near_val[j] < s.flts[NEAR_LEVEL] and not all_near(s)):
            break
        i = s.near_id[j]
        h = host_of(s, i)
        value = s.near_val[j]
        near_remove(s, i)
        if h >= 0 and not host_free(s, h, now):
            park(s, i, h)
            continue
        s.flts[THRESHOLD] = value
        out[taken] = i
        taken += 1
        _lease(s, i, now)
        if h >= 0 and s.hosts[h, H_SPACING] > 0.0:
            s.hosts[h, H_UNTIL] = max(s.hosts[h, H_UNTIL], now + s.hosts[h, H_SPACING])
    return taken


@jit
def next_time(s: State, now: float) -> tuple[int, float]:
    """(status, the earliest time ≥ now at which a pick can return something)."""
    now = max(now, s.flts[NOW])
    s.flts[NOW] = now
    status = come_near(s, now, 1)
    if status != DONE:
        return status, now
    soonest = math.inf
    for j in range(s.ints[N_NEAR]):
        h = host_of(s, s.near_id[j])
        if h < 0 or host_free(s, h, now):
            if s.near_val[j] > 0.0:
                return DONE, now
            if wake_time(s, s.near_id[j], now, LEAST, 0.0) < math.inf:
                soonest = np.nextafter(now, math.inf)  # fetched this very moment
        elif s.hosts[h, H_PAUSED] == 0.0 and s.hosts[h, H_RUNNING] < s.hosts[h, H_LIMIT]:
            soonest = min(soonest, s.hosts[h, H_UNTIL])
    for h in range(s.hosts.shape[0]):
        waiting = s.hosts[h, H_SIZE] > 0.0 and s.hosts[h, H_PAUSED] == 0.0
        if waiting and s.hosts[h, H_RUNNING] < s.hosts[h, H_LIMIT]:
            soonest = min(soonest, max(s.hosts[h, H_UNTIL], now))
    if not all_near(s):
        soonest = now
    if s.ints[FIRST_LEASE] >= 0:
        soonest = min(soonest, s.leases[s.ints[FIRST_LEASE]].until)
    return DONE, soonest


# --- hosts ---------------------------------------------------------------------------------------------------------


@inline
def host_free(s: State, h: int, now: float) -> bool:
    """Whether a page of this host may be crawled now."""
    room = s.hosts[h, H_RUNNING] < s.hosts[h, H_LIMIT]
    return bool(room and s.hosts[h, H_PAUSED] == 0.0 and s.hosts[h, H_UNTIL] <= now)


@jit_lean
def free_hosts(s: State, now: float) -> int:
    """Bring back the parked pages of hosts that may be crawled again."""
    for h in range(s.hosts.shape[0]):
        if s.hosts[h, H_SIZE] > 0.0 and host_free(s, h, now):
            status = room_for(s, int(s.hosts[h, H_SIZE]))
            if status != DONE:
                return status
            while s.hosts[h, H_SIZE] > 0.0:
                i = s.blocks[int(s.hosts[h, H_HEAD]), int(s.hosts[h, H_TOP]) - 1]
                unpark(s, i, h)
                place(s, i, now)
    return DONE


# --- leases --------------------------------------------------------------------------------------------------------


@jit_lean
def _lease(s: State, i: int, now: float) -> None:
    slot = s.ints[FREE_LEASE]
    if slot >= 0:
        s.ints[FREE_LEASE] = s.leases[slot].next
    else:
        slot = s.ints[N_LEASES]
        s.ints[N_LEASES] += 1
    last = s.ints[LAST_LEASE]
    entry = s.leases[slot]
    entry.until = now + s.flts[LEASE_TIME]
    entry.id = i
    entry.next = -1
    entry.prev = last
    if last >= 0:
        s.leases[last].next = slot
    else:
        s.ints[FIRST_LEASE] = slot
    s.ints[LAST_LEASE] = slot
    s.rec[i].pos = slot
    s.ints[N_LEASED] += 1
    s.ints[DECISIONS] += 1
    set_state(s, i, LEASED)
    h = host_of(s, i)
    if h >= 0:
        s.hosts[h, H_RUNNING] += 1


@jit_lean
def end_lease(s: State, i: int) -> None:
    """The page is no longer being crawled."""
    slot = s.rec[i].pos
    entry = s.leases[slot]
    if entry.prev >= 0:
        s.leases[entry.prev].next = entry.next
    else:
        s.ints[FIRST_LEASE] = entry.next
    if entry.next >= 0:
        s.leases[entry.next].prev = entry.prev
    else:
        s.ints[LAST_LEASE] = entry.prev
    entry.next = s.ints[FREE_LEASE]
    s.ints[FREE_LEASE] = slot
    s.ints[N_LEASED] -= 1
    h = host_of(s, i)
    if h >= 0:
        s.hosts[h, H_RUNNING] -= 1


@jit_lean
def expire_leases(s: State, now: float) -> int:
    """Pages whose crawl was never recorded come back."""
    while s.ints[FIRST_LEASE] >= 0 and s.leases[s.ints[FIRST_LEASE]].until <= now:
        status = room_for(s, 1)
        if status != DONE:
            return status
        i = s.leases[s.ints[FIRST_LEASE]].id
        end_lease(s, i)
        s.ints[EXPIRED] += 1
        place(s, i, now)
    return DONE


# --- what happens to pages -------------------------------------------------------------------------------------------


@jit_lean
def take_out(s: State, i: int) -> None:
    """Remove a page from whatever container it is in."""
    state = state_of(s, i)
    if state == ASLEEP:
        wake_up(s, i)
    elif state == NEAR:
        near_remove(s, i)
    elif state == LEASED:
        end_lease(s, i)
    elif state == PARKED:
        unpark(s, i, host_of(s, i))


@jit_lean
def valid(s: State, ids: Ids) -> tuple[int, int]:
    """(DONE, 0), or what is wrong with the first bad id, and the id."""
    for k in range(ids.size):
        if ids[k] < 0 or ids[k] >= s.ints[N_PAGES]:
            return UNKNOWN_ID, ids[k]
        if state_of(s, ids[k]) == GONE:
            return REMOVED_ID, ids[k]
    return DONE, 0


@jit_lean
def record(s: State, ids: Ids, now: float, as_of: Array, fetched: NDArray[np.bool_]) -> tuple[int, int]:
    """(status, how many were done): the copies are as of then; where nothing was fetched the page only comes back."""
    problem, bad = valid(s, ids)
    if problem != DONE:
        return problem, bad
    now = max(now, s.flts[NOW])
    for k in range(ids.size):
        i = ids[k]
        status = room_for(s, 1)
        if status != DONE:
            return status, k
        state = state_of(s, i)
        if state == GONE:
            continue
        when = as_of[k] if as_of.size > 1 else as_of[0]
        if fetched[k] if fetched.size > 1 else fetched[0]:
            if when < s.rec[i].last:
                s.ints[LATE] += 1
                continue
            s.rec[i].last = when
            keep_signals_after(s, i, when)
        if state == PAUSED:
            continue
        take_out(s, i)
        rest(s, i, now)
    return DONE, ids.size


@jit_lean
def keep_signals_after(s: State, i: int, when: float) -> None:
    """Forget the signals that the new copy has seen."""
    p = s.rec[i]
    kept, weight = 0, 0.0
    entry = p.log
    previous = -1
    while entry >= 0:
        following = s.log[entry].next
        if s.log[entry].time > when:
            kept += 1
            weight += s.log[entry].weight
            previous = entry
        else:
            if previous >= 0:
                s.log[previous].next = following
            else:
                p.log = following
            s.log[entry].next = s.ints[FREE_LOG]
            s.ints[FREE_LOG] = entry
        entry = following
    p.signals = kept
    if s.ints[EXPONENT] >= 0:
        s.extra[s.ints[EXPONENT], i] = weight


@jit_lean
def _remember(s: State, i: int, now: float, weight: float) -> None:
    """Log a signal, and drop logged ones that no record can ask about any more."""
    p = s.rec[i]
    entry = s.ints[FREE_LOG]
    if entry >= 0:
        s.ints[FREE_LOG] = s.log[entry].next
    else:
        entry = s.ints[N_LOG]
        s.ints[N_LOG] += 1
    s.log[entry].time = now
    s.log[entry].weight = weight
    s.log[entry].next = p.log
    p.log = entry
    forget_before(s, i, now - s.flts[LEASE_TIME])


@jit_lean
def forget_before(s: State, i: int, when: float) -> None:
    """Free the logged signals of a page that are older; they stay counted."""
    entry = s.rec[i].log
    previous = -1
    while entry >= 0:
        following = s.log[entry].next
        if s.log[entry].time < when:
            if previous >= 0:
                s.log[previous].next = following
            else:
                s.rec[i].log = following
            s.log[entry].next = s.ints[FREE_LOG]
            s.ints[FREE_LOG] = entry
        else:
            previous = entry
        entry = following


@inline
def _seen_weight(s: State, weight: float, elapsed: float) -> float:
    """What a signal weighs that comes some time after the fetch: its change may lie before, by as much as its delay.

    −log(1 − precision·P(delay ≤ elapsed)), precision = 1 − e^{−weight}.
    """
    k = s.ints[N_DELAYS]
    if k == 0:
        return weight
    within = 0.0
    for j in range(k):
        if s.flts[DELAY_AT + j] <= elapsed:
            within += s.flts[DELAY_SHARE + j]
    if within >= 1.0 - 1e-12:
        return weight
    return -math.log1p(within * math.expm1(-weight))


@jit_lean
def sweep_log(s: State) -> None:
    """Free every logged signal that no record can ask about any more."""
    for i in range(s.ints[N_PAGES]):
        if s.rec[i].log >= 0:
            forget_before(s, i, s.flts[NOW] - s.flts[LEASE_TIME])


@jit_lean
def log_free(s: State) -> int:
    """How many freed log entries there are."""
    n, entry = 0, s.ints[FREE_LOG]
    while entry >= 0:
        n += 1
        entry = s.log[entry].next
    return n


@jit_lean
def signal(s: State, ids: Ids, now: float, changed_at: Array, weights: Array) -> tuple[int, int]:
    """(status, how many were done). A signal about a change before the copy, or within the window, is not counted."""
    problem, bad = valid(s, ids)
    if problem != DONE:
        return problem, bad
    here = max(now, s.flts[NOW])
    for k in range(ids.size):
        i = ids[k]
        if s.ints[FREE_LOG] < 0 and s.ints[N_LOG] >= s.log.size:
            return GROW_LOG, k
        status = room_for(s, 1)
        if status != DONE:
            return status, k
        p = s.rec[i]
        about = changed_at[k] if changed_at.size > 1 else changed_at[0]
        if state_of(s, i) == GONE or about <= p.last or now - p.last < s.flts[WINDOW]:
            continue
        weight = _seen_weight(s, weights[k] if weights.size > 1 else weights[0], now - p.last)
        p.signals = min(p.signals + 1, 65535)
        if s.ints[EXPONENT] >= 0:
            s.extra[s.ints[EXPONENT], i] += weight
        _remember(s, i, now, weight)
        if state_of(s, i) == ASLEEP:
            wake_up(s, i)
            rest(s, i, here)
    return DONE, ids.size


@jit_lean
def put_back(s: State, ids: Ids, now: float) -> tuple[int, int]:
    """(status, how many were done): place pages anew, after a change of their parameters or a pause."""
    for k in range(ids.size):
        status = room_for(s, 1)
        if status != DONE:
            return status, k
        i = ids[k]
        state = state_of(s, i)
        if state in (GONE, LEASED):
            continue
        if state != PAUSED:
            take_out(s, i)
        rest(s, i, now)
    return DONE, ids.size


@jit_lean
def withdraw(s: State, ids: Ids, state: int) -> None:
    """Take pages out for good (GONE) or for a time (PAUSED)."""
    for k in range(ids.size):
        i = ids[k]
        before = state_of(s, i)
        if before == GONE:
            continue
        take_out(s, i)
        set_state(s, i, state)
        s.rec[i].prev = -1
        if state == GONE:
            s.ints[ALIVE] -= 1
            forget_before(s, i, math.inf)


@jit_lean
def fill_values(s: State, ids: Ids, now: float, out: Array) -> None:
    """Crawl values of pages at a time; 0 for removed ones."""
    before = s.ints[EVALUATED]
    for k in range(ids.size):
        out[k] = value_of(s, ids[k], now) if state_of(s, ids[k]) != GONE else 0.0
    s.ints[EVALUATED] = before
