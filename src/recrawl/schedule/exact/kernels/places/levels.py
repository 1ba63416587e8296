"""The levels of near set, bands and far pages: when they move, and which pages become near or go to sleep.

Too few near pages: `lower`, and where no band is left `scan`. Too many: `shrink`. All pages changed: `reset_layers`.
"""

import math

import numpy as np

from recrawl._compile.jit import inline, jit, jit_lean
from recrawl.schedule.exact.kernels.places.layers import LEAST, place, room_for, settle
from recrawl.schedule.exact.kernels.places.near import value_all
from recrawl.schedule.exact.kernels.places.near_set import near_add
from recrawl.schedule.exact.kernels.places.wheel import LATER, SOONER, empty_wheel, fetch_ahead, wake_up
from recrawl.schedule.exact.kernels.state.blocks import band_add, band_remove, band_tick, free_blocks, spare_blocks
from recrawl.schedule.exact.kernels.state.pages import forget_bounds, state_of, whole
from recrawl.schedule.exact.kernels.value.buckets import forget_buckets
from recrawl.schedule.exact.kernels.value.ranking import descending, ranked
from recrawl.schedule.exact.kernels.value.values import evaluate
from recrawl.schedule.exact.layout import ASLEEP, BANDS, BLOCK, DONE, FAR, GROW_BLOCKS, State

_RATIO = 16  # of the sizes of new bands
_CLOCKED_RATIO = 8  # the same where a group can lift many pages at once
_LEAST_RATIO = 4  # bands whose sizes are nearer to each other are joined
_LIFTED_LEAST_RATIO = 3  # the same where signals or clocks lift pages; elsewhere it makes picks slower


@jit
def lower(s: State, now: float, n: int) -> int:
    """Bring more pages near: the uppermost band, or, when there is none, cut new bands from all sleeping pages."""
    if s.head[0].n_bands == 0:
        return scan(s, now, n)
    slot = s.band_order[0]
    size = s.bands[slot].size
    status = room_for(s, size)
    if status != DONE:
        return status
    bands = s.head[0].n_bands
    s.head[0].near_level = s.bands[s.band_order[1]].level if bands > 1 else s.head[0].far_level
    while s.bands[slot].size > 0:
        i = whole(s.blocks[s.bands[slot].head, s.bands[slot].top - 1])
        wake_up(s, i)
        near_add(s, i, evaluate(s, i, now)[0], now)
    for k in range(bands - 1):
        s.band_order[k] = s.band_order[k + 1]
    s.head[0].n_bands = bands - 1
    return DONE


@jit
def scan(s: State, now: float, n: int) -> int:
    """Look at all sleeping pages once: those above a new, lower far level come near, the others sleep below it."""
    if s.head[0].scan_at < 0:
        cover = _cover(s, n)
        level = max(_sampled_level(s, now, cover), LEAST)
        _count_scan(s, cover)
        s.head[0].near_level = s.head[0].far_level = min(level, s.head[0].far_level)
        for i in range(s.head[0].n_pages):
            forget_bounds(s, i)
        s.head[0].scan_at = 0
    while s.head[0].scan_at < s.head[0].n_pages:
        i = s.head[0].scan_at
        fetch_ahead(s, i + LATER, i + SOONER)
        if state_of(s, i) == ASLEEP:
            status = room_for(s, 1)
            if status != DONE:
                return status
            wake_up(s, i)
            place(s, i, now)
        s.head[0].scan_at = i + 1
    s.head[0].scan_at = -1
    return DONE


@jit
def reset_layers(s: State, now: float) -> None:
    """Empty wheel, bands and buckets at once, and choose a level by the present parameters.

    The pages that were asleep are in no container then; the caller places them and the near ones again.
    """
    cover = _usual_cover(s)
    level = max(_sampled_level(s, now, cover), LEAST)
    for k in range(s.head[0].n_bands):
        free_blocks(s, s.band_order[k])
    s.head[0].n_bands = 0
    empty_wheel(s, now)
    forget_buckets(s)
    for i in range(s.head[0].n_pages):
        forget_bounds(s, i)
        if state_of(s, i) == ASLEEP:
            s.rec[i].pos = -1
            s.rec[i].band = FAR
    _count_scan(s, cover)
    s.head[0].near_level = s.head[0].far_level = level
    s.head[0].scan_at = -1


@inline
def _count_scan(s: State, cover: int) -> None:
    s.head[0].scans += 1
    s.head[0].last_scan = s.head[0].decisions
    s.head[0].cover = cover


@jit_lean
def _cover(s: State, n: int) -> int:
    """How many pages the bands should hold: a multiple of the level's random swings, more after a recent scan."""
    if s.head[0].scans > 0 and _scanned_lately(s):
        return int(min(4 * s.head[0].cover, s.head[0].n_pages + 1))
    return _usual_cover(s) + 12 * n


@inline
def _usual_cover(s: State) -> int:
    return int(16.0 * math.sqrt(s.head[0].n_pages)) + 64


@inline
def _scanned_lately(s: State) -> bool:
    """Whether the last scan came so short a time ago that scans would cost too much: a value per decision at least."""
    return bool(s.head[0].decisions - s.head[0].last_scan < min(8 * s.head[0].cover, s.head[0].n_pages))


