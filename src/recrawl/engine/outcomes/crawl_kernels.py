"""The end of crawls, for the live engine and for the simulator's compiled loop.

Both learn from crawls (copies, beliefs, clocks), then place the pages (`return_pages`), then reinsert the pages that
follow the same clocks. The loop calls a kernel for each of these; the live engine calls `end_crawls` for all of them
where crawls ended as most do.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit_lean
from recrawl._compile.packed import Numbers, unpacker
from recrawl.engine.beliefs.arrays import FOLDER, HOST, Belief
from recrawl.engine.beliefs.kernels import fade_of, learn_outcome
from recrawl.engine.clocks.arrays import Clocks
from recrawl.engine.clocks.publish_kernels import learn_clock
from recrawl.engine.outcomes.calibration import Calibration
from recrawl.engine.signals.arrays import row_of
from recrawl.engine.signals.pages import learn_signals
from recrawl.schedule.exact.access import DONE, reinsert_members, renew_copy, return_pages
from recrawl.schedule.exact.access_kernels import (
    BINS,
    Header,
    State,
    drop_published,
    fetch_buckets,
    fetch_clock,
    fetch_due,
    fetch_page,
    fetched_at,
    group_of,
    is_leased,
    opened,
    prefetch,
    whole,
)

Array = NDArray[np.float64]
Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_AT_ONCE = 2048  # ids that are compared with each other
NOT_PLAIN = -1  # instead of a status
_LEARNED, _RETURNED, _REINSERTED = 0, 1, 2  # places in `done`: how many crawls are
START = (0, 0, 0)  # of it
_LINE = 8  # numbers of a cache line
_FEW = 4  # crawls after each of which bounds of near pages are widened; of more, those that moved are dropped at last
_SOON, _NEXT = 4, 2  # so many crawls ahead, a page and then its clock are loaded into the cache


class Learned(NamedTuple):
    """All that the engine has learned, as kernels take it."""

    belief: Belief
    calibration: Calibration
    clocks: Clocks


class Crawls(NamedTuple):
    """Crawls that ended: of which pages, which had changed, and the times of the copies before and of the new ones."""

    ids: Ids
    changed: Flags
    copies: Array  # (crawls, 2), or (0, 2)


def _example() -> Learned:
    from recrawl.engine.engine import Engine

    return Engine(1.0).learned


if TYPE_CHECKING:

    def learned_from(packed: Numbers) -> Learned:
        """What was packed."""
else:
    learned_from = unpacker(_example)


@inline
def learn_crawl(
    s: State, learned: Learned, i: int, both: tuple[float, float], now: float, outcome: tuple[bool, bool]
) -> None:
    """Set the copy of a page and learn from what a crawl found; `both` are the times of the copy before and of it.

    `outcome`: whether the page had changed, and whether the crawl is learned from alone (`learn_clock`).
    """
    changed, alone = outcome
    b = learned.belief
    renew_copy(s, i, both[1])
    time, doubt, missed, own = learn_outcome(s, b, learned.calibration, i, both, changed, b.signals.room)
    if b.signals.row_of.size > 0:
        learn_signals(s, b, i, both, now, (time, own, changed, fade_of(b, both[1] - both[0])))
    if group_of(s, i) >= 0:
        learn_clock(s, learned.clocks, i, both, now, (time, missed, doubt - missed, changed), alone)


@jit_lean
def learn_crawls(
    header: Header,
    learned: Learned,
    ids: Ids,
    copies: Array,
    now: float,
    changed: Flags,
) -> None:
    """Set the copies of pages and learn from what their crawls found; the caller places the pages again.

    `copies` has the times of the copies before and of the new ones.
    """
    s = opened(header)
    for k in range(ids.size):
        learn_crawl(s, learned, ids[k], (copies[k, 0], copies[k, 1]), now, (changed[k], True))


@jit_lean
def _are_plain(s: State, ids: Ids, now: float, no_copy_at: float) -> bool:
    """Whether ids are different pages that are leased and have copies, none newer than now."""
    if ids.size > MOST_AT_ONCE:
        return False
    for k in range(ids.size):
        if not is_leased(s, ids[k]) or not no_copy_at < fetched_at(s, ids[k]) <= now:
            return False
    for k in range(ids.size):
        same = 0
        for j in range(k):
            same += ids[j] == ids[k]
        if same > 0:
            return False
    return True


@inline
def _fetch_learned(b: Belief, i: int) -> None:
    """Load the rows of a page's belief into the cache."""
    prefetch(b.seen[i], 0)
    prefetch(b.share[i], 0)
    prefetch(b.gamma[i], 0)
    prefetch(b.table[i], 0)
    prefetch(b.evidence[i], 0)
    prefetch(b.watched, i)
    prefetch(b.n_crawls, i)
    prefetch(b.n_changes, i)
    prefetch(b.counted, i)
    if b.signals.row_of.size > 0:
        prefetch(b.signals.row_of, i)


