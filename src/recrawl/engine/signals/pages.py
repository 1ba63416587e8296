"""Signals of pages in the engine: what one does when it comes, what an outcome does, and how pages are valued by them.

The live engine and the simulator's compiled loop call the same kernels.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit_lean
from recrawl.engine.beliefs.arrays import Belief
from recrawl.engine.beliefs.kernels import apply_belief
from recrawl.engine.beliefs.posterior_kernels import believe, count_in_tables
from recrawl.engine.signals.arrays import (
    BEGAN,
    EXPECTED,
    FOUND,
    MOST_MOVED,
    MOST_SIGNALS,
    NO_ROW,
    TOOK,
    WEIGHT,
    SignalArrays,
    any_open,
    reserved,
    row_of,
)
from recrawl.engine.signals.components import chance_beside, fill_qualities, open_component, update_components
from recrawl.engine.signals.delays import learn_delays
from recrawl.engine.signals.gate import HAS_SHUT, NOTHING, score, score_late, shut
from recrawl.engine.signals.learning import begin_row, confirm, hear, learn_row, set_age, settle
from recrawl.engine.signals.tables import add_change_rates, update_host
from recrawl.schedule.exact.access_kernels import (
    Header,
    State,
    clock_between,
    fetched_at,
    opened,
    signals_after,
    write_components,
)

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_SLIGHT = 0.01  # a component of this weight is left out of the value


@inline
def fill_totals(b: Belief, i: int, out: Array) -> None:
    """What was observed of a page with and without signals: its observations, then given evidence."""
    for k in range(3):
        out[k] = b.seen[i, k]
    for k in range(2):
        out[3 + k] = b.evidence[i, k]


@jit_lean
def write_page(s: State, b: Belief, i: int, row: int) -> None:
    """Let the scheduler value a page by its components, or by its own belief where no open source has signalled it.

    The caller places the page again.
    """
    a, room = b.signals, b.signals.written
    n, total = 0, 0.0
    if any_open(a, row):
        for m in range(a.components.shape[1]):
            total += a.components[row, m, WEIGHT] if a.components[row, m, WEIGHT] > _SLIGHT else 0.0
        for m in range(a.components.shape[1]):
            if a.components[row, m, WEIGHT] > _SLIGHT:
                mean, shape, rate, kappa, heard, repeated = open_component(a, row, m)
                room[n, 0], room[n, 1], room[n, 2] = a.components[row, m, WEIGHT] / total, mean, shape
                room[n, 3], room[n, 4], room[n, 5], room[n, 6] = rate, kappa, heard, repeated
                n += 1
    write_components(s, i, room[:n])


@jit_lean
def hear_signal(s: State, b: Belief, i: int, k: int, about: float, now: float) -> None:
    """Count a signal of source k for a page with a row, or a reserved one; the scheduler's `signal` must follow.

    Its change is later than the copy if it says when (`about` is not infinity); else that depends on its delay.
    """
    a, totals = b.signals, b.signals.totals
    row = row_of(a, i)
    if row == NO_ROW:
        return
    fill_totals(b, i, totals)
    if row < 0:
        row = reserved(row)
        a.row_of[i] = row
        begin_row(a, row, a.host[row], totals)
    a.heard_at[row] = min(a.heard_at[row], now)
    copied_at = fetched_at(s, i)
    age = max(now - copied_at, 0.0) if math.isinf(about) else math.inf
    hear(a, row, k, totals, (max(clock_between(s, i, copied_at, now), 0.0), age), a.out)
    if a.heard[row, k] <= MOST_SIGNALS and any_open(a, row):
        write_page(s, b, i, row)


@jit_lean
def hear_signals(header: Header, b: Belief, ids: Ids, k: int, about: Array, now: float) -> None:
    """Count signals of source k; the scheduler's `signal` must follow."""
    s = opened(header)
    for j in range(ids.size):
        hear_signal(s, b, ids[j], k, about[j], now)


