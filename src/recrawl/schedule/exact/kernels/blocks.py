"""Lists of pages in blocks: bands, and the parked pages of hosts.

A page knows its place, so that leaving takes constant time; one in a band has its place in the wheel kept there. None
of them is a chain of pages: among many pages each link would be a wait for memory, and lists of ids can be read ahead.
"""

from recrawl._jit import inline, jit_lean
from recrawl.schedule.exact.kernels.pages import set_state
from recrawl.schedule.exact.layout import (
    BLOCK,
    CLOCK,
    FAR,
    FREE_BLOCK,
    H_HEAD,
    H_SIZE,
    H_TOP,
    HEAD,
    N_BLOCKS,
    N_FREE_BLOCKS,
    N_PARKED,
    PARKED,
    SIZE,
    TICKS,
    TOP,
    WHEEL_PLACES,
    State,
)

_LINK = BLOCK  # column of the block before


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
