"""The choice itself. Pages lie in three layers, by what their value can be:

near    value ≥ near level, or about to be: evaluated at every pick, or as far as need be
bands   each below its own level until it wakes; the levels fall from band to band
far     below the far level until it wakes

A sleeping page cannot reach the level of its layer before its tick on the wheel, because values only grow with time and
`wake_time` is never late. So when n near pages have a value ≥ near level, the n best of them are the n best of all. If
there are fewer, the uppermost band joins the near set and its lower level becomes the near level; when no band is left,
all sleeping pages are looked at once and new bands are cut. If there are many more, the near level is raised and the
rest becomes a new band. Nothing here knows the budget: the levels follow it.
"""

import math

from recrawl._jit import inline, jit_lean
from recrawl.schedule.exact.kernels.blocks import band_add, band_tick, spare_blocks
from recrawl.schedule.exact.kernels.groups import link, take_due, unlink
from recrawl.schedule.exact.kernels.near import disturb
from recrawl.schedule.exact.kernels.near_set import near_add
from recrawl.schedule.exact.kernels.pages import state_of
from recrawl.schedule.exact.kernels.values import evaluate
from recrawl.schedule.exact.kernels.wakes import knows_wake, wake_time
from recrawl.schedule.exact.kernels.wheel import (
    fall_asleep,
    fetch_chunk,
    fetch_place,
    slot_at,
    slot_size,
    tick_of,
    wake_up,
    wheel_add,
    wheel_remove,
)
from recrawl.schedule.exact.layout import (
    ASLEEP,
    BANDS,
    BLOCK,
    BUCKETS,
    CHUNK,
    CLOCK,
    DONE,
    FAR,
    FAR_LEVEL,
    G_RISEN,
    G_STIRRED,
    GROW_BLOCKS,
    GROW_NEAR,
    LEVEL,
    N_BANDS,
    N_NEAR,
    N_WHEELS,
    NEAR_LEVEL,
    ORDER,
    WAKES,
    WHEEL_BITS,
    State,
)

LEAST = 1e-300  # below every positive value that matters
_SOON = 0.5  # nearer to a level than this share of the way to the next, a related page sleeps below the next
_AHEAD = 8  # slots of the wheel whose pages are fetched in advance
_BELOW = 1e-6  # a page wakes this much too early: wake times are kept in short floats


@inline
def room_for(s: State, pages: int) -> int:
    """Whether that many pages can be placed, or which array must grow first."""
    if s.ints[N_NEAR] + pages > s.near_id.size:
        return GROW_NEAR
    if spare_blocks(s) < pages // BLOCK + 2 * BANDS:
        return GROW_BLOCKS
    return DONE


@jit_lean
def place(s: State, i: int, now: float) -> None:
    """Put a page that is in no container where its value belongs."""
    value, interval = evaluate(s, i, now)
    if value >= s.flts[NEAR_LEVEL]:
        near_add(s, i, value, now)
    else:
        settle(s, i, now, value, interval)


@inline
def level_below(s: State, k: int) -> float:
    """The level below which the pages of band k sleep, counted from the top; the far ones come after the last."""
    return float(s.flts[LEVEL + s.ints[ORDER + k]] if k < s.ints[N_BANDS] else s.flts[FAR_LEVEL])


@jit_lean
def settle(s: State, i: int, now: float, value: float, interval: float) -> None:
    """Let a page below the near level sleep in the band of its value, or further up if it would wake at once."""
    bands = s.ints[N_BANDS]
    here = tick = tick_of(s, now)
    k, slack = 0, math.inf
    most = value * (1.0 + _BELOW)
    s.rec[i].band = FAR
    s.rec[i].pos = -1
    while k < bands and most < level_below(s, k + 1):
        k += 1
    if s.kin.size > 0:
        while k > 0 and level_below(s, k) - value < _SOON * (level_below(s, k - 1) - value):
            k -= 1
    while True:
        level = level_below(s, k)
        wake, slack = wake_time(s, i, now, level, value, interval)
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
    if s.kin.size > 0:
        link(s, i, slack, now)
    if k < bands:
        band_add(s, i, s.ints[ORDER + k], tick)


@jit_lean
def rest(s: State, i: int, now: float) -> None:
    """Put a page whose value is most likely small to sleep without computing it."""
    wake, slack = wake_time(s, i, now, s.flts[FAR_LEVEL], -1.0, -1.0)
    tick = tick_of(s, wake) if not math.isinf(wake) else 0
    if not math.isinf(wake) and tick <= tick_of(s, now):
        place(s, i, now)
        return
    s.rec[i].pos = -1
    s.rec[i].band = FAR
    fall_asleep(s, i)
    if s.kin.size > 0:
        link(s, i, slack, now)
    if not math.isinf(wake):
        wheel_add(s, i, tick)


