"""The containers of a scheduler: block lists (bands, parked pages), the timing wheel, the near set.

All are intrusive: a page knows its place, so that leaving takes constant time.
"""

from recrawl._jit import inline, jit_lean
from recrawl.schedule.layout import (
    ASLEEP,
    BITS,
    BLOCK,
    CLOCK,
    FAR,
    FREE_BLOCK,
    H_HEAD,
    H_SIZE,
    H_TOP,
    HEAD,
    N_ASLEEP,
    N_BLOCKS,
    N_NEAR,
    N_PARKED,
    NEAR,
    ORIGIN,
    PARKED,
    SIZE,
    SLOTS,
    TICKS,
    TOP,
    WHEELS,
    WIDTH,
    State,
)

_LINK = BLOCK  # column of the block before


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
        return int(free)
    block = s.ints[N_BLOCKS]
    s.ints[N_BLOCKS] += 1
    return int(block)


@inline
def spare_blocks(s: State) -> int:
    """Blocks that were never used; a caller that may need one checks that some are left."""
    return int(s.blocks.shape[0] - s.ints[N_BLOCKS])


@inline
def _push(s: State, i: int, head: int, top: int, tick: int) -> tuple[int, int]:
    if head < 0 or top == BLOCK:
        block = _take_block(s)
        s.blocks[block, _LINK] = head
        head, top = block, 0
    s.blocks[head, top] = i
    s.blocks[head, TICKS + top] = tick & 0xFFFFFFFF
    s.rec[i].pos = head * BLOCK + top
    return head, top + 1


@inline
def _drop(s: State, i: int, head: int, top: int) -> tuple[int, int]:
    """Remove page i by moving the newest member into its place."""
    place = s.rec[i].pos
    last = s.blocks[head, top - 1]
    s.blocks[place // BLOCK, place % BLOCK] = last
    s.blocks[place // BLOCK, TICKS + place % BLOCK] = s.blocks[head, TICKS + top - 1]
    s.rec[last].pos = place
    top -= 1
    if top == 0:
        before = s.blocks[head, _LINK]
        s.blocks[head, _LINK] = s.ints[FREE_BLOCK]
        s.ints[FREE_BLOCK] = head
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
    most = s.ints[CLOCK] + (1 << (BITS * WHEELS - 1))
    return int(ticks) if ticks < most else int(most)


@inline
def _wheel_slot(clock: int, tick: int) -> int:
    differs = clock ^ tick
    wheel = 0
    while wheel < WHEELS - 1 and differs >= SLOTS:
        differs >>= BITS
        wheel += 1
    return wheel * SLOTS + ((tick >> (BITS * wheel)) & (SLOTS - 1))


@jit_lean
def wheel_add(s: State, i: int, tick: int) -> None:
    """Let a page sleep until a tick after the clock."""
    slot = _wheel_slot(s.ints[CLOCK], tick)
    p = s.rec[i]
    first = s.heads[slot]
    p.next = first
    p.prev = -2 - slot
    if first >= 0:
        s.rec[first].prev = i
    s.heads[slot] = i


@jit_lean
def wheel_remove(s: State, i: int) -> None:
    """Take a page out of the wheel, if it is in it."""
    p = s.rec[i]
    if p.prev == -1:
        return
    if p.prev < -1:
        s.heads[-2 - p.prev] = p.next
    else:
        s.rec[p.prev].next = p.next
    if p.next >= 0:
        s.rec[p.next].prev = p.prev
    p.prev = -1
    p.next = -1


@inline
def pop_slot(s: State, slot: int) -> int:
    """Empty a slot; its pages stay chained by `next` from the one returned."""
    first = s.heads[slot]
    s.heads[slot] = -1
    return int(first)


# --- the near set --------------------------------------------------------------------------------------------------


@inline
def near_add(s: State, i: int, value: float) -> None:
    """Put a page whose value was just computed among the near ones."""
    n = s.ints[N_NEAR]
    s.near_id[n] = i
    s.near_val[n] = value
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
    wheel_remove(s, i)
    band_remove(s, i)
    s.ints[N_ASLEEP] -= 1
