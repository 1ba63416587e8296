"""The compiled inner loops: policies against a trace, slot by slot."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit, jit_lean
from recrawl.engine.clocks.kernels import bin_of
from recrawl.engine.eligibility.cohort_kernels import promote
from recrawl.engine.outcomes.crawl_kernels import Learned, learn_crawls
from recrawl.engine.signals.pages import confirm_signal, hear_signal
from recrawl.schedule.exact.access import (
    DONE,
    FIRST_GROWTH,
    LAST_GROWTH,
    CohortLists,
    leave_cohort,
    pick,
    pick_promoting,
    record,
    reinsert_members,
    return_pages,
    signal,
)
from recrawl.schedule.exact.access_kernels import Header, fetched_at, group_of, is_known, opened, wanted, whole
from recrawl.schedule.rates.draw_kernels import give_back, pick_drawn
from recrawl.schedule.rates.kernels import Book, crawled, pick_due, wake
from recrawl.simulate.tally_kernels import Tally, count_crawl

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

# places in `cursor`: next slot, next signal, the page whose crawl is to be recorded (−1: none), whether the next signal
# was counted already, crawls learned from, the group whose members are to be reinserted (−1: none), the bin in which
# all clocks were published last, whether a crawl came after the end of that bin, whether the pending crawl is learned
SLOT, SIGNAL, PENDING, HEARD, LEARNED, REINSERT, PUBLISHED, ENDED, KNOWN = 0, 1, 2, 3, 4, 5, 6, 7, 8
START = (0, 0, -1, 0, 0, -1, 0, 0, 0)  # of a cursor
_NO_DATE = np.array([np.inf])
ANCHOR, PERIOD = 0, 1  # places in `grid`: slot k is at anchor + k·period


class SignalQueue(NamedTuple):
    """Signals in the order of their arrival, and what each weighs."""

    at: Array
    page: Ids
    changed_at: Array
    weight: Array


class Room(NamedTuple):
    """To work in: the picked page, the times of its copies, whether it changed."""

    out: Ids
    copies: Array
    changed: NDArray[np.bool_]


@jit
def pass_signals(header: Header, queue: SignalQueue, cursor: Ids, now: float) -> int:
    """Pass on the signals up to now; what must grow first, or DONE."""
    k = cursor[SIGNAL]
    while k < queue.at.size and queue.at[k] <= now:
        about, weight = queue.changed_at[k : k + 1], queue.weight[k : k + 1]
        status, _ = signal(header, queue.page[k : k + 1], queue.at[k], about, weight)
        if FIRST_GROWTH <= status <= LAST_GROWTH:
            return int(status)
        k += 1  # a signal for a page that is gone is dropped
        cursor[SIGNAL] = k
    return DONE


@jit
def run_scheduler(header: Header, t: Tally, queue: SignalQueue, grid: Array, last: int, cursor: Ids) -> int:
    """Slots up to `last`: pass signals, pick one page, crawl, record. What must grow before it can go on, or DONE."""
    s = opened(header)
    out = np.empty(1, np.int64)
    as_of = np.empty(1)
    fetched = np.ones(1, np.bool_)
    while cursor[SLOT] < last:
        now = grid[ANCHOR] + cursor[SLOT] * grid[PERIOD]
        if cursor[PENDING] < 0:
            status = pass_signals(header, queue, cursor, now)
            if status != DONE:
                return status
            status, taken = pick(header, now, whole(1), out)
            if status != DONE:
                return int(status)
            if taken == 0:
                cursor[SLOT] += 1
                continue
            count_crawl(t, out[0], now)
            cursor[PENDING] = out[0]
        out[0], as_of[0] = cursor[PENDING], now
        status, _ = record(header, out, now, as_of, fetched)
        if status != DONE:
            return int(status)
        cursor[PENDING] = -1
        cursor[SLOT] += 1
        if wanted(s) != DONE:
            return wanted(s)
    return DONE


@jit
def run_deadlines(book: Book, t: Tally, crawled_at: Array, grid: Array, slot: int, last: int, slack: float) -> int:
    """Slots up to `last`: the released crawl that is due first. How many crawls there were."""
    out = np.empty(1, np.int64)
    n = 0
    for k in range(slot, last):
        now = grid[ANCHOR] + k * grid[PERIOD]
        wake(book, now + slack)
        if pick_due(book, np.inf, out) == 0:
            continue
        count_crawl(t, out[0], now)
        crawled_at[out[0]] = now
        crawled(book, out, now + slack)
        n += 1
    return n


@jit
def run_draws(
    book: Book, tree: Array, t: Tally, crawled_at: Array, chance: Array, used: float, grid: Array, slot: int
) -> int:
    """One slot per chance, a share of them used: a page drawn in proportion to the rates. How many there were."""
    out = np.empty(1, np.int64)
    n = 0
    for k in range(chance.size):
        if chance[k] >= used:
            continue
        chance[k] /= used
        now = grid[ANCHOR] + (slot + k) * grid[PERIOD]
        if pick_drawn(book, tree, chance[k : k + 1], np.inf, out) == 0:
            continue
        count_crawl(t, out[0], now)
        crawled_at[out[0]] = now
        give_back(book, tree, out)
        n += 1
    return n


@jit_lean
def _pass_and_count_signals(
    header: Header, learned: Learned, lists: CohortLists, queue: SignalQueue, cursor: Ids, now: float
) -> int:
    """Pass on the signals up to now to a scheduler and to the beliefs behind it; what must grow first, or DONE.

    The weight of a signal is the number of its source. Signals for pages that are not there are dropped.
    """
    s = opened(header)
    while cursor[SIGNAL] < queue.at.size and queue.at[cursor[SIGNAL]] <= now:
        k = cursor[SIGNAL]
        i, when = queue.page[k], queue.at[k]
        if is_known(s, i) and queue.changed_at[k] <= fetched_at(s, i):
            source, about = int(queue.weight[k]), queue.changed_at[k]
            if cursor[HEARD] == 1 or confirm_signal(s, learned.belief, i, source, about, when):
                cursor[HEARD] = 1
                status, _ = return_pages(header, queue.page[k : k + 1])
                if FIRST_GROWTH <= status <= LAST_GROWTH:
                    return int(status)
        elif is_known(s, i):
            status = leave_cohort(s, lists, i)
            if status == DONE and cursor[HEARD] == 0:
                hear_signal(s, learned.belief, i, int(queue.weight[k]), queue.changed_at[k], when)
                cursor[HEARD] = 1
            if status == DONE:
                status, _ = signal(header, queue.page[k : k + 1], when, _NO_DATE, queue.weight[k : k + 1])
            if FIRST_GROWTH <= status <= LAST_GROWTH:
                return int(status)
        cursor[HEARD] = 0
        cursor[SIGNAL] = k + 1
    return DONE


@jit
def run_engine(
    header: Header,
    learned: Learned,
    lists: CohortLists,
    t: Tally,
    queue: SignalQueue,
    grid: Array,
    last: int,
    cursor: Ids,
) -> int:
    """Slots up to `last`: pass signals, pick one page, learn, place it again. What must grow first, or DONE.

    It stops after the crawl by which a bin of the clocks has ended (all clocks are to be published then), or by which a
    source of signals has gained or lost trust.
    """
    room = Room(np.empty(1, np.int64), np.empty((1, 2)), np.empty(1, np.bool_))
    while cursor[SLOT] < last and cursor[ENDED] == 0 and not _moved(learned):
        now = grid[ANCHOR] + cursor[SLOT] * grid[PERIOD]
        if cursor[PENDING] < 0:
            status = _pass_and_count_signals(header, learned, lists, queue, cursor, now)
            if status != DONE:
                return status
            status, taken = pick_promoting(header, lists, now, whole(1), room.out)
            if status != DONE:  # then nothing was taken
                return int(status)
            if taken == 0:
                cursor[SLOT] += 1
                continue
            cursor[PENDING], cursor[KNOWN] = room.out[0], 0
        status = _end_crawl(header, learned, lists, t, cursor, now, room)
        if status != DONE:
            return int(status)
    return DONE


@jit_lean
def _moved(learned: Learned) -> bool:
    """Whether a source of signals has gained or lost trust."""
    return bool(learned.belief.signals.n_moved[0] > 0)


@jit_lean
def _end_crawl(
    header: Header, learned: Learned, lists: CohortLists, t: Tally, cursor: Ids, now: float, room: Room
) -> int:
    """Crawl the picked page, learn from it and place it again. What must grow first, or DONE."""
    s, out, copies, changed = opened(header), room.out, room.copies, room.changed
    out[0] = cursor[PENDING]
    status = promote(header, lists, out)  # the last page of a cohort leaves it, as by the engine's `pick`
    if status != DONE:
        return int(status)
    if cursor[KNOWN] == 0:
        copies[0, 0], copies[0, 1], changed[0] = fetched_at(s, out[0]), now, count_crawl(t, out[0], now)
        learn_crawls(header, learned, out, copies, now, changed)
        cursor[LEARNED] += 1
        cursor[KNOWN] = 1
    if cursor[REINSERT] < 0:
        status, _ = return_pages(header, out)
        if status != DONE:
            return int(status)
        cursor[REINSERT] = group_of(s, out[0])
    if cursor[REINSERT] >= 0:
        status = reinsert_members(header, cursor[REINSERT], now)
        if status != DONE:
            return int(status)
        cursor[REINSERT] = -1
    cursor[PENDING] = -1
    cursor[SLOT] += 1
    cursor[ENDED] = bin_of(learned.clocks, now) > cursor[PUBLISHED]
    return wanted(s)
