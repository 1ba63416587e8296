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

import numpy as np

from recrawl._jit import inline, jit, jit_lean
from recrawl.schedule._kin_kernels import forget_buckets, link, take_due, unlink
from recrawl.schedule._near_kernels import disturb, look_at_all
from recrawl.schedule._set_kernels import (
    band_add,
    band_remove,
    band_tick,
    empty_wheel,
    fall_asleep,
    fetch_chunk,
    fetch_place,
    free_blocks,
    near_add,
    slot_at,
    slot_size,
    spare_blocks,
    state_of,
    tick_of,
    wake_up,
    wheel_add,
    wheel_remove,
)
from recrawl.schedule._value_kernels import knows_wake, value_of, wake_time, worth_of
from recrawl.schedule.layout import (
    ASLEEP,
    BANDS,
    BLOCK,
    BUCKETS,
    CHUNK,
    CLOCK,
    COVER,
    DECISIONS,
    DONE,
    FAR,
    FAR_LEVEL,
    G_RISEN,
    G_STIRRED,
    GROW_BLOCKS,
    GROW_NEAR,
    HEAD,
    LAST_SCAN,
    LEVEL,
    N_ASLEEP,
    N_BANDS,
    N_NEAR,
    N_PAGES,
    N_WHEELS,
    NEAR_LEVEL,
    ORDER,
    SCAN_AT,
    SCANS,
    SIZE,
    SLACK,
    TOP,
    WAKES,
    WHEEL_BITS,
    State,
)

LEAST = 1e-300  # below every positive value that matters
_RATIO = 16  # of the sizes of new bands
_RELATED_RATIO = 8  # the same where a group can lift many pages at once
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
    value, interval = worth_of(s, i, now)
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
    k = 0
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
        wake = wake_time(s, i, now, level, value, interval)
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
        link(s, i, s.flts[SLACK], now)
    if k < bands:
        band_add(s, i, s.ints[ORDER + k], tick)


@jit_lean
def rest(s: State, i: int, now: float) -> None:
    """Put a page whose value is most likely small to sleep without computing it."""
    wake = wake_time(s, i, now, s.flts[FAR_LEVEL], -1.0, -1.0)
    tick = tick_of(s, wake) if not math.isinf(wake) else 0
    if not math.isinf(wake) and tick <= tick_of(s, now):
        place(s, i, now)
        return
    s.rec[i].pos = -1
    s.rec[i].band = FAR
    fall_asleep(s, i)
    if s.kin.size > 0:
        link(s, i, s.flts[SLACK], now)
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
                    wake = s.rec[i].last + s.rec[i].least
                else:
                    wake = wake_time(s, i, now, s.flts[FAR_LEVEL], -1.0, -1.0)
                    if s.kin.size > 0:
                        link(s, i, s.flts[SLACK], now)
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


@jit
def lower(s: State, now: float, n: int) -> int:
    """Bring more pages near: the uppermost band, or, when there is none, cut new bands from all sleeping pages."""
    if s.ints[N_BANDS] == 0:
        return scan(s, now, n)
    slot = s.ints[ORDER]
    size = s.ints[SIZE + slot]
    status = room_for(s, size)
    if status != DONE:
        return status
    bands = s.ints[N_BANDS]
    s.flts[NEAR_LEVEL] = s.flts[LEVEL + s.ints[ORDER + 1]] if bands > 1 else s.flts[FAR_LEVEL]
    while s.ints[SIZE + slot] > 0:
        i = s.blocks[s.ints[HEAD + slot], s.ints[TOP + slot] - 1]
        wake_up(s, i)
        near_add(s, i, value_of(s, i, now), now)
    for k in range(bands - 1):
        s.ints[ORDER + k] = s.ints[ORDER + k + 1]
    s.ints[N_BANDS] = bands - 1
    return DONE


