"""The containers of a scheduler: block lists (bands, parked pages), the timing wheel, the near set.

A page knows its place, so that leaving takes constant time; one in a band has its place in the wheel kept there. None
of them is a chain of pages: among many pages each link would be a wait for memory, and lists of ids can be read ahead.
"""

import math

from recrawl._jit import inline, jit_lean
from recrawl.schedule.exact.kernels.view import prefetch
from recrawl.schedule.exact.layout import (
    ASLEEP,
    BLOCK,
    CHUNK,
    CLOCK,
    EVIDENCE,
    FAR,
    FIRST,
    FREE_BLOCK,
    FREE_CHUNK,
    H_HEAD,
    H_SIZE,
    H_TOP,
    HEAD,
    HORIZON,
    N_ASLEEP,
    N_BLOCKS,
    N_FREE_BLOCKS,
    N_NEAR,
    N_PARKED,
    N_WHEELS,
    NEAR,
    ORIGIN,
    PARKED,
    SIZE,
    TICKS,
    TOP,
    WHEEL_BITS,
    WHEEL_PLACES,
    WIDTH,
    State,
)

_LINK = BLOCK  # column of the block before
NEVER = -math.inf


@inline
def set_state(s: State, i: int, state: int) -> None:
    """Change a page's state."""
    s.rec[i].state = state


@inline
def state_of(s: State, i: int) -> int:
    """A page's state."""
    return int(s.rec[i].state)


@inline
def host_of(s: State, i: int) -> int:
    """A page's host, −1 for none."""
    return int(s.host[i]) if s.host.size > 0 else -1


# --- block lists ---------------------------------------------------------------------------------------------------


@inline
def _take_block(s: State) -> int:
    free = s.ints[FREE_BLOCK]
    if free >= 0:
        s.ints[FREE_BLOCK] = s.blocks[free, _LINK]
        s.ints[N_FREE_BLOCKS] -= 1
        return int(free)
    block = s.ints[N_BLOCKS]
    s.ints[N_BLOCKS] += 1
    return int(block)


@inline
def spare_blocks(s: State) -> int:
    """Blocks that are not in use; a caller that may need one checks that some are left."""
    return int(s.blocks.shape[0] - s.ints[N_BLOCKS] + s.ints[N_FREE_BLOCKS])


@inline
def _push(s: State, i: int, head: int, top: int, tick: int) -> tuple[int, int]:
    if head < 0 or top == BLOCK:
        block = _take_block(s)
        s.blocks[block, _LINK] = head
        head, top = block, 0
    s.blocks[head, top] = i
    s.blocks[head, TICKS + top] = tick & 0xFFFFFFFF
    s.blocks[head, WHEEL_PLACES + top] = s.rec[i].pos
    s.rec[i].pos = head * BLOCK + top
    return head, top + 1


@inline
def _drop(s: State, i: int, head: int, top: int) -> tuple[int, int]:
    """Remove page i by moving the newest member into its place; its place in the wheel is its own again."""
    place = s.rec[i].pos
    block, k = place // BLOCK, place % BLOCK
    in_wheel = s.blocks[block, WHEEL_PLACES + k]
    last = s.blocks[head, top - 1]
    for column in (0, TICKS, WHEEL_PLACES):
        s.blocks[block, column + k] = s.blocks[head, column + top - 1]
    s.rec[last].pos = place
    s.rec[i].pos = in_wheel
    top -= 1
    if top == 0:
        before = s.blocks[head, _LINK]
        s.blocks[head, _LINK] = s.ints[FREE_BLOCK]
        s.ints[FREE_BLOCK] = head
        s.ints[N_FREE_BLOCKS] += 1
        return before, BLOCK if before >= 0 else 0
    return head, top


@jit_lean
def band_add(s: State, i: int, slot: int, tick: int) -> None:
    """Put a page that wakes at a tick into a band."""
    head, top = _push(s, i, s.ints[HEAD + slot], s.ints[TOP + slot], tick)
    s.ints[HEAD + slot], s.ints[TOP + slot] = head, top
    s.ints[SIZE + slot] += 1
    s.rec[i].band = slot


