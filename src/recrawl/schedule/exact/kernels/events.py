"""What happens to pages from outside: record, signal, update, remove, pause."""

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit, jit_lean
from recrawl.schedule.exact.kernels.leases import end_lease
from recrawl.schedule.exact.kernels.places import layers as core
from recrawl.schedule.exact.kernels.places import levels as level
from recrawl.schedule.exact.kernels.places.layers import rest, room_for
from recrawl.schedule.exact.kernels.places.near import drop_bound
from recrawl.schedule.exact.kernels.places.near_set import near_remove
from recrawl.schedule.exact.kernels.places.publish import publish_clock
from recrawl.schedule.exact.kernels.places.wheel import LATER, SOONER, fetch_ahead, wake_up
from recrawl.schedule.exact.kernels.state.blocks import unpark
from recrawl.schedule.exact.kernels.state.mixtures import drop_components
from recrawl.schedule.exact.kernels.state.pages import forget_bounds, host_of, set_state, state_of
from recrawl.schedule.exact.kernels.state.signal_log import keep_signals_after, log_fits, remember, seen_weight
from recrawl.schedule.exact.kernels.state.view import Header, opened, prefetch
from recrawl.schedule.exact.kernels.value.buckets import unlink
from recrawl.schedule.exact.kernels.value.values import as_believed
from recrawl.schedule.exact.layout import (
    ASLEEP,
    DONE,
    FIT_LOG,
    GONE,
    LEASED,
    NEAR,
    PARKED,
    PAUSED,
    REMOVED_ID,
    UNKNOWN_ID,
    State,
)

Ids = NDArray[np.int64]
Array = NDArray[np.float64]


@jit_lean
def take_out(s: State, i: int) -> None:
    """Remove a page from whatever container it is in."""
    state = state_of(s, i)
    if state == ASLEEP:
        wake_up(s, i)
    elif state == NEAR:
        near_remove(s, i)
    elif state == LEASED:
        end_lease(s, i)
    elif state == PARKED:
        unpark(s, i, host_of(s, i))


@jit_lean
def fill_sources(header: Header, ids: Ids, recall: Array, false_rate: Array) -> None:
    """Write what the policy believes of the signals of pages; the caller places them again."""
    s = opened(header)
    for k in range(ids.size):
        missed, signalled, weight = as_believed(s.head[0].policy, s.rec[ids[k]].change_rate, recall[k], false_rate[k])
        source = s.source[ids[k]]
        source.missed, source.signalled, source.weight = missed, signalled, weight


@jit_lean
def valid(header: Header, ids: Ids) -> tuple[int, int]:
    """(DONE, 0), or what is wrong with the first bad id, and the id."""
    return _valid(opened(header), ids)


@jit_lean
def _valid(s: State, ids: Ids) -> tuple[int, int]:
    for k in range(ids.size):
        if ids[k] < 0 or ids[k] >= s.head[0].n_pages:
            return UNKNOWN_ID, ids[k]
        prefetch(s.rec, ids[k])
        if state_of(s, ids[k]) == GONE:
            return REMOVED_ID, ids[k]
    return DONE, 0


@jit_lean
def renew_copy(s: State, i: int, when: float) -> bool:
    """Set when the copy of a page was fetched, and keep the signals after that; False: a newer copy is known."""
    if when < s.rec[i].last:
        s.head[0].late += 1
        return False
    s.rec[i].last = when
    keep_signals_after(s, i, when)
    return True


@jit_lean
def record(header: Header, ids: Ids, now: float, as_of: Array, fetched: NDArray[np.bool_]) -> tuple[int, int]:
    """(status, how many were done): the copies are as of then; where nothing was fetched the page only comes back."""
    s = opened(header)
    problem, bad = _valid(s, ids)
    if problem != DONE:
        return problem, bad
    now = max(now, s.head[0].now)
    for k in range(ids.size):
        i = ids[k]
        status = room_for(s, 1)
        if status != DONE:
            return status, k
        if state_of(s, i) == GONE:
            continue
        when = min(as_of[k] if as_of.size > 1 else as_of[0], now)
        if (fetched[k] if fetched.size > 1 else fetched[0]) and not renew_copy(s, i, when):
            continue
        if state_of(s, i) == PAUSED:
            continue
        take_out(s, i)
        rest(s, i, now)
    return DONE, ids.size


