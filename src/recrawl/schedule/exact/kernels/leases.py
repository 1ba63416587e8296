"""Pages that are being crawled, and hosts that may or may not be."""

from recrawl._compile.jit import inline, jit_lean
from recrawl.schedule.exact.kernels.places.layers import place, room_for
from recrawl.schedule.exact.kernels.state.blocks import unpark
from recrawl.schedule.exact.kernels.state.pages import host_of, set_state, whole
from recrawl.schedule.exact.layout import DONE, LEASED, State

# --- hosts ---------------------------------------------------------------------------------------------------------


@inline
def host_free(s: State, h: int, now: float) -> bool:
    """Whether a page of this host may be crawled now."""
    room = s.hosts[h].running < s.hosts[h].limit
    return bool(room and s.hosts[h].until <= now)


@jit_lean
def free_hosts(s: State, now: float) -> int:
    """Bring back the parked pages of hosts that may be crawled again."""
    for h in range(s.hosts.shape[0]):
        if s.hosts[h].size > 0.0 and host_free(s, h, now):
            status = room_for(s, int(s.hosts[h].size))
            if status != DONE:
                return status
            while s.hosts[h].size > 0.0:
                i = whole(s.blocks[int(s.hosts[h].head), int(s.hosts[h].top) - 1])
                unpark(s, i, h)
                place(s, i, now)
    return DONE


# --- leases --------------------------------------------------------------------------------------------------------


@jit_lean
def start_lease(s: State, i: int, now: float) -> None:
    """The page is being crawled, until it is recorded, released, or its lease ends."""
    slot = s.head[0].free_lease
    if slot >= 0:
        s.head[0].free_lease = s.leases[slot].next
    else:
        slot = s.head[0].n_leases
        s.head[0].n_leases += 1
    last = s.head[0].last_lease
    entry = s.leases[slot]
    entry.until = now + s.head[0].lease_time
    entry.id = i
    entry.next = -1
    entry.prev = last
    if last >= 0:
        s.leases[last].next = slot
    else:
        s.head[0].first_lease = slot
    s.head[0].last_lease = slot
    s.rec[i].pos = slot
    s.head[0].n_leased += 1
    s.head[0].decisions += 1
    set_state(s, i, LEASED)
    h = host_of(s, i)
    if h >= 0:
        s.hosts[h].running += 1


@jit_lean
def end_lease(s: State, i: int) -> None:
    """The page is no longer being crawled."""
    slot = s.rec[i].pos
    entry = s.leases[slot]
    if entry.prev >= 0:
        s.leases[entry.prev].next = entry.next
    else:
        s.head[0].first_lease = entry.next
    if entry.next >= 0:
        s.leases[entry.next].prev = entry.prev
    else:
        s.head[0].last_lease = entry.prev
    entry.next = s.head[0].free_lease
    s.head[0].free_lease = slot
    s.head[0].n_leased -= 1
    h = host_of(s, i)
    if h >= 0:
        s.hosts[h].running -= 1


@jit_lean
def expire_leases(s: State, now: float) -> int:
    """Pages whose crawl was never recorded come back."""
    while s.head[0].first_lease >= 0 and s.leases[s.head[0].first_lease].until <= now:
        status = room_for(s, 1)
        if status != DONE:
            return status
        i = whole(s.leases[s.head[0].first_lease].id)
        end_lease(s, i)
        s.head[0].expired += 1
        place(s, i, now)
    return DONE
