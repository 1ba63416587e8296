"""Lists of pages in blocks: bands, and the parked pages of hosts.

A page knows its place, so that leaving takes constant time; one in a band has its place in the wheel kept there. None
of them is a chain of pages: with many pages each link would be a cache miss, and lists of ids can be prefetched.
"""

from recrawl._compile.jit import inline, jit_lean
from recrawl.schedule.exact.kernels.state.pages import set_state
from recrawl.schedule.exact.layout import BLOCK, FAR, PARKED, TICKS, WHEEL_PLACES, State

_LINK = BLOCK  # column of the block before


@inline
def _take_block(s: State) -> int:
    free = s.head[0].free_block
    if free >= 0:
        s.head[0].free_block = s.blocks[free, _LINK]
        s.head[0].n_free_blocks -= 1
        return int(free)
    block = s.head[0].n_blocks
    s.head[0].n_blocks += 1
    return int(block)


@inline
def spare_blocks(s: State) -> int:
    """Blocks that are not in use; a caller that may need one checks that some are left."""
    return int(s.blocks.shape[0] - s.head[0].n_blocks + s.head[0].n_free_blocks)


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
        s.blocks[head, _LINK] = s.head[0].free_block
        s.head[0].free_block = head
        s.head[0].n_free_blocks += 1
        return before, BLOCK if before >= 0 else 0
    return head, top


@jit_lean
def band_add(s: State, i: int, slot: int, tick: int) -> None:
    """Put a page that wakes at a tick into a band."""
    head, top = _push(s, i, s.bands[slot].head, s.bands[slot].top, tick)
    s.bands[slot].head, s.bands[slot].top = head, top
    s.bands[slot].size += 1
    s.rec[i].band = slot


@inline
def band_tick(s: State, i: int) -> int:
    """The tick at which a page in a band wakes; only its last bits are kept."""
    place = s.rec[i].pos
    ahead = (s.blocks[place // BLOCK, TICKS + place % BLOCK] - s.head[0].clock) & 0xFFFFFFFF
    return int(s.head[0].clock + ahead)


@inline
def set_band_tick(s: State, i: int, tick: int) -> None:
    """A page in a band wakes at another tick."""
    place = s.rec[i].pos
    s.blocks[place // BLOCK, TICKS + place % BLOCK] = tick & 0xFFFFFFFF


@jit_lean
def band_remove(s: State, i: int) -> None:
    """Take a page out of its band, if it is in one."""
    slot = s.rec[i].band
    if slot == FAR:
        return
    head, top = _drop(s, i, s.bands[slot].head, s.bands[slot].top)
    s.bands[slot].head, s.bands[slot].top = head, top
    s.bands[slot].size -= 1
    s.rec[i].band = FAR


@jit_lean
def free_blocks(s: State, slot: int) -> None:
    """Give all blocks of a band back; the records of its members are left as they are."""
    block = s.bands[slot].head
    while block >= 0:
        before = s.blocks[block, _LINK]
        s.blocks[block, _LINK] = s.head[0].free_block
        s.head[0].free_block = block
        s.head[0].n_free_blocks += 1
        block = before
    s.bands[slot].head, s.bands[slot].top, s.bands[slot].size = -1, 0, 0


@jit_lean
def park(s: State, i: int, h: int) -> None:
    """Set a page aside until its host may be crawled again."""
    head, top = _push(s, i, int(s.hosts[h].head), int(s.hosts[h].top), 0)
    s.hosts[h].head, s.hosts[h].top = head, top
    s.hosts[h].size += 1
    s.head[0].n_parked += 1
    set_state(s, i, PARKED)


@jit_lean
def unpark(s: State, i: int, h: int) -> None:
    """Take a page from those set aside."""
    head, top = _drop(s, i, int(s.hosts[h].head), int(s.hosts[h].top))
    s.hosts[h].head, s.hosts[h].top = head, top
    s.hosts[h].size -= 1
    s.head[0].n_parked -= 1