@jit_lean
def return_pages(header: Header, ids: Ids) -> tuple[int, int]:
    """(status, how many were done): place pages whose crawls have ended, except paused and parked ones."""
    s = opened(header)
    for k in range(ids.size):
        status = room_for(s, 1)
        if status != DONE:
            return status, k
        if state_of(s, ids[k]) in (GONE, PAUSED, PARKED):
            continue
        take_out(s, ids[k])
        forget_bounds(s, ids[k])
        rest(s, ids[k], s.head[0].now)
    return DONE, ids.size


@jit_lean
def signal(header: Header, ids: Ids, now: float, changed_at: Array, weights: Array) -> tuple[int, int]:
    """(status, how many were done). A signal about a change before the copy, or within the window, is not counted.

    What a signal does to components is not computed here: the caller has written them before.
    """
    s = opened(header)
    problem, bad = _valid(s, ids)
    if problem != DONE:
        return problem, bad
    now = max(now, s.head[0].now)
    if not log_fits(s, now, ids.size):
        return FIT_LOG, 0
    for k in range(ids.size):
        i = ids[k]
        status = room_for(s, 1)
        if status != DONE:
            return status, k
        p = s.rec[i]
        about = changed_at[k] if changed_at.size > 1 else changed_at[0]
        if state_of(s, i) == GONE or about <= p.last or now - p.last < s.head[0].window:
            continue
        weight = seen_weight(s, weights[k] if weights.size > 1 else weights[0], now - p.last)
        p.signals = min(p.signals + 1, 65535)
        if s.head[0].exponent_row >= 0:
            s.extra[s.head[0].exponent_row, i] += weight
        remember(s, i, now, weight)
        if state_of(s, i) == ASLEEP:
            wake_up(s, i)
            rest(s, i, now)
        elif state_of(s, i) == NEAR:
            drop_bound(s, i)
    return DONE, ids.size


@jit_lean
def put_back(header: Header, ids: Ids, now: float) -> tuple[int, int]:
    """(status, how many were done): place pages again after a change of their parameters or a pause."""
    s = opened(header)
    now = max(now, s.head[0].now)
    for k in range(ids.size):
        status = room_for(s, 1)
        if status != DONE:
            return status, k
        i = ids[k]
        if k + LATER < ids.size:
            fetch_ahead(s, ids[k + LATER], ids[k + SOONER])
        state = state_of(s, i)
        if state in (GONE, LEASED):
            continue
        if state != PAUSED:
            take_out(s, i)
        forget_bounds(s, i)
        rest(s, i, now)
    return DONE, ids.size


@jit
def reset_layers(header: Header, now: float) -> None:
    """Prepare for placing all sleeping and near pages again, which must follow at once."""
    s = opened(header)
    level.reset_layers(s, max(now, s.head[0].now))


@jit_lean
def withdraw(header: Header, ids: Ids, state: int) -> None:
    """Take pages out for good (GONE) or for a time (PAUSED)."""
    s = opened(header)
    for k in range(ids.size):
        i = ids[k]
        before = state_of(s, i)
        if before == GONE:
            continue
        take_out(s, i)
        set_state(s, i, state)
        if state == GONE:
            if s.member.size > 0:
                unlink(s, i)
                s.member[i].group = -1
            drop_components(s, i)
            s.head[0].n_alive -= 1
            keep_signals_after(s, i, np.inf)


@jit_lean
def join(header: Header, ids: Ids, groups: NDArray[np.int32]) -> None:
    """Let pages follow the clocks of groups (−1: real time); the caller places them again."""
    s = opened(header)
    for k in range(ids.size):
        unlink(s, ids[k])
        s.member[ids[k]].group = groups[k]
        forget_bounds(s, ids[k])


@jit_lean
def publish(header: Header, g: int, first: int, paces: Array, ahead: float, now: float) -> None:
    """Write the clock of a group; `reinsert` must follow."""
    publish_clock(opened(header), g, first, paces, ahead, now)


@jit_lean
def reinsert(header: Header, g: int, now: float) -> int:
    """Reinsert the members whose values a group's clock can have raised too far; what must grow first, or DONE."""
    s = opened(header)
    return core.reinsert_group(s, g, max(now, s.head[0].now))
