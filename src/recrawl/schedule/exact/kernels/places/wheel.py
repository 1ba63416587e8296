"""The timing wheel: pages asleep until a tick. Slots hold their members in chunks of one cache line."""

from recrawl._compile.jit import inline, jit_lean
from recrawl.schedule.exact.kernels.state.blocks import band_remove
from recrawl.schedule.exact.kernels.state.pages import fetch_page, set_state
from recrawl.schedule.exact.kernels.state.view import prefetch
from recrawl.schedule.exact.layout import ASLEEP, BINS, BLOCK, CHUNK, FAR, FIRST, HORIZON, WHEEL_PLACES, State

LATER, SOONER = 8, 4  # pages in advance


@inline
def tick_of(s: State, time: float) -> int:
    """The wheel's tick at a time; far ahead it stops at the last one the wheel can hold."""
    ticks = (time - s.head[0].origin) / s.head[0].width
    most = s.head[0].clock + (1 << (HORIZON - 1))
    return int(ticks) if ticks < most else int(most)


@inline
def slot_at(s: State, wheel: int, tick: int) -> int:
    """The slot that a tick has in a wheel."""
    bits = s.head[0].wheel_bits
    return int((wheel << bits) + ((tick >> (bits * wheel)) & ((1 << bits) - 1)))


@inline
def _slot_of(s: State, tick: int) -> int:
    """The slot of a tick: in the first wheel that has the clock and the tick in one turn."""
    bits = s.head[0].wheel_bits
    differs = s.head[0].clock ^ tick
    wheel = 0
    while wheel < s.head[0].n_wheels - 1 and differs >> bits:
        differs >>= bits
        wheel += 1
    return slot_at(s, wheel, tick)


@inline
def _set_wheel_place(s: State, i: int, place: int) -> None:
    p = s.rec[i]
    if p.band == FAR:
        p.pos = place
    else:
        s.blocks[p.pos // BLOCK, WHEEL_PLACES + p.pos % BLOCK] = place


@inline
def _wheel_place(s: State, i: int) -> int:
    p = s.rec[i]
    return int(p.pos if p.band == FAR else s.blocks[p.pos // BLOCK, WHEEL_PLACES + p.pos % BLOCK])


@jit_lean
def wheel_add(s: State, i: int, tick: int) -> None:
    """Let a page sleep until a tick after the clock. There is always a chunk: only the last of a slot is not full."""
    slot = _slot_of(s, tick)
    place = s.slots[slot] + 1
    if place % CHUNK == 0:  # a full chunk, or none (−1)
        chunk = s.head[0].free_chunk
        s.head[0].free_chunk = s.wheel[chunk]
        s.wheel[chunk] = place - 1
        s.wheel[chunk + 1] = slot
        place = chunk + FIRST
    s.wheel[place] = i
    s.slots[slot] = place
    _set_wheel_place(s, i, place)


@jit_lean
def wheel_remove(s: State, i: int) -> None:
    """Take a page out of the wheel, if it is in it, by moving the last of its slot into its place."""
    place = _wheel_place(s, i)
    if place < 0:
        return
    slot = s.wheel[place - place % CHUNK + 1]
    end = s.slots[slot]
    if end != place:
        last = s.wheel[end]
        s.wheel[place] = last
        _set_wheel_place(s, last, place)
    _set_wheel_place(s, i, -1)
    s.slots[slot] = end - 1
    if end % CHUNK == FIRST:
        chunk = end - FIRST
        s.slots[slot] = s.wheel[chunk]
        s.wheel[chunk] = s.head[0].free_chunk
        s.head[0].free_chunk = chunk


@jit_lean
def empty_wheel(s: State, now: float) -> None:
    """Give all chunks back, and turn the wheel to now; the records of its members are left as they are."""
    s.slots[:] = -1
    for chunk in range(0, s.wheel.size, CHUNK):
        s.wheel[chunk] = chunk + CHUNK if chunk + CHUNK < s.wheel.size else -1
    s.head[0].free_chunk = 0 if s.wheel.size > 0 else -1
    s.head[0].clock = max(s.head[0].clock, tick_of(s, now))


@inline
def slot_size(s: State, slot: int) -> int:
    """How many pages are in a slot."""
    n, end = 0, s.slots[slot]
    while end >= 0:
        n += end % CHUNK - FIRST + 1
        end = s.wheel[end - end % CHUNK]
    return int(n)


@inline
def fetch_place(s: State, i: int) -> None:
    """Load a page and its place in wheel or band into the cache; −1: none."""
    if i < 0:
        return
    fetch_page(s, i)
    if s.rec[i].band == FAR:
        prefetch(s.wheel, s.rec[i].pos)
    else:
        block, k = s.blocks[s.rec[i].pos // BLOCK], s.rec[i].pos % BLOCK
        prefetch(block, k)
        prefetch(block, WHEEL_PLACES + k)


@inline
def fetch_chunk(s: State, end: int) -> None:
    """Load the pages of a chunk that ends there into the cache."""
    if end >= 0:
        for place in range(end - end % CHUNK + FIRST, end + 1):
            fetch_page(s, s.wheel[place])


@inline
def _fetch_clock(s: State, i: int) -> None:
    """Load what the clock of a page, which is in the cache, shows of it into the cache as well."""
    g = s.member[i].group
    if g >= 0:
        prefetch(s.groups, g)
        prefetch(s.bins[g], int(s.rec[i].last / s.head[0].span) % BINS)


@inline
def fetch_clocks(s: State, end: int) -> None:
    """The same for the pages of a chunk."""
    if end >= 0 and s.member.size > 0:
        for place in range(end - end % CHUNK + FIRST, end + 1):
            _fetch_clock(s, s.wheel[place])


@inline
def fetch_ahead(s: State, later: int, sooner: int) -> None:
    """Load a page that comes `LATER` pages later into the cache, and the clock of one that comes `SOONER`."""
    if s.member.size > 0 and later < s.head[0].n_pages:
        fetch_page(s, later)
        _fetch_clock(s, sooner)


@inline
def fall_asleep(s: State, i: int) -> None:
    """Mark a page as asleep (its wheel slot and band are set by the caller)."""
    set_state(s, i, ASLEEP)
    s.head[0].n_asleep += 1


@jit_lean
def wake_up(s: State, i: int) -> None:
    """Take a sleeping page out of wheel and band."""
    band_remove(s, i)
    wheel_remove(s, i)
    s.head[0].n_asleep -= 1