@jit_lean
def stir(s: State, g: int, now: float) -> int:
    """Place those members anew that a group's risen mass can have brought up; what must grow first, or DONE."""
    disturb(s, g, s.groups[g, G_RISEN] - s.groups[g, G_STIRRED])
    while True:
        i = s.buckets[g, BUCKETS]
        if i < 0:
            before, after = s.groups[g, G_STIRRED], s.groups[g, G_RISEN]
            s.groups[g, G_STIRRED] = after
            take_due(s, g, before, after, now)
            if s.buckets[g, BUCKETS] < 0:
                return DONE
            continue
        status = room_for(s, 1)
        if status != DONE:
            return status
        fetch_place(s, s.kin[i].next)
        unlink(s, i)
        if state_of(s, i) == ASLEEP:
            wake_up(s, i)
            place(s, i, now)


@inline
def _wheel_empty(s: State, wheel: int) -> bool:
    found = False
    bits = s.ints[WHEEL_BITS]
    for slot in range(wheel << bits, (wheel + 1) << bits):
        found = found or s.heads[slot] >= 0
    return not found


@inline
def _last_of(s: State, slot: int) -> int:
    """The last page in a slot, −1 when it is empty; the chunk before is fetched while this one is dealt with."""
    end = s.heads[slot]
    if end < 0:
        return -1
    if end % CHUNK == CHUNK - 1:
        fetch_chunk(s, s.wheel[end - CHUNK + 1])
    return int(s.wheel[end])


@jit_lean
def _cascade(s: State, now: float) -> None:
    """At the turn of a wheel, deal the next slot of the wheel above out to the ones below.

    A slot there stands for many ticks, so the wake time is asked again of each page that no band knows it of.
    """
    clock = s.ints[CLOCK]
    wheel = 1
    while wheel < s.ints[N_WHEELS] and clock & ((1 << (s.ints[WHEEL_BITS] * wheel)) - 1) == 0:
        slot = slot_at(s, wheel, clock)
        i = _last_of(s, slot)
        while i >= 0:
            wheel_remove(s, i)
            if s.rec[i].band == FAR:
                if knows_wake(s, i):
                    wake = s.rec[i].last + s.kin[i].wake_after
                else:
                    wake, slack = wake_time(s, i, now, s.flts[FAR_LEVEL], -1.0, -1.0)
                    if s.kin.size > 0:
                        link(s, i, slack, now)
                if not math.isinf(wake):
                    # one that is due wakes at this tick: after a long stall, that of `now` may be beyond the wheel
                    wheel_add(s, i, max(tick_of(s, wake), clock) if wake > now else clock)
            else:
                wheel_add(s, i, band_tick(s, i))
            i = _last_of(s, slot)
        wheel += 1


@jit_lean
def advance(s: State, now: float) -> int:
    """Turn the wheel to `now`; pages that wake are placed anew. DONE, or what must grow before going on."""
    target = tick_of(s, now)
    slots = 1 << s.ints[WHEEL_BITS]
    while s.ints[CLOCK] < target:
        clock = s.ints[CLOCK]
        if target - clock > slots // 4 and clock & 0xFF == 0 and _wheel_empty(s, 0):
            empty = 1
            while empty < s.ints[N_WHEELS] - 1 and _wheel_empty(s, empty):
                empty += 1
            jump = clock | ((1 << (empty * s.ints[WHEEL_BITS])) - 1)
            if jump > clock:
                s.ints[CLOCK] = min(target, jump)
                continue
        s.ints[CLOCK] = clock + 1
        if (clock + 1) & (slots - 1) == 0:
            _cascade(s, now)
        slot = (clock + 1) & (slots - 1)
        fetch_chunk(s, s.heads[(clock + _AHEAD) & (slots - 1)])
        if s.heads[slot] < 0:
            continue
        status = room_for(s, slot_size(s, slot))
        if status != DONE:
            s.ints[CLOCK] = clock
            return status
        _wake_slot(s, slot, now)
    return DONE


@jit_lean
def _wake_slot(s: State, slot: int, now: float) -> None:
    i = _last_of(s, slot)
    while i >= 0:
        wake_up(s, i)
        s.ints[WAKES] += 1
        place(s, i, now)
        i = _last_of(s, slot)
