"""Groups of pages that change together: how many more changes than expected were found in a group, and when.

A group keeps a ring of bins over time. A crawl that found a change spreads it over the bins of its interval, by how
probable each was; what the page's own rate led to expect is taken off, found or not. What is left over, per page that
was looked at, is the group's pace: changes of a member that its own rate does not explain. Where few looked, the pace
is near that of calm times. A member's mass is the pace added up since its copy was fetched, so a change found on one
page raises what is believed of those not looked at since, and pages found unchanged lower it again.

No member is touched when the pace changes. Each sleeping one is in a bucket by its slack: how far the mass may rise
before it must be placed anew. A bucket of slack ≥ q is looked through each time the group has risen by q, which is
never less than the mass of any member has; those whose own mass, which may have fallen too, leaves slack go to the
bucket of what is left. A page is looked at a few times between two crawls, however large the group.
"""

import math

import numpy as np

from recrawl._jit import inline, jit_lean
from recrawl.schedule.exact.kernels.view import prefetch
from recrawl.schedule.exact.layout import (
    AFTER,
    BINS,
    BUCKETS,
    CALM,
    EXCESS,
    EXPOSED,
    G_AT,
    G_DRAINED,
    G_NEWEST,
    G_RISEN,
    G_STIRRED,
    G_TAIL,
    LEAST_SLACK,
    PACE,
    SHRINK,
    SPAN,
    State,
)


@inline
def mass_since(s: State, g: int, since: float, now: float) -> float:
    """Excess changes of a typical member of a group from one time to another that is not before its last news."""
    told, calm = s.groups[g, G_AT], s.flts[CALM]
    if math.isinf(s.groups[g, G_NEWEST]) or since >= told:
        return float(calm * max(now - since, 0.0))
    span = s.flts[SPAN]
    oldest = int(s.groups[g, G_NEWEST]) - BINS + 1
    b = int(np.floor(since / span))
    mass = calm * max(now - told, 0.0)
    if b < oldest:
        mass += s.groups[g, G_TAIL] * (oldest * span - since)
        b, since = oldest, oldest * span
    k = b % BINS
    return float(mass + s.paces[g, AFTER + k] + s.paces[g, PACE + k] * (min((b + 1) * span, told) - since))


@inline
def _forget_bin(s: State, g: int, k: int) -> None:
    s.paces[g, EXCESS + k] = s.paces[g, EXPOSED + k] = 0.0
    s.paces[g, PACE + k] = s.flts[CALM]


@jit_lean
def _roll(s: State, g: int, now: float) -> float:
    """Bring the ring to now; by how much the mass of old copies can have risen."""
    newest = int(np.floor(now / s.flts[SPAN]))
    if math.isinf(s.groups[g, G_NEWEST]):
        for k in range(BINS):
            _forget_bin(s, g, k)
        s.groups[g, G_NEWEST], s.groups[g, G_AT] = newest, now
        s.groups[g, G_TAIL] = s.groups[g, G_DRAINED] = s.flts[CALM]
        return 0.0
    before = int(s.groups[g, G_NEWEST])
    rise = 0.0
    for b in range(max(before + 1, newest - BINS + 1), newest + 1):
        k = b % BINS  # the place of the oldest, which goes
        pace = s.paces[g, PACE + k]
        rise += max(s.groups[g, G_TAIL] - pace, 0.0) * s.flts[SPAN]
        s.groups[g, G_DRAINED] += (pace - s.groups[g, G_DRAINED]) / BINS
        _forget_bin(s, g, k)
    if newest - before > BINS:
        rise += max(s.groups[g, G_TAIL] - s.flts[CALM], 0.0) * (newest - before - BINS) * s.flts[SPAN]
    s.groups[g, G_NEWEST] = max(newest, before)
    s.groups[g, G_TAIL] = min(s.groups[g, G_TAIL], s.groups[g, G_DRAINED])  # it may rise when all are placed anew
    return rise


@jit_lean
def reckon(s: State, g: int, now: float) -> float:
    """Work the paces out anew, as of now; by how much the mass of a copy can have risen at most."""
    span, told = s.flts[SPAN], s.groups[g, G_AT]
    newest = int(s.groups[g, G_NEWEST])
    rise, after = 0.0, 0.0
    for b in range(newest, newest - BINS, -1):
        k = b % BINS
        before = s.paces[g, PACE + k]
        known = max(s.paces[g, EXCESS + k], 0.0) / span
        pace = (s.flts[SHRINK] * s.flts[CALM] + known) / (s.flts[SHRINK] + s.paces[g, EXPOSED + k])
        s.paces[g, PACE + k] = pace
        s.paces[g, AFTER + k] = after
        inside = max(min(now - b * span, span), 0.0)
        foreseen = max(min(told - b * span, span), 0.0)
        mass = s.paces[g, PACE + k] * inside
        late = (s.paces[g, PACE + k] - s.flts[CALM]) * (inside - foreseen)  # for copies fetched since the last news
        rise += max(mass - before * foreseen - s.flts[CALM] * (inside - foreseen), late, 0.0)
        after += mass
    s.groups[g, G_AT] = now
    return rise