@inline
def _fetch_tables(b: Belief, i: int) -> None:
    """Load the tables of a page's host and folder into the cache, and its row of signals."""
    for k in range(0, b.rates.size, _LINE):
        prefetch(b.tables[b.table[i, HOST]], k)
        prefetch(b.tables[b.table[i, FOLDER]], k)
    row = row_of(b.signals, i)
    if row >= 0:
        for k in range(b.signals.statistics.shape[1]):
            prefetch(b.signals.statistics[row, k], 0)
            prefetch(b.signals.statistics[row, k], _LINE)
            prefetch(b.signals.share[row, k], 0)
        prefetch(b.signals.components[row, 0], 0)
        prefetch(b.signals.ended[row], 0)


@inline
def _fetch_groups(s: State, c: Clocks, i: int) -> None:
    """Load the clock of a page and its narrow groups into the cache."""
    if group_of(s, i) >= 0:
        clock = c.clock[i]
        fetch_clock(s, clock)
        for level in range(2, c.group.shape[1]):
            for k in range(0, BINS, _LINE):
                prefetch(c.found[c.group[clock, level]], k)
                prefetch(c.expected[c.group[clock, level]], k)


@jit_lean
def end_crawls(header: Header, packed: Numbers, crawls: Crawls, now: float, no_copy_at: float, done: Ids) -> int:
    """Learn from crawls; where no times of copies are given, place the pages: what must grow first, or DONE.

    Without times, the copies are those of leased pages, which were compared with copies of now; NOT_PLAIN: some pages
    are others (`no_copy_at` stands for "no copy"), and nothing was done. Pages are not placed where a source of signals
    has gained or lost trust.
    """
    s, learned, ids = opened(header), learned_from(packed), crawls.ids
    plain = crawls.copies.shape[0] == 0
    if done[_LEARNED] == 0:
        if plain and not _are_plain(s, ids, now, no_copy_at):
            return NOT_PLAIN
        for k in range(min(ids.size, _SOON)):
            fetch_page(s, ids[k])
            _fetch_learned(learned.belief, ids[k])
        for k in range(min(ids.size, _NEXT)):
            _fetch_tables(learned.belief, ids[k])
            _fetch_groups(s, learned.clocks, ids[k])
        few = ids.size <= _FEW
        for k in range(ids.size):
            if k + _SOON < ids.size:
                fetch_page(s, ids[k + _SOON])
                _fetch_learned(learned.belief, ids[k + _SOON])
            if k + _NEXT < ids.size:
                _fetch_tables(learned.belief, ids[k + _NEXT])
                _fetch_groups(s, learned.clocks, ids[k + _NEXT])
            both = (fetched_at(s, ids[k]), now) if plain else (crawls.copies[k, 0], crawls.copies[k, 1])
            learn_crawl(s, learned, ids[k], both, now, (crawls.changed[k], few))
        done[_LEARNED] = ids.size
        if not few:
            drop_published(s)
    if not plain or learned.belief.signals.n_moved[0] > 0:
        return DONE
    return place_crawled(header, ids, now, done)


@inline
def _fetch_reinserted(s: State, ids: Ids, k: int) -> None:
    """Load the members that are to be reinserted after the next crawls into the cache, step by step."""
    if k + 3 < ids.size and group_of(s, ids[k + 3]) >= 0:
        fetch_buckets(s, group_of(s, ids[k + 3]))
    if k + 2 < ids.size and group_of(s, ids[k + 2]) >= 0:
        fetch_due(s, group_of(s, ids[k + 2]), False)
    if k + 1 < ids.size and group_of(s, ids[k + 1]) >= 0:
        fetch_due(s, group_of(s, ids[k + 1]), True)


@jit_lean
def place_crawled(header: Header, ids: Ids, now: float, done: Ids) -> int:
    """Place pages whose crawls ended, and reinsert those that follow their clocks: what must grow first, or DONE."""
    s = opened(header)
    status, more = return_pages(header, ids[done[_RETURNED] :])
    done[_RETURNED] += more
    while status == DONE and done[_REINSERTED] < ids.size:
        _fetch_reinserted(s, ids, whole(done[_REINSERTED]))
        g = group_of(s, ids[done[_REINSERTED]])
        if g >= 0:
            status = reinsert_members(header, g, now)
        if status == DONE:
            done[_REINSERTED] += 1
    return int(status)
