"""Groups of pages that change together: how many more changes than expected were found in a group, and when.

A group keeps a ring of bins over time. A crawl that found a change spreads it over the bins of its interval, by how
probable each was; the changes that the page's own rate explains are subtracted, found or not. The rest, per page that
was crawled, is the group's excess rate. Where few pages were crawled it is near the baseline. The accumulated excess of
a member is the integral of the excess rate since its copy was fetched: a change found on one page raises the values of
members that were not crawled since, and pages found unchanged lower them again.

No member is touched when the excess rate changes. Each sleeping member is in a bucket by its slack: how far its
accumulated excess may rise before it must be reinserted. A bucket of slack ≥ q is examined each time the group has
risen by q; the group rises at least as much as the accumulated excess of any member. Members that still have slack,
because their own excess rose less or fell, move to the bucket of what is left. A page is examined a few times between
two crawls, whatever the size of the group.
"""

import math

import numpy as np

from recrawl._jit import inline, jit_lean
from recrawl.schedule.exact.kernels.view import prefetch
from recrawl.schedule.exact.layout import BINS, BUCKETS, LEAST_SLACK, State


@inline
def excess_since(s: State, g: int, since: float, now: float) -> float:
    """Accumulated excess of a typical member of a group from one time to another, not before the last outcome."""
    updated, baseline = s.groups[g].updated_at, s.head[0].baseline
    if math.isinf(s.groups[g].newest) or since >= updated:
        return float(baseline * max(now - since, 0.0))
    span = s.head[0].span
    oldest = int(s.groups[g].newest) - BINS + 1
    b = int(np.floor(since / span))
    excess = baseline * max(now - updated, 0.0)
    if b < oldest:
        excess += s.groups[g].tail * (oldest * span - since)
        b, since = oldest, oldest * span
    k = b % BINS
    return float(excess + s.bins[g, k].after + s.bins[g, k].rate * (min((b + 1) * span, updated) - since))


@inline
def _forget_bin(s: State, g: int, k: int) -> None:
    s.bins[g, k].excess = s.bins[g, k].exposed = 0.0
    s.bins[g, k].rate = s.head[0].baseline


@jit_lean
def _roll(s: State, g: int, now: float) -> float:
    """Bring the ring to now; by how much the accumulated excess of old copies can have risen."""
    newest = int(np.floor(now / s.head[0].span))
    if math.isinf(s.groups[g].newest):
        for k in range(BINS):
            _forget_bin(s, g, k)
        s.groups[g].newest, s.groups[g].updated_at = newest, now
        s.groups[g].tail = s.groups[g].tail_target = s.head[0].baseline
        return 0.0
    before = int(s.groups[g].newest)
    rise = 0.0
    for b in range(max(before + 1, newest - BINS + 1), newest + 1):
        k = b % BINS  # the place of the oldest bin, which leaves
        rate = s.bins[g, k].rate
        rise += max(s.groups[g].tail - rate, 0.0) * s.head[0].span
        s.groups[g].tail_target += (rate - s.groups[g].tail_target) / BINS
        _forget_bin(s, g, k)
    if newest - before > BINS:
        rise += max(s.groups[g].tail - s.head[0].baseline, 0.0) * (newest - before - BINS) * s.head[0].span
    s.groups[g].newest = max(newest, before)
    s.groups[g].tail = min(s.groups[g].tail, s.groups[g].tail_target)  # it may rise when all pages are placed again
    return rise