@jit_lean
def _keep_later(s: State, b: Belief, i: int, row: int, begin: float) -> None:
    """Of the signals so far, only those stand that came after the new copy, which was fetched at `begin`."""
    a = b.signals
    a.heard_at[row] = math.inf
    for k in range(a.rate.shape[1]):
        a.heard[row, k] = signals_after(s, i, k)
        a.first[row, k] = a.last[row, k] = 0.0
        if a.heard[row, k] > 0.0:
            set_age(a, row, k, 0.0)
            a.heard_at[row] = begin


@jit_lean
def settle_page(b: Belief, row: int, k: int) -> None:
    """Source k has lost its trust on a page: what is known of its change rate becomes evidence, the rest is dropped.

    The intervals between its crawls were chosen by signals, and would say too much about the rate.
    """
    i = b.signals.page[row]
    changes, time = settle(b.signals, row, k)
    if changes >= 0.0 and row_of(b.signals, i) == row:
        b.seen[i] = 0.0
        b.evidence[i, 0], b.evidence[i, 1] = changes, time
        believe(b, i, b.signals.room[0], b.signals.room[1], b.n_crawls[i] > 0)


@jit_lean
def _gate_moved(b: Belief, row: int, k: int, event: int, host: int, now: float) -> None:
    """A gate has opened or shut, of a host or with −1 of source k itself: queue it for `Signals.take_moved`.

    That of a host with one page concerns no other page, and is dealt with here.
    """
    a = b.signals
    if event == NOTHING:
        return
    if event == HAS_SHUT:
        shut(a, host, k, now)
    if host >= 0 and a.host_pages[host] == 1:
        if event == HAS_SHUT:
            settle_page(b, row, k)
        return
    n = a.n_moved[0]
    if n < MOST_MOVED:
        a.moved[n, 0], a.moved[n, 1], a.moved[n, 2] = host, k, event == HAS_SHUT
    a.n_moved[0] += 1


@jit_lean
def confirm_signal(s: State, b: Belief, i: int, k: int, about: float, now: float) -> bool:
    """A signal of source k about a change at `about`, before the page's copy; whether the page is to be placed again.

    It counts for the interval that the crawl of that copy ended, if no signal had come in it: a change that this crawl
    found was signalled, only later, and is not one that the source missed.
    """
    a, row, copied_at = b.signals, row_of(b.signals, i), fetched_at(s, i)
    if row < 0 or a.ended[row, BEGAN] >= about:
        return False
    share = (about - a.ended[row, BEGAN]) / (copied_at - a.ended[row, BEGAN])
    if a.rate[row, k] > 0.0:
        of_host, of_source = score_late(a, row, k)
        _gate_moved(b, row, k, of_host, a.host[row], now)
        _gate_moved(b, row, k, of_source, -1, now)
    if a.ended[row, BEGAN] < about:  # else a gate has shut, and what the source earned is forgotten
        confirm(a, row, k, share)
    fill_totals(b, i, a.totals)
    update_components(a, row, a.totals, max(clock_between(s, i, copied_at, now), 0.0), a.out)
    update_host(a, row, a.out)
    write_page(s, b, i, row)
    return True


@jit_lean
def confirm_signals(header: Header, b: Belief, ids: Ids, k: int, about: Array, now: float) -> None:
    """Signals of source k about changes before the copies; the caller places the pages again."""
    s = opened(header)
    for j in range(ids.size):
        confirm_signal(s, b, ids[j], k, about[j], now)


@inline
def _note_ended(a: SignalArrays, row: int, began: float, outcome: tuple[float, float, bool, float]) -> None:
    """Keep an interval in which no source had signalled: a signal of it may still come."""
    silent = True
    for k in range(a.rate.shape[1]):
        silent = silent and a.heard[row, k] == 0.0
    time, own, changed, _ = outcome
    a.ended[row, BEGAN] = began if silent and time > 0.0 else math.inf
    a.ended[row, TOOK], a.ended[row, EXPECTED], a.ended[row, FOUND] = time, own, 1.0 if changed else 0.0