@jit
def scan(s: State, now: float, n: int) -> int:
    """Look at all sleeping pages once: those above a new, lower far level come near, the others sleep below it."""
    if s.ints[SCAN_AT] < 0:
        cover = _cover(s, n)
        level = max(_sampled_level(s, now, cover), LEAST)
        _count_scan(s, cover)
        s.flts[NEAR_LEVEL] = s.flts[FAR_LEVEL] = min(level, s.flts[FAR_LEVEL])
        for i in range(s.ints[N_PAGES]):
            s.rec[i].least = 0.0
        s.ints[SCAN_AT] = 0
    while s.ints[SCAN_AT] < s.ints[N_PAGES]:
        i = s.ints[SCAN_AT]
        if state_of(s, i) == ASLEEP:
            status = room_for(s, 1)
            if status != DONE:
                return status
            wake_up(s, i)
            place(s, i, now)
        s.ints[SCAN_AT] = i + 1
    s.ints[SCAN_AT] = -1
    return DONE


@jit
def begin_anew(s: State, now: float) -> None:
    """Empty wheel, bands and buckets at once, and choose a level that suits what is believed now.

    The pages that were asleep are in no container then; the caller places them, and the near ones, anew.
    """
    cover = _usual_cover(s)
    level = max(_sampled_level(s, now, cover), LEAST)
    for k in range(s.ints[N_BANDS]):
        free_blocks(s, s.ints[ORDER + k])
    s.ints[N_BANDS] = 0
    empty_wheel(s, now)
    forget_buckets(s)
    for i in range(s.ints[N_PAGES]):
        s.rec[i].least = 0.0
        if state_of(s, i) == ASLEEP:
            s.rec[i].pos = -1
            s.rec[i].band = FAR
    _count_scan(s, cover)
    s.flts[NEAR_LEVEL] = s.flts[FAR_LEVEL] = level
    s.ints[SCAN_AT] = -1


@inline
def _count_scan(s: State, cover: int) -> None:
    s.ints[SCANS] += 1
    s.ints[LAST_SCAN] = s.ints[DECISIONS]
    s.ints[COVER] = cover


@jit_lean
def _cover(s: State, n: int) -> int:
    """How many pages the bands should hold: a multiple of the level's random swings, more after a recent scan."""
    if s.ints[SCANS] > 0 and _scanned_lately(s):
        return int(min(4 * s.ints[COVER], s.ints[N_PAGES] + 1))
    return _usual_cover(s) + 12 * n


@inline
def _usual_cover(s: State) -> int:
    return int(16.0 * math.sqrt(s.ints[N_PAGES])) + 64


@inline
def _scanned_lately(s: State) -> bool:
    """Whether the last scan came so short a time ago that scans would cost too much: a value per decision at least."""
    return bool(s.ints[DECISIONS] - s.ints[LAST_SCAN] < min(8 * s.ints[COVER], s.ints[N_PAGES]))