@jit
def _sampled_level(s: State, now: float, cover: int) -> float:
    """A level that about `cover` of the sleeping pages exceed, from a spread sample; 0 where that is all of them."""
    asleep = s.head[0].n_asleep
    if cover >= asleep:
        return 0.0
    stride = max(s.head[0].n_pages // 65536, 1)
    values = np.empty(s.head[0].n_pages // stride + 1)
    m = 0
    for i in range(0, s.head[0].n_pages, stride):
        if state_of(s, i) == ASLEEP:
            values[m] = evaluate(s, i, now)[0]
            m += 1
    rank = int(cover * m / asleep) + 1
    if rank >= m:
        return 0.0
    return ranked(values[:m], m - rank)


@jit
def shrink(s: State, now: float, keep: int) -> int:
    """Raise the near level until about `keep` pages are near; the others become bands, wider from one to the next."""
    near = s.head[0].n_near
    if spare_blocks(s) < near // BLOCK + 2 * BANDS:
        return GROW_BLOCKS
    value_all(s, now)
    ids, values = np.empty(near, np.int64), np.empty(near)
    for j in range(near):
        ids[j], values[j] = s.near_id[j], s.near_val[j]
    order = descending(values)
    kept = values[order[keep]]
    if kept <= s.head[0].near_level:
        return DONE
    rank, n_new = keep, 0
    ratio = _RATIO if s.member.size == 0 else _CLOCKED_RATIO
    while rank < near and values[order[rank]] > s.head[0].near_level and n_new < BANDS // 2:
        rank *= ratio
        n_new += 1
    _make_band_room(s, n_new)
    for _ in range(n_new):
        rank //= ratio
        _new_band(s, values[order[rank]])
    s.head[0].near_level = kept
    s.head[0].n_near = 0
    for j in range(near):
        if values[j] >= kept:
            near_add(s, ids[j], values[j], now)
        else:
            settle(s, ids[j], now, values[j], -1.0)
    _make_geometric(s)
    return DONE


@jit_lean
def _make_geometric(s: State) -> None:
    """Join bands until each is several times the one above: a page then climbs through few of them."""
    least = _LEAST_RATIO if s.member.size == 0 and s.head[0].n_log == 0 else _LIFTED_LEAST_RATIO
    k = 0
    while k + 1 < s.head[0].n_bands:
        if s.bands[s.band_order[k + 1]].size < least * s.bands[s.band_order[k]].size:
            _join(s, k)
            k = max(k - 1, 0)
        else:
            k += 1


@jit_lean
def _new_band(s: State, level: float) -> None:
    """A new, empty, uppermost band below a level."""
    slot = _free_slot(s)
    for k in range(s.head[0].n_bands, 0, -1):
        s.band_order[k] = s.band_order[k - 1]
    s.band_order[0] = slot
    s.head[0].n_bands += 1
    s.bands[slot].level = level


@jit_lean
def _free_slot(s: State) -> int:
    for slot in range(BANDS):
        used = False
        for k in range(s.head[0].n_bands):
            used = used or s.band_order[k] == slot
        if not used:
            s.bands[slot].head = -1
            s.bands[slot].top = 0
            s.bands[slot].size = 0
            return slot
    return -1


@jit_lean
def _make_band_room(s: State, more: int) -> None:
    """Keep the bands few and within the cover: sink the lowest, or join the two neighbours that are smallest."""
    total = 0
    for k in range(s.head[0].n_bands):
        total += s.bands[s.band_order[k]].size
    cover = max(s.head[0].cover, _usual_cover(s)) if _scanned_lately(s) else _usual_cover(s)
    while s.head[0].n_bands > 1 and total > 2 * cover:
        total -= s.bands[s.band_order[s.head[0].n_bands - 1]].size
        _sink_lowest(s)
    while s.head[0].n_bands + more > BANDS:
        best, best_size = 0, 1 << 62
        for k in range(s.head[0].n_bands - 1):
            size = s.bands[s.band_order[k]].size + s.bands[s.band_order[k + 1]].size
            if size < best_size:
                best, best_size = k, size
        _join(s, best)


@jit_lean
def _sink_lowest(s: State) -> None:
    """The lowest band becomes part of the far pages: they sleep below what was its level."""
    slot = s.band_order[s.head[0].n_bands - 1]
    s.head[0].far_level = s.bands[slot].level
    while s.bands[slot].size > 0:
        band_remove_top(s, slot)
    s.head[0].n_bands -= 1


@jit_lean
def band_remove_top(s: State, slot: int) -> int:
    """Take the newest member out of a band (it stays in the wheel)."""
    i = whole(s.blocks[s.bands[slot].head, s.bands[slot].top - 1])
    band_remove(s, i)
    return i


@jit_lean
def _join(s: State, k: int) -> None:
    """Bands k and k + 1 become one, below the upper level; pages of the lower one wake earlier than they need to."""
    upper, under = s.band_order[k], s.band_order[k + 1]
    level = s.bands[upper].level
    small, large = (upper, under) if s.bands[upper].size < s.bands[under].size else (under, upper)
    while s.bands[small].size > 0:
        tick = band_tick(s, s.blocks[s.bands[small].head, s.bands[small].top - 1])
        band_add(s, band_remove_top(s, small), large, tick)
    s.bands[large].level = level
    s.band_order[k] = large
    for j in range(k + 1, s.head[0].n_bands - 1):
        s.band_order[j] = s.band_order[j + 1]
    s.head[0].n_bands -= 1
