"""What a crawl's outcome adds to clocks, and how clocks become the scheduler's."""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit_lean
from recrawl.engine.clocks.arrays import LENGTHS, Clocks
from recrawl.engine.clocks.kernels import add_to_groups, bin_of, fill_paces, weigh_terms
from recrawl.schedule.exact.access import DONE, reinsert_members
from recrawl.schedule.exact.access_kernels import (
    BINS,
    Header,
    State,
    drop_published,
    opened,
    publish_clock,
    publish_of_many,
    whole,
)

Array = NDArray[np.float64]

_BEFORE = 12  # bins before an interval from which its paces are computed: what lies before is forgotten


@jit_lean
def publish_one(s: State, c: Clocks, clock: int, now: float) -> None:
    """Publish all bins of one of many clocks; the caller drops bounds, and reinserts the pages that follow it."""
    newest, room = bin_of(c, now), c.room
    ahead = fill_paces(c, clock, newest, BINS, room[1:LENGTHS], room[0])
    publish_of_many(s, clock, newest - BINS + 1, room[0], ahead, now)


@jit_lean
def learn_clock(
    s: State,
    c: Clocks,
    i: int,
    copies: tuple[float, float],
    now: float,
    crawl: tuple[float, float, float, bool],
    alone: bool,
) -> None:
    """Add a crawl to the groups of its page, and publish its clock from the bin on in which the interval begins.

    `crawl`: clock time of the interval, the page's own expected changes in it, those of signals, and whether it found
    a change. Earlier bins are computed as well, because activity is remembered; they are published with all clocks.
    Unless it is `alone`, the caller drops the bounds of near pages after the last of many crawls.
    """
    time, own, heard, changed = crawl
    if time <= 0.0 or own <= 0.0:
        return
    begin, end = copies
    clock, newest, room = whole(c.clock[i]), bin_of(c, now), c.room
    concerned = min(newest - bin_of(c, begin) + 1, BINS)
    bins = min(concerned + _BEFORE, BINS)
    found = own / -math.expm1(-own - heard) if changed else 0.0
    fill_paces(c, clock, newest, bins, room[1:LENGTHS], room[0])
    weigh_terms(c, newest, bins, room[1:LENGTHS], room[0], (begin, end, own / time, found))
    add_to_groups(c, clock, newest, bins, room[0], (begin, end, own / time, found / time))
    ahead = fill_paces(c, clock, newest, bins, room[1:LENGTHS], room[0])
    paces = room[0, bins - concerned : bins]
    if alone:
        publish_clock(s, clock, newest - concerned + 1, paces, ahead, now)
    else:
        publish_of_many(s, clock, newest - concerned + 1, paces, ahead, now)


@jit_lean
def publish_all(header: Header, c: Clocks, n: int, now: float) -> None:
    """Publish the first n clocks; the caller reinserts the pages that follow them."""
    s = opened(header)
    for clock in range(n):
        publish_one(s, c, clock, now)
    drop_published(s)


@jit_lean
def reinsert_all(header: Header, n: int, now: float) -> int:
    """Reinsert the pages whose values the first n clocks can have raised too far; what must grow first, or DONE."""
    for clock in range(n):
        status = reinsert_members(header, clock, now)
        if status != DONE:
            return int(status)
    return DONE
