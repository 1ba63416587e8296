"""Which members of a group must be placed again after its clock was published.

No member is touched by a publication. Each sleeping member is in a bucket by its slack: how far its clock time may rise
beyond what was expected when it fell asleep. A bucket of slack ≥ q is examined each time the group has risen by q; the
group rises at least as much as the clock time of any member. Members that still have slack, because their own clock
time rose less or fell, move to the bucket of what is left. A page is examined a few times between two crawls, whatever
the size of the group.
"""

import math

import numpy as np

from recrawl._compile.jit import inline, jit_lean
from recrawl.schedule.exact.kernels.state.view import prefetch
from recrawl.schedule.exact.kernels.value.clocks import clock_between
from recrawl.schedule.exact.layout import BUCKETS, LEAST_SLACK, State


@inline
def least_slack(s: State) -> float:
    """The slack of the first bucket."""
    return float(LEAST_SLACK * s.head[0].span)


@inline
def unlink(s: State, i: int) -> None:
    """Take a page out of its bucket, if it is in one."""
    p = s.member[i]
    if p.bucket < 0:
        return
    if p.prev >= 0:
        s.member[p.prev].next = p.next
    else:
        s.buckets[p.group, p.bucket] = p.next
    if p.next >= 0:
        s.member[p.next].prev = p.prev
    p.bucket = p.next = p.prev = -1


@jit_lean
def forget_buckets(s: State) -> None:
    """Take all pages out of their buckets."""
    for i in range(min(s.member.size, s.head[0].n_pages)):
        s.member[i].bucket = s.member[i].next = s.member[i].prev = -1
    for g in range(s.groups.shape[0]):
        s.buckets[g, :] = -1
        s.groups[g].reinserted = s.groups[g].risen


@inline
def _push(s: State, i: int, bucket: int) -> None:
    p = s.member[i]
    head = s.buckets[p.group, bucket]
    p.bucket, p.prev, p.next = bucket, -1, head
    if head >= 0:
        s.member[head].prev = i
    s.buckets[p.group, bucket] = i


@inline
def _put(s: State, i: int, slack: float) -> None:
    k = 0
    while k + 1 < BUCKETS and slack >= least_slack(s) * (2 << k):
        k += 1
    _push(s, i, k)


@inline
def _slack(s: State, i: int) -> float:
    """How far the clock time of a sleeping page may rise."""
    p = s.member[i]
    return float(p.limit - clock_between(s, p.group, s.rec[i].last, p.wake_at))


@jit_lean
def link(s: State, i: int, wake: float, limit: float) -> None:
    """Keep until when a page sleeps, and put it into the bucket of its slack; into none where no clock can wake it."""
    unlink(s, i)
    s.member[i].wake_at, s.member[i].limit = wake, limit
    if s.member[i].group >= 0 and limit < math.inf:
        _link(s, i, _slack(s, i))


@inline
def _link(s: State, i: int, slack: float) -> None:
    s.member[i].key = s.groups[s.member[i].group].risen + slack
    _put(s, i, slack)


@jit_lean
def relink(s: State, i: int, wake: float, slack: float) -> None:
    """A page sleeps on up to the same limit; until then it has at least that slack."""
    unlink(s, i)
    s.member[i].wake_at = wake
    _link(s, i, slack)


@inline
def fetch_buckets(s: State, g: int) -> None:
    """Load what says which members of a group are due into the cache."""
    prefetch(s.groups, g)
    prefetch(s.buckets[g], 0)
    prefetch(s.buckets[g], BUCKETS // 2)
    prefetch(s.buckets[g], BUCKETS)


@inline
def _fetch_member(s: State, i: int) -> None:
    if i >= 0:
        prefetch(s.member, i)
        prefetch(s.rec, i)


@inline
def fetch_due(s: State, g: int, following: bool) -> None:
    """Load the first members, or those after them, of the buckets that are due into the cache."""
    rise, width = s.groups[g].risen - s.groups[g].reinserted, least_slack(s)
    for k in range(BUCKETS):
        if width > rise:
            break
        i = s.buckets[g, k]
        if not following:
            _fetch_member(s, i)
        elif i >= 0:
            _fetch_member(s, s.member[i].next)
        width *= 2.0


@jit_lean
def take_due(s: State, g: int, before: float, after: float) -> None:
    """Collect the members whose slack is used up when a group has risen from one level to another."""
    for k in range(BUCKETS):
        width = least_slack(s) * (1 << k)
        if np.floor(after / width) <= np.floor(before / width):
            return  # the wider ones are not due either
        i = s.buckets[g, k]
        s.buckets[g, k] = -1
        while i >= 0:
            following = s.member[i].next
            if following >= 0:
                prefetch(s.member, following)
                prefetch(s.rec, following)
            left = s.member[i].key - after
            if left < 0.5 * width:
                left = max(left, _slack(s, i))
                s.member[i].key = after + left
            if left >= least_slack(s):
                _put(s, i, left)
            else:
                _push(s, i, BUCKETS)
            i = following