@jit
def _sampled_level(s: State, now: float, cover: int) -> float:
    """A level that about `cover` of the sleeping pages exceed, from a spread sample; 0 where that is all of them."""
    asleep = s.ints[N_ASLEEP]
    if cover >= asleep:
        return 0.0
    stride = max(s.ints[N_PAGES] // 65536, 1)
    values = np.empty(s.ints[N_PAGES] // stride + 1)
    m = 0
    for i in range(0, s.ints[N_PAGES], stride):
        if state_of(s, i) == ASLEEP:
            values[m] = value_of(s, i, now)
            m += 1
    rank = int(cover * m / asleep) + 1
    if rank >= m:
        return 0.0
    values = values[:m]
    return float(np.partition(values, m - rank)[m - rank])


@jit
def shrink(s: State, now: float, keep: int) -> int:
    """Raise the near level until about `keep` pages are near; the others become bands, wider from one to the next."""
    near = s.ints[N_NEAR]
    if spare_blocks(s) < near // BLOCK + 2 * BANDS:
        return GROW_BLOCKS
    look_at_all(s, now)
    ids = s.near_id[:near].copy()
    values = s.near_val[:near].copy()
    ranked = np.sort(values)[::-1]
    if ranked[keep] <= s.flts[NEAR_LEVEL]:
        return DONE
    rank, n_new = keep, 0
    ratio = _RATIO if s.kin.size == 0 else _RELATED_RATIO
    while rank < near and ranked[rank] > s.flts[NEAR_LEVEL] and n_new < BANDS // 2:
        rank *= ratio
        n_new += 1
    _make_band_room(s, n_new)
    for _ in range(n_new):
        rank //= ratio
        _new_band(s, ranked[rank])
    s.flts[NEAR_LEVEL] = ranked[keep]
    s.ints[N_NEAR] = 0
    for j in range(near):
        if values[j] >= ranked[keep]:
            near_add(s, ids[j], values[j], now)
        else:
            settle(s, ids[j], now, values[j], -1.0)
    _make_geometric(s)
    return DONE


@jit_lean
def _make_geometric(s: State) -> None:
    """Join bands until each is several times the one above: a page then climbs through few of them."""
    k = 0
    while k + 1 < s.ints[N_BANDS]:
        if s.ints[SIZE + s.ints[ORDER + k + 1]] < 4 * s.ints[SIZE + s.ints[ORDER + k]]:
            _join(s, k)
            k = max(k - 1, 0)
        else:
            k += 1


@jit_lean
def _new_band(s: State, level: float) -> None:
    """A new, empty, uppermost band below a level."""
    slot = _free_slot(s)
    for k in range(s.ints[N_BANDS], 0, -1):
        s.ints[ORDER + k] = s.ints[ORDER + k - 1]
    s.ints[ORDER] = slot
    s.ints[N_BANDS] += 1
    s.flts[LEVEL + slot] = level


@jit_lean
def _free_slot(s: State) -> int:
    for slot in range(BANDS):
        used = False
        for k in range(s.ints[N_BANDS]):
            used = used or s.ints[ORDER + k] == slot
        if not used:
            s.ints[HEAD + slot] = -1
            s.ints[TOP + slot] = 0
            s.ints[SIZE + slot] = 0
            return slot
    return -1


@jit_lean
def _make_band_room(s: State, more: int) -> None:
    """Keep the bands few and within the cover: sink the lowest, or join the two neighbours that are smallest."""
    total = 0
    for k in range(s.ints[N_BANDS]):
        total += s.ints[SIZE + s.ints[ORDER + k]]
    cover = max(s.ints[COVER], _usual_cover(s)) if _scanned_lately(s) else _usual_cover(s)
    while s.ints[N_BANDS] > 1 and total > 2 * cover:
        total -= s.ints[SIZE + s.ints[ORDER + s.ints[N_BANDS] - 1]]
        _sink_lowest(s)
    while s.ints[N_BANDS] + more > BANDS:
        best, best_size = 0, 1 << 62
        for k in range(s.ints[N_BANDS] - 1):
            size = s.ints[SIZE + s.ints[ORDER + k]] + s.ints[SIZE + s.ints[ORDER + k + 1]]
            if size < best_size:
                best, best_size = k, size
        _join(s, best)


@jit_lean
def _sink_lowest(s: State) -> None:
    """The lowest band becomes part of the far pages: they sleep below what was its level."""
    slot = s.ints[ORDER + s.ints[N_BANDS] - 1]
    s.flts[FAR_LEVEL] = s.flts[LEVEL + slot]
    while s.ints[SIZE + slot] > 0:
        band_remove_top(s, slot)
    s.ints[N_BANDS] -= 1


@jit_lean
def band_remove_top(s: State, slot: int) -> int:
    """Take the newest member out of a band (it stays in the wheel)."""
    i = s.blocks[s.ints[HEAD + slot], s.ints[TOP + slot] - 1]
    band_remove(s, i)
    return int(i)


@jit_lean
def _join(s: State, k: int) -> None:
    """Bands k and k + 1 become one, below the upper level; pages of the lower one wake earlier than they need to."""
    upper, under = s.ints[ORDER + k], s.ints[ORDER + k + 1]
    level = s.flts[LEVEL + upper]
    small, large = (upper, under) if s.ints[SIZE + upper] < s.ints[SIZE + under] else (under, upper)
    while s.ints[SIZE + small] > 0:
        tick = band_tick(s, s.blocks[s.ints[HEAD + small], s.ints[TOP + small] - 1])
        band_add(s, band_remove_top(s, small), large, tick)
    s.flts[LEVEL + large] = level
    s.ints[ORDER + k] = large
    for j in range(k + 1, s.ints[N_BANDS] - 1):
        s.ints[ORDER + j] = s.ints[ORDER + j + 1]
    s.ints[N_BANDS] -= 1
