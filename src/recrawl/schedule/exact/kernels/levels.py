"""The levels of near set, bands and far pages: when they move, and which pages that brings near or lets sleep.

Too few near pages: `lower`, and where no band is left `scan`. Too many: `shrink`. All pages changed: `begin_anew`.
"""

import math

import numpy as np

from recrawl._jit import inline, jit, jit_lean
from recrawl.schedule.exact.kernels.blocks import band_add, band_remove, band_tick, free_blocks, spare_blocks
from recrawl.schedule.exact.kernels.groups import forget_buckets
from recrawl.schedule.exact.kernels.layers import LEAST, place, room_for, settle
from recrawl.schedule.exact.kernels.near import look_at_all
from recrawl.schedule.exact.kernels.near_set import near_add
from recrawl.schedule.exact.kernels.pages import forget_bounds, state_of
from recrawl.schedule.exact.kernels.values import evaluate
from recrawl.schedule.exact.kernels.wheel import empty_wheel, wake_up
from recrawl.schedule.exact.layout import (
    ASLEEP,
    BANDS,
    BLOCK,
    COVER,
    DECISIONS,
    DONE,
    FAR,
    FAR_LEVEL,
    GROW_BLOCKS,
    HEAD,
    LAST_SCAN,
    LEVEL,
    N_ASLEEP,
    N_BANDS,
    N_NEAR,
    N_PAGES,
    NEAR_LEVEL,
    ORDER,
    SCAN_AT,
    SCANS,
    SIZE,
    TOP,
    State,
)

_RATIO = 16  # of the sizes of new bands
_RELATED_RATIO = 8  # the same where a group can lift many pages at once


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
        near_add(s, i, evaluate(s, i, now)[0], now)
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
            forget_bounds(s, i)
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
        forget_bounds(s, i)
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
            values[m] = evaluate(s, i, now)[0]
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
