"""Pages that are being crawled, and hosts that may or may not be."""

from recrawl._jit import inline, jit_lean
from recrawl.schedule.exact.kernels.blocks import unpark
from recrawl.schedule.exact.kernels.layers import place, room_for
from recrawl.schedule.exact.kernels.pages import host_of, set_state
from recrawl.schedule.exact.layout import (
    DECISIONS,
    DONE,
    EXPIRED,
    FIRST_LEASE,
    FREE_LEASE,
    H_HEAD,
    H_LIMIT,
    H_RUNNING,
    H_SIZE,
    H_TOP,
    H_UNTIL,
    LAST_LEASE,
    LEASE_TIME,
    LEASED,
    N_LEASED,
    N_LEASES,
    State,
)

# --- hosts ---------------------------------------------------------------------------------------------------------


@inline
def host_free(s: State, h: int, now: float) -> bool:
    """Whether a page of this host may be crawled now."""
    room = s.hosts[h, H_RUNNING] < s.hosts[h, H_LIMIT]
    return bool(room and s.hosts[h, H_UNTIL] <= now)


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
def start_lease(s: State, i: int, now: float) -> None:
    """The page is being crawled, until it is recorded, released, or its lease ends."""
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