@jit_lean
def note(s: State, g: int, begin: float, end: float, own: float, weight: float, changed: bool) -> None:
    """Take in a crawl's outcome: over an interval in which a member's own rate was `own`."""
    end = max(end, s.groups[g, G_AT]) if not math.isinf(s.groups[g, G_NEWEST]) else end
    rise = _roll(s, g, end)
    span = s.flts[SPAN]
    newest = int(s.groups[g, G_NEWEST])
    oldest = newest - BINS + 1
    first = max(int(np.floor(begin / span)), oldest)
    total = max(oldest * span - begin, 0.0) * (own + weight * s.groups[g, G_TAIL])
    for b in range(first, newest + 1):
        inside = min(end, (b + 1) * span) - max(begin, b * span)
        total += max(inside, 0.0) * (own + weight * s.paces[g, PACE + b % BINS])
    each = 0.0
    if changed and total > 0.0:
        each = 1.0 / -math.expm1(-total)
    for b in range(first, newest + 1):
        k = b % BINS
        inside = max(min(end, (b + 1) * span) - max(begin, b * span), 0.0)
        s.paces[g, EXCESS + k] += inside * ((own + weight * s.paces[g, PACE + k]) * each - own)
        s.paces[g, EXPOSED + k] += inside / span
    s.groups[g, G_RISEN] += rise + reckon(s, g, end)


@jit_lean
def reckon_all(s: State, now: float) -> None:
    """Work the paces of all groups out anew after the pace of calm times has changed; all pages must be placed anew."""
    for g in range(s.groups.shape[0]):
        if not math.isinf(s.groups[g, G_NEWEST]):
            s.groups[g, G_TAIL] = s.groups[g, G_DRAINED]
            reckon(s, g, max(now, s.groups[g, G_AT]))


# --- who must be looked at when the mass has risen -------------------------------------------------------------------


@inline
def unlink(s: State, i: int) -> None:
    """Take a page out of its bucket, if it is in one."""
    p = s.kin[i]
    if p.bucket < 0:
        return
    if p.prev >= 0:
        s.kin[p.prev].next = p.next
    else:
        s.buckets[p.group, p.bucket] = p.next
    if p.next >= 0:
        s.kin[p.next].prev = p.prev
    p.bucket = p.next = p.prev = -1


@jit_lean
def forget_buckets(s: State) -> None:
    """Take all pages out of their buckets."""
    for i in range(s.kin.size):
        s.kin[i].bucket = s.kin[i].next = s.kin[i].prev = -1
    for g in range(s.groups.shape[0]):
        s.buckets[g, :] = -1
        s.groups[g, G_STIRRED] = s.groups[g, G_RISEN]


@inline
def _push(s: State, i: int, bucket: int) -> None:
    p = s.kin[i]
    head = s.buckets[p.group, bucket]
    p.bucket, p.prev, p.next = bucket, -1, head
    if head >= 0:
        s.kin[head].prev = i
    s.buckets[p.group, bucket] = i


@inline
def _put(s: State, i: int, slack: float) -> None:
    k = 0
    while k + 1 < BUCKETS and slack >= LEAST_SLACK * (2 << k):
        k += 1
    _push(s, i, k)


@inline
def _beyond_calm(s: State, i: int, now: float) -> float:
    """A page's mass beyond that of calm times."""
    last = s.rec[i].last
    return float(mass_since(s, s.kin[i].group, last, now) - s.flts[CALM] * max(now - last, 0.0))


@inline
def link(s: State, i: int, slack: float, now: float) -> None:
    """Put a page that falls asleep into the bucket of its slack; one without a group, or beyond all reach, in none."""
    unlink(s, i)
    if s.kin[i].group < 0 or math.isinf(slack):
        return
    s.kin[i].key = s.groups[s.kin[i].group, G_RISEN] + slack
    s.kin[i].limit = _beyond_calm(s, i, now) + slack
    _put(s, i, slack)


@jit_lean
def take_due(s: State, g: int, before: float, after: float, now: float) -> None:
    """Gather the members whose slack is used up when a group has risen from one level to another."""
    for k in range(BUCKETS):
        width = LEAST_SLACK * (1 << k)
        if np.floor(after / width) <= np.floor(before / width):
            return  # the wider ones are not due either
        i = s.buckets[g, k]
        s.buckets[g, k] = -1
        while i >= 0:
            following = s.kin[i].next
            if following >= 0:
                prefetch(s.kin, following)
                prefetch(s.rec, following)
            left = s.kin[i].key - after
            if left < 0.5 * width:
                left = max(left, (s.kin[i].limit - _beyond_calm(s, i, now)) * (1.0 - 1e-6))
                s.kin[i].key = after + left
            if left >= LEAST_SLACK:
                _put(s, i, left)
            else:
                _push(s, i, BUCKETS)
            i = following