@jit_lean
def learn_signals(
    s: State, b: Belief, i: int, copies: tuple[float, float], now: float, outcome: tuple[float, float, bool, float]
) -> None:
    """Score the gates of a page's sources by a crawl's outcome, and learn from it; the caller places the page again.

    `outcome`: clock time between the copies, the exponent that the belief without signals predicted, whether a change
    was found, and what older observations count after it. The page's observations have the outcome already.
    """
    a, row = b.signals, row_of(b.signals, i)
    if row < 0:
        return
    time, own, changed, fade = outcome
    for k in range(a.rate.shape[1]):
        if a.rate[row, k] > 0.0 and time > 0.0:
            of_host, of_source = score(a, row, k, copies[0], time, own, changed)
            _gate_moved(b, row, k, of_host, a.host[row], now)
            _gate_moved(b, row, k, of_source, -1, now)
    for k in range(a.rate.shape[1]):  # those after the new copy are not judged by this outcome
        a.heard[row, k] = max(a.heard[row, k] - signals_after(s, i, k), 0.0)
    for k in range(a.rate.shape[1]):
        if a.rate[row, k] > 0.0 and a.heard[row, k] > 0.0 and time > 0.0:
            chance = chance_beside(a, row, k, time)
            learn_delays(a.delays, a.delay[k], a.host_delay[a.host[row], k], a.age[row, k], chance, changed)
    _note_ended(a, row, copies[0], outcome)
    totals = a.totals
    fill_totals(b, i, totals)
    if time > 0.0:
        learn_row(a, row, totals, (time, changed, fade), a.out)
    _keep_later(s, b, i, row, copies[1])
    if any_open(a, row):
        a.room[1] = 0.0
        add_change_rates(a, row, a.out, a.room[1])
        count_in_tables(b, i, a.room[1])
    elif time > 0.0:
        apply_belief(s, b, i)  # a gate may have shut
    write_page(s, b, i, row)


@jit_lean
def renew_signals(header: Header, b: Belief, ids: Ids, copies: Array) -> None:
    """New copies without an outcome: the signals before them no longer count. The caller places the pages again."""
    s = opened(header)
    for j in range(ids.size):
        row = row_of(b.signals, ids[j])
        if row >= 0:
            b.signals.ended[row, BEGAN] = math.inf
            _keep_later(s, b, ids[j], row, copies[j])
            write_page(s, b, ids[j], row)


@jit_lean
def refresh_pages(header: Header, b: Belief, rows: Ids, now: float) -> None:
    """Compute posteriors and components of rows again, after the tables or gates have changed; the caller places."""
    s, a, totals = opened(header), b.signals, b.signals.totals
    for row in rows:
        i = a.page[row]
        if row_of(a, i) != row:
            continue
        fill_totals(b, i, totals)
        update_components(a, row, totals, max(clock_between(s, i, fetched_at(s, i), now), 0.0), a.out)
        update_host(a, row, a.out)
        write_page(s, b, i, row)


@jit_lean
def settle_pages(b: Belief, rows: Ids, k: int) -> None:
    """Source k has lost its trust on pages (`settle_page`)."""
    for row in rows:
        settle_page(b, row, k)


@jit_lean
def fill_columns(b: Belief, ids: Ids, change_rate: Array, recall: Array, false_rate: Array, evidence: Array) -> None:
    """The columns of `Pages` that follow from what is believed; rates of pages with signals count as known."""
    for j in range(ids.size):
        i = ids[j]
        row = row_of(b.signals, i)
        if row >= 0 and any_open(b.signals, row):
            change_rate[j] = fill_qualities(b.signals, row, recall[j], false_rate[j])
            evidence[j] = math.inf
        else:
            change_rate[j], evidence[j] = b.gamma[i, 0] / b.gamma[i, 1], b.gamma[i, 0]