@inline
def band_tick(s: State, i: int) -> int:
    """The tick at which a page in a band wakes; only its last bits are kept."""
    place = s.rec[i].pos
    ahead = (s.blocks[place // BLOCK, TICKS + place % BLOCK] - s.ints[CLOCK]) & 0xFFFFFFFF
    return int(s.ints[CLOCK] + ahead)


@jit_lean
def band_remove(s: State, i: int) -> None:
    """Take a page out of its band, if it is in one."""
    slot = s.rec[i].band
    if slot == FAR:
        return
    head, top = _drop(s, i, s.ints[HEAD + slot], s.ints[TOP + slot])
    s.ints[HEAD + slot], s.ints[TOP + slot] = head, top
    s.ints[SIZE + slot] -= 1
    s.rec[i].band = FAR


@jit_lean
def free_blocks(s: State, slot: int) -> None:
    """Give all blocks of a band back; its members are not told."""
    block = s.ints[HEAD + slot]
    while block >= 0:
        before = s.blocks[block, _LINK]
        s.blocks[block, _LINK] = s.ints[FREE_BLOCK]
        s.ints[FREE_BLOCK] = block
        s.ints[N_FREE_BLOCKS] += 1
        block = before
    s.ints[HEAD + slot], s.ints[TOP + slot], s.ints[SIZE + slot] = -1, 0, 0


@jit_lean
def park(s: State, i: int, h: int) -> None:
    """Set a page aside until its host may be crawled again."""
    head, top = _push(s, i, int(s.hosts[h, H_HEAD]), int(s.hosts[h, H_TOP]), 0)
    s.hosts[h, H_HEAD], s.hosts[h, H_TOP] = head, top
    s.hosts[h, H_SIZE] += 1
    s.ints[N_PARKED] += 1
    set_state(s, i, PARKED)


@jit_lean
def unpark(s: State, i: int, h: int) -> None:
    """Take a page from those set aside."""
    head, top = _drop(s, i, int(s.hosts[h, H_HEAD]), int(s.hosts[h, H_TOP]))
    s.hosts[h, H_HEAD], s.hosts[h, H_TOP] = head, top
    s.hosts[h, H_SIZE] -= 1
    s.ints[N_PARKED] -= 1


# --- the timing wheel ----------------------------------------------------------------------------------------------


@inline
def tick_of(s: State, time: float) -> int:
    """The wheel's tick at a time; far ahead it stops at the last one the wheel can hold."""
    ticks = (time - s.flts[ORIGIN]) / s.flts[WIDTH]
    most = s.ints[CLOCK] + (1 << (HORIZON - 1))
    return int(ticks) if ticks < most else int(most)


@inline
def slot_at(s: State, wheel: int, tick: int) -> int:
    """The slot that a tick has in a wheel."""
    bits = s.ints[WHEEL_BITS]
    return int((wheel << bits) + ((tick >> (bits * wheel)) & ((1 << bits) - 1)))


@inline
def _slot_of(s: State, tick: int) -> int:
    """The slot of a tick: in the first wheel that has the clock and the tick in one turn."""
    bits = s.ints[WHEEL_BITS]
    differs = s.ints[CLOCK] ^ tick
    wheel = 0
    while wheel < s.ints[N_WHEELS] - 1 and differs >> bits:
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
    place = s.heads[slot] + 1
    if place % CHUNK == 0:  # a full chunk, or none (−1)
        chunk = s.ints[FREE_CHUNK]
        s.ints[FREE_CHUNK] = s.wheel[chunk]
        s.wheel[chunk] = place - 1
        s.wheel[chunk + 1] = slot
        place = chunk + FIRST
    s.wheel[place] = i
    s.heads[slot] = place
    _set_wheel_place(s, i, place)


@jit_lean
def wheel_remove(s: State, i: int) -> None:
    """Take a page out of the wheel, if it is in it, by moving the last of its slot into its place."""
    place = _wheel_place(s, i)
    if place < 0:
        return
    slot = s.wheel[place - place % CHUNK + 1]
    end = s.heads[slot]
    if end != place:
        last = s.wheel[end]
        s.wheel[place] = last
        _set_wheel_place(s, last, place)
    _set_wheel_place(s, i, -1)
    s.heads[slot] = end - 1
    if end % CHUNK == FIRST:
        chunk = end - FIRST
        s.heads[slot] = s.wheel[chunk]
        s.wheel[chunk] = s.ints[FREE_CHUNK]
        s.ints[FREE_CHUNK] = chunk


@jit_lean
def empty_wheel(s: State, now: float) -> None:
    """Give all chunks back, and turn the wheel to now; its members are not told."""
    s.heads[:] = -1
    for chunk in range(0, s.wheel.size, CHUNK):
        s.wheel[chunk] = chunk + CHUNK if chunk + CHUNK < s.wheel.size else -1
    s.ints[FREE_CHUNK] = 0 if s.wheel.size > 0 else -1
    s.ints[CLOCK] = max(s.ints[CLOCK], tick_of(s, now))


@inline
def slot_size(s: State, slot: int) -> int:
    """How many pages are in a slot."""
    n, end = 0, s.heads[slot]
    while end >= 0:
        n += end % CHUNK - FIRST + 1
        end = s.wheel[end - end % CHUNK]
    return int(n)


@inline
def fetch_page(s: State, i: int) -> None:
    """Let what is known of a page come into the cache."""
    prefetch(s.rec, i)
    if s.kin.size > 0:
        prefetch(s.kin, i)
        prefetch(s.extra[max(s.ints[EVIDENCE], 0)], i)


@inline
def fetch_place(s: State, i: int) -> None:
    """The same for a page that was looked at, and where it sleeps; −1: none."""
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
    """Let the pages of a chunk that ends there come into the cache."""
    if end >= 0:
        for place in range(end - end % CHUNK + FIRST, end + 1):
            fetch_page(s, s.wheel[place])


# --- the near set --------------------------------------------------------------------------------------------------


@inline
def near_add(s: State, i: int, value: float, now: float) -> None:
    """Put a page whose value was just computed among the near ones."""
    n = s.ints[N_NEAR]
    s.near_id[n] = i
    s.near_val[n] = value
    if s.kin.size > 0:
        s.near_bound[n].at, s.near_bound[n].until = now, NEVER
    s.rec[i].pos = n
    s.ints[N_NEAR] = n + 1
    set_state(s, i, NEAR)


@inline
def near_remove(s: State, i: int) -> None:
    """Take a page out of the near set."""
    place = s.rec[i].pos
    n = s.ints[N_NEAR] - 1
    last = s.near_id[n]
    s.near_id[place] = last
    s.near_val[place] = s.near_val[n]
    if s.kin.size > 0:
        s.near_bound[place] = s.near_bound[n]
    s.rec[last].pos = place
    s.ints[N_NEAR] = n


@inline
def fall_asleep(s: State, i: int) -> None:
    """Mark a page as asleep (its wheel slot and band are set by the caller)."""
    set_state(s, i, ASLEEP)
    s.ints[N_ASLEEP] += 1


@jit_lean
def wake_up(s: State, i: int) -> None:
    """Take a sleeping page out of wheel and band."""
    band_remove(s, i)
    wheel_remove(s, i)
    s.ints[N_ASLEEP] -= 1
