"""Where each page lies: three layers, by what its value can be.

near    value ≥ near level, or soon: evaluated at every pick, or when its bound says that it could be the best
bands   each below its own level until it wakes; the levels fall from band to band
far     below the far level until it wakes

A sleeping page cannot reach the level of its layer before its tick on the wheel: values only grow with time, and
`wake_time` is never late. So when n near pages have a value ≥ near level, the n best of them are the n best of all. If
there are fewer, the uppermost band joins the near set and its lower level becomes the near level; when no band is left,
all sleeping pages are evaluated once and new bands are formed. If there are many more, the near level rises and the
rest becomes a new band. No kernel uses the budget: the levels follow the picks.
"""

import math

from recrawl._compile.jit import inline, jit_lean
from recrawl.schedule.exact.kernels.places.near_set import near_add
from recrawl.schedule.exact.kernels.places.wheel import (
    fall_asleep,
    fetch_chunk,
    fetch_clocks,
    fetch_place,
    slot_at,
    slot_size,
    tick_of,
    wake_up,
    wheel_add,
    wheel_remove,
)
from recrawl.schedule.exact.kernels.state.blocks import band_add, band_tick, set_band_tick, spare_blocks
from recrawl.schedule.exact.kernels.state.pages import state_of, whole
from recrawl.schedule.exact.kernels.value.buckets import link, relink, take_due, unlink
from recrawl.schedule.exact.kernels.value.clocks import clock_between, has_clock, time_ahead
from recrawl.schedule.exact.kernels.value.values import evaluate
from recrawl.schedule.exact.kernels.value.wakes import slack_of, wake_time
from recrawl.schedule.exact.layout import ASLEEP, BANDS, BLOCK, BUCKETS, CHUNK, DONE, FAR, GROW_BLOCKS, GROW_NEAR, State

LEAST = 1e-300  # below every positive value that matters
_SOON = 0.5  # nearer to a level than this share of the way to the next, a page with a clock sleeps below the next
_APART = 2.0  # unless the next is more than so many times the level: so it is while new pages are crawled
_AHEAD = 8  # slots of the wheel whose pages are fetched in advance
_HALF_WAY = 0.05  # of its clock time up to a level that is left: a page that wakes sleeps on without an evaluation
_BELOW = 1e-6  # a page wakes this much too early: exponents are kept in short floats


@inline
def room_for(s: State, pages: int) -> int:
    """Whether that many pages can be placed, or which array must grow first."""
    if s.head[0].n_near + pages > s.near_id.size:
        return GROW_NEAR
    if spare_blocks(s) < pages // BLOCK + 2 * BANDS:
        return GROW_BLOCKS
    return DONE


@jit_lean
def place(s: State, i: int, now: float) -> None:
    """Put a page that is in no container where its value belongs."""
    value, interval = evaluate(s, i, now)
    if value >= s.head[0].near_level:
        near_add(s, i, value, now)
    else:
        settle(s, i, now, value, interval)


@inline
def level_below(s: State, k: int) -> float:
    """The level below which the pages of band k sleep, counted from the top; the far ones come after the last."""
    return float(s.bands[s.band_order[k]].level if k < s.head[0].n_bands else s.head[0].far_level)


@inline
def _is_soon(s: State, k: int, value: float) -> bool:
    """Whether a value is much nearer to the level of band k than to the one above, which is not far above that."""
    level, above = level_below(s, k), level_below(s, k - 1)
    return level - value < _SOON * (above - value) and above < _APART * level


@jit_lean
def settle(s: State, i: int, now: float, value: float, interval: float) -> None:
    """Let a page below the near level sleep in the band of its value, or further up if it would wake at once."""
    bands = s.head[0].n_bands
    here = tick = tick_of(s, now)
    k, wake, limit = 0, math.inf, math.inf
    most = value * (1.0 + _BELOW)
    s.rec[i].band = FAR
    s.rec[i].pos = -1
    while k < bands and most < level_below(s, k + 1):
        k += 1
    if s.member.size > 0:
        while k > 0 and _is_soon(s, k, value):
            k -= 1
    while True:
        level = level_below(s, k)
        wake, limit = wake_time(s, i, now, level, value, interval)
        if math.isinf(wake):
            break
        tick = tick_of(s, wake)
        if tick > here:
            wheel_add(s, i, tick)
            break
        if k == 0:
            near_add(s, i, value, now)
            return
        k -= 1
    fall_asleep(s, i)
    if s.member.size > 0:
        link(s, i, wake, limit)
    if k < bands:
        band_add(s, i, s.band_order[k], tick)


@jit_lean
def rest(s: State, i: int, now: float) -> None:
    """Put a page to sleep without computing its value, which is most likely small."""
    wake, limit = wake_time(s, i, now, s.head[0].far_level, -1.0, -1.0)
    tick = tick_of(s, wake) if not math.isinf(wake) else 0
    if not math.isinf(wake) and tick <= tick_of(s, now):
        place(s, i, now)
        return
    s.rec[i].pos = -1
    s.rec[i].band = FAR
    fall_asleep(s, i)
    if s.member.size > 0:
        link(s, i, wake, limit)
    if not math.isinf(wake):
        wheel_add(s, i, tick)


