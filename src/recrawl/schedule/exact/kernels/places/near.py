"""The near set: pages whose value is, or is about to be, among the largest.

Where no clocks are in use, every near page is evaluated at each pick: they are few, and a value costs little.
Otherwise a value costs more, and clocks bring many pages near at once. A near page is then evaluated only when it could
be the best: its last value and a bound for its growth since then say how large it can be at most. A publication of its
clock widens the bound (`widen_bounds`).
"""

import math

from recrawl._compile.jit import inline, jit_lean
from recrawl.schedule.exact.kernels.places.near_set import NEVER
from recrawl.schedule.exact.kernels.state.pages import whole
from recrawl.schedule.exact.kernels.value.clocks import has_clock, pace_at
from recrawl.schedule.exact.kernels.value.values import evaluate, value_and_slope
from recrawl.schedule.exact.layout import State


@jit_lean
def evaluate_near(s: State, j: int, now: float) -> None:
    """Evaluate a near page and bound its growth."""
    i, bound = whole(s.near_id[j]), s.near_bound[j]
    s.head[0].evaluated += 1
    value, bound.lift, bound.room = value_and_slope(s, i, now)
    s.near_val[j] = bound.most = value
    bound.at = bound.since = now
    bound.pace = max(pace_at(s, s.member[i].group, now), 1.0) if has_clock(s, i) else 1.0


@inline
def _most(s: State, j: int, now: float) -> float:
    """How large the value of a near page can be at most, also at a time before its bound begins."""
    bound = s.near_bound[j]
    if bound.at == now:
        return float(s.near_val[j])
    passed = max(bound.pace * (now - bound.since), 0.0)
    return float((bound.most + bound.lift * passed) * (1.0 + 1e-9)) if passed <= bound.room else math.inf


@jit_lean
def refresh_near(s: State, now: float) -> None:
    """Evaluate every near page, unless each has a bound."""
    if s.member.size == 0:
        for j in range(s.head[0].n_near):
            s.near_val[j] = evaluate(s, whole(s.near_id[j]), now)[0]


@jit_lean
def evaluate_all(s: State, now: float) -> None:
    """Evaluate the near pages that were not evaluated at this time, where each has a bound."""
    for j in range(s.head[0].n_near if s.member.size > 0 else 0):
        if s.near_bound[j].at != now:
            evaluate_near(s, j, now)


@jit_lean
def value_all(s: State, now: float) -> None:
    """The same without bounds, for callers that look at all near pages again at the next time."""
    for j in range(s.head[0].n_near if s.member.size > 0 else 0):
        bound = s.near_bound[j]
        if bound.at != now:
            s.near_val[j] = evaluate(s, whole(s.near_id[j]), now)[0]
            bound.at, bound.room = now, -1.0


@inline
def drop_bound(s: State, i: int) -> None:
    """A near page has a new signal: it must be evaluated again, even at the same time."""
    if s.member.size > 0:
        bound = s.near_bound[s.rec[i].pos]
        bound.at, bound.room = NEVER, -1.0


@jit_lean
def widen_bounds(s: State, g: int, rise: float, pace: float, now: float) -> None:
    """Widen the bounds of a group's near members: their clock times rose by at most so much, or fell.

    From now on their clock runs at most at the given pace.
    """
    for j in range(s.head[0].n_near):
        if s.member[s.near_id[j]].group == g:
            bound = s.near_bound[j]
            bound.at = NEVER
            if bound.room >= 0.0:
                passed = max(bound.pace * (now - bound.since), 0.0) + rise
                bound.most += bound.lift * passed
                bound.room -= passed
                bound.since, bound.pace = now, pace


@jit_lean
def drop_bounds(s: State, published_at: float) -> None:
    """Near pages must be evaluated again whose clocks were published at a time, also if at the same time."""
    for j in range(s.head[0].n_near if s.member.size > 0 else 0):
        g = s.member[s.near_id[j]].group
        if g >= 0 and s.groups[g].updated_at == published_at:
            s.near_bound[j].at, s.near_bound[j].room = NEVER, -1.0


@jit_lean
def count_ripe(s: State, now: float, enough: int) -> int:
    """How many near pages have a value at or above the near level; it stops counting when there are enough."""
    n = 0
    level = s.head[0].near_level
    lazy = s.member.size > 0
    for j in range(s.head[0].n_near):
        doubtful = lazy and s.near_bound[j].at != now and (s.near_val[j] < level or s.near_bound[j].at == NEVER)
        if doubtful and _most(s, j, now) >= level:
            evaluate_near(s, j, now)
        if s.near_val[j] >= level and not (lazy and s.near_bound[j].at == NEVER):
            n += 1
            if n >= enough:
                break
    return n


@inline
def _first(s: State, now: float) -> int:
    """The near page whose value can be largest."""
    first, most = -1, 0.0
    for j in range(s.head[0].n_near):
        here = _most(s, j, now)
        if here > most:
            first, most = j, here
    return first


@inline
def _is_better(s: State, j: int, best: int) -> bool:
    """Whether a near page is worth more than another, or as much with a smaller id; −1: than nothing.

    Where hosts have rules, equal pages have no order: by ids the first in a list would make the other hosts wait.
    """
    if best < 0:
        return bool(s.near_val[j] > 0.0)
    more, same = s.near_val[j] > s.near_val[best], s.near_val[j] == s.near_val[best]
    return bool(more or (same and s.hosts.shape[0] == 0 and s.near_id[j] < s.near_id[best]))


@jit_lean
def best_near(s: State, now: float) -> int:
    """The place of the near page of the largest value; −1 where none has any."""
    best = -1
    if s.member.size == 0:
        for j in range(s.head[0].n_near):
            if _is_better(s, j, best):
                best = j
        return best
    first = _first(s, now)
    if first >= 0 and s.near_bound[first].at != now:
        evaluate_near(s, first, now)
    if first >= 0 and s.near_val[first] > 0.0:
        best = first
    for j in range(s.head[0].n_near):
        if _most(s, j, now) >= (s.near_val[best] if best >= 0 else 0.0):
            if s.near_bound[j].at != now:
                evaluate_near(s, j, now)
            if _is_better(s, j, best):
                best = j
    return best