@jit_lean
def compute_rates(s: State, g: int, now: float) -> float:
    """Compute the excess rates again, as of now; by how much a copy's accumulated excess can have risen at most."""
    span, updated = s.head[0].span, s.groups[g].updated_at
    newest = int(s.groups[g].newest)
    rise, after = 0.0, 0.0
    for b in range(newest, newest - BINS, -1):
        k = b % BINS
        before = s.bins[g, k].rate
        known = max(s.bins[g, k].excess, 0.0) / span
        rate = (s.head[0].shrink * s.head[0].baseline + known) / (s.head[0].shrink + s.bins[g, k].exposed)
        s.bins[g, k].rate = rate
        s.bins[g, k].after = after
        inside = max(min(now - b * span, span), 0.0)
        covered = max(min(updated - b * span, span), 0.0)
        excess = s.bins[g, k].rate * inside
        late = (s.bins[g, k].rate - s.head[0].baseline) * (inside - covered)  # copies fetched since the last outcome
        rise += max(excess - before * covered - s.head[0].baseline * (inside - covered), late, 0.0)
        after += excess
    s.groups[g].updated_at = now
    return rise


@jit_lean
def add_outcome(s: State, g: int, begin: float, end: float, own: float, weight: float, changed: bool) -> None:
    """Add a crawl's outcome over an interval; `own` is the member's own rate in it."""
    end = max(end, s.groups[g].updated_at) if not math.isinf(s.groups[g].newest) else end
    rise = _roll(s, g, end)
    span = s.head[0].span
    newest = int(s.groups[g].newest)
    oldest = newest - BINS + 1
    first = max(int(np.floor(begin / span)), oldest)
    total = max(oldest * span - begin, 0.0) * (own + weight * s.groups[g].tail)
    for b in range(first, newest + 1):
        inside = min(end, (b + 1) * span) - max(begin, b * span)
        total += max(inside, 0.0) * (own + weight * s.bins[g, b % BINS].rate)
    each = 0.0
    if changed and total > 0.0:
        each = 1.0 / -math.expm1(-total)
    for b in range(first, newest + 1):
        k = b % BINS
        inside = max(min(end, (b + 1) * span) - max(begin, b * span), 0.0)
        s.bins[g, k].excess += inside * ((own + weight * s.bins[g, k].rate) * each - own)
        s.bins[g, k].exposed += inside / span
    s.groups[g].risen += rise + compute_rates(s, g, end)


@jit_lean
def compute_all_rates(s: State, now: float) -> None:
    """Compute the excess rates of all groups again after the baseline has changed; all pages must be placed again."""
    for g in range(s.groups.shape[0]):
        if not math.isinf(s.groups[g].newest):
            s.groups[g].tail = s.groups[g].tail_target
            compute_rates(s, g, max(now, s.groups[g].updated_at))


# --- which members must be reinserted after a rise -------------------------------------------------------------------


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
    for i in range(s.member.size):
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
    while k + 1 < BUCKETS and slack >= LEAST_SLACK * (2 << k):
        k += 1
    _push(s, i, k)


@inline
def _beyond_baseline(s: State, i: int, now: float) -> float:
    """A page's accumulated excess minus that of the baseline."""
    last = s.rec[i].last
    return float(excess_since(s, s.member[i].group, last, now) - s.head[0].baseline * max(now - last, 0.0))


@inline
def link(s: State, i: int, slack: float, now: float) -> None:
    """Put a page that falls asleep into the bucket of its slack; into none without a group or with infinite slack."""
    unlink(s, i)
    if s.member[i].group < 0 or math.isinf(slack):
        return
    s.member[i].key = s.groups[s.member[i].group].risen + slack
    s.member[i].limit = _beyond_baseline(s, i, now) + slack
    _put(s, i, slack)


@jit_lean
def take_due(s: State, g: int, before: float, after: float, now: float) -> None:
    """Collect the members whose slack is used up when a group has risen from one level to another."""
    for k in range(BUCKETS):
        width = LEAST_SLACK * (1 << k)
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
                left = max(left, (s.member[i].limit - _beyond_baseline(s, i, now)) * (1.0 - 1e-6))
                s.member[i].key = after + left
            if left >= LEAST_SLACK:
                _put(s, i, left)
            else:
                _push(s, i, BUCKETS)
            i = following