@jit_lean
def reinsert_group(s: State, g: int, now: float) -> int:
    """Place the members again whose slack a group's rise has used up; what must grow first, or DONE."""
    while True:
        i = whole(s.buckets[g, BUCKETS])
        if i < 0:
            before, after = s.groups[g].reinserted, s.groups[g].risen
            s.groups[g].reinserted = after
            take_due(s, g, before, after)
            if s.buckets[g, BUCKETS] < 0:
                return DONE
            continue
        status = room_for(s, 1)
        if status != DONE:
            return status
        fetch_place(s, s.member[i].next)
        unlink(s, i)
        if state_of(s, i) == ASLEEP:
            wake_up(s, i)
            place(s, i, now)


@inline
def _wheel_empty(s: State, wheel: int) -> bool:
    found = False
    bits = s.head[0].wheel_bits
    for slot in range(wheel << bits, (wheel + 1) << bits):
        found = found or s.slots[slot] >= 0
    return not found


@inline
def _last_of(s: State, slot: int) -> int:
    """The last page in a slot, −1 when it is empty; the chunk before is prefetched."""
    end = s.slots[slot]
    if end < 0:
        return -1
    if end % CHUNK == CHUNK - 1:
        fetch_chunk(s, s.wheel[end - CHUNK + 1])
    return int(s.wheel[end])


@jit_lean
def _cascade(s: State, now: float) -> None:
    """At the turn of a wheel, distribute the next slot of the wheel above over the wheels below.

    A slot there covers many ticks. The wake time of a page that keeps none, in its band or record, is computed again.
    """
    clock = s.head[0].clock
    wheel = 1
    while wheel < s.head[0].n_wheels and clock & ((1 << (s.head[0].wheel_bits * wheel)) - 1) == 0:
        slot = slot_at(s, wheel, clock)
        i = _last_of(s, slot)
        while i >= 0:
            wheel_remove(s, i)
            if s.rec[i].band == FAR:
                if has_clock(s, i):
                    wake = s.member[i].wake_at
                else:
                    wake = wake_time(s, i, now, s.head[0].far_level, -1.0, -1.0)[0]
                if not math.isinf(wake):
                    # one that is due wakes at this tick: after a long stall, that of `now` may be beyond the wheel
                    wheel_add(s, i, max(tick_of(s, wake), clock) if wake > now else clock)
            else:
                wheel_add(s, i, band_tick(s, i))
            i = _last_of(s, slot)
        wheel += 1


@jit_lean
def advance(s: State, now: float) -> int:
    """Turn the wheel to `now`; pages that wake are placed again. DONE, or what must grow before going on."""
    target = tick_of(s, now)
    slots = 1 << s.head[0].wheel_bits
    while s.head[0].clock < target:
        clock = s.head[0].clock
        if target - clock > slots // 4 and clock & 0xFF == 0 and _wheel_empty(s, 0):
            empty = 1
            while empty < s.head[0].n_wheels - 1 and _wheel_empty(s, empty):
                empty += 1
            jump = clock | ((1 << (empty * s.head[0].wheel_bits)) - 1)
            if jump > clock:
                s.head[0].clock = min(target, jump)
                continue
        s.head[0].clock = clock + 1
        if (clock + 1) & (slots - 1) == 0:
            _cascade(s, now)
        slot = (clock + 1) & (slots - 1)
        fetch_chunk(s, s.slots[(clock + _AHEAD) & (slots - 1)])
        fetch_clocks(s, s.slots[(clock + _AHEAD // 2) & (slots - 1)])
        if s.slots[slot] < 0:
            continue
        status = room_for(s, slot_size(s, slot))
        if status != DONE:
            s.head[0].clock = clock
            return status
        _wake_slot(s, slot, now)
    return DONE


@jit_lean
def _wake_slot(s: State, slot: int, now: float) -> None:
    i = _last_of(s, slot)
    while i >= 0:
        s.head[0].wakes += 1
        if not _sleep_on(s, i, now):
            wake_up(s, i)
            place(s, i, now)
        i = _last_of(s, slot)


@jit_lean
def _sleep_on(s: State, i: int, now: float) -> bool:
    """Let a page that wakes sleep on where much is left of the clock time up to its limit, which holds as before.

    The levels of layers only rise while pages sleep below them. The limit holds for a time only where there are floors
    or delays of signals.
    """
    if not has_clock(s, i) or s.head[0].floor_row >= 0 or s.head[0].n_delays > 0:
        return False
    g, limit = s.member[i].group, s.member[i].limit
    if limit == math.inf or s.groups[g].updated_at > now:
        return False
    left = limit - clock_between(s, g, s.rec[i].last, now)
    slack = slack_of(s, left, limit)
    if left < _HALF_WAY * limit or slack >= left:
        return False
    wake = now + time_ahead(s, g, now, left - slack)
    tick = tick_of(s, wake)
    if tick <= tick_of(s, now):
        return False
    wheel_remove(s, i)
    wheel_add(s, i, tick)
    if s.rec[i].band != FAR:
        set_band_tick(s, i, tick)
    relink(s, i, wake, slack)
    return True
