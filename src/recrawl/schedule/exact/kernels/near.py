"""The near set: pages whose value is, or is about to be, among the largest.

Without relatives every near page is evaluated at each pick: there are few, and a value costs little. Where siblings or
bursts count it costs more, and groups bring many pages near at once. There a near page is looked at only when it could
be the best: its value when last looked at, and a bound for its growth since, tell how large it can be at most. News of
its group add to that (`disturb`).
"""

import math

from recrawl._jit import inline, jit_lean
from recrawl.schedule.exact.kernels.near_set import NEVER
from recrawl.schedule.exact.kernels.values import evaluate, value_and_growth
from recrawl.schedule.exact.layout import EVALUATED, N_NEAR, NEAR_LEVEL, State

_AHEAD = 0.02  # how far a bound for the growth is trusted: of a page's age and of its exponent
_STEEPER = 1.1  # by how much growth can become faster over that time
_MUCH = 0.1  # a rise of the exponent by which bounds are not trusted any more


@jit_lean
def look_at(s: State, j: int, now: float) -> None:
    """Evaluate a near page where relatives count, and bound its growth."""
    bound = s.near_bound[j]
    s.ints[EVALUATED] += 1
    value, span, growth, bound.lift, bound.hurry = value_and_growth(s, s.near_id[j], now)
    s.near_val[j] = bound.most = value
    bound.at = bound.since = now
    bound.growth, bound.until = _STEEPER * growth, now + _AHEAD * span if span > 0.0 else NEVER


@inline
def _most(s: State, j: int, now: float) -> float:
    """How large the value of a near page can be at most."""
    bound = s.near_bound[j]
    if bound.at == now:
        return float(s.near_val[j])
    if not now <= bound.until:
        return math.inf
    return float((bound.most + bound.growth * (now - bound.since)) * (1.0 + 1e-9))


@jit_lean
def refresh_near(s: State, now: float) -> None:
    """Evaluate every near page, unless they are looked at one by one."""
    if s.kin.size == 0:
        for j in range(s.ints[N_NEAR]):
            s.near_val[j] = evaluate(s, s.near_id[j], now)[0]


@jit_lean
def look_at_all(s: State, now: float) -> None:
    """Evaluate those near pages that were not looked at, where they are one by one."""
    for j in range(s.ints[N_NEAR] if s.kin.size > 0 else 0):
        if s.near_bound[j].at != now:
            look_at(s, j, now)


@inline
def surprise(s: State, i: int) -> None:
    """A near page has news of its own: it must be looked at again, even at the same time."""
    if s.kin.size > 0:
        bound = s.near_bound[s.rec[i].pos]
        bound.at = bound.until = NEVER


@jit_lean
def disturb(s: State, g: int, rise: float) -> None:
    """A group has news, by which the mass of its members has risen by so much at most; it may have fallen, too."""
    for j in range(s.ints[N_NEAR]):
        if s.kin[s.near_id[j]].group == g:
            bound = s.near_bound[j]
            bound.at = NEVER
            if rise * bound.hurry < _MUCH:
                bound.most += rise * bound.lift
                bound.growth *= 1.0 + rise * bound.hurry
            else:
                bound.until = NEVER


@jit_lean
def count_ripe(s: State, now: float, enough: int) -> int:
    """How many near pages have a value at or above the near level; it stops counting when there are enough."""
    n = 0
    level = s.flts[NEAR_LEVEL]
    lazy = s.kin.size > 0
    for j in range(s.ints[N_NEAR]):
        doubtful = lazy and s.near_bound[j].at != now and (s.near_val[j] < level or s.near_bound[j].at == NEVER)
        if doubtful and _most(s, j, now) >= level:
            look_at(s, j, now)
        if s.near_val[j] >= level and not (lazy and s.near_bound[j].at == NEVER):
            n += 1
            if n >= enough:
                break
    return n


@inline
def _first(s: State, now: float) -> int:
    """The near page that can be worth most."""
    first, most = -1, 0.0
    for j in range(s.ints[N_NEAR]):
        here = _most(s, j, now)
        if here > most:
            first, most = j, here
    return first


@jit_lean
def best_near(s: State, now: float) -> int:
    """The place of the near page of the largest value; −1 where none has any."""
    best, value = -1, 0.0
    if s.kin.size == 0:
        for j in range(s.ints[N_NEAR]):
            if s.near_val[j] > value:
                best, value = j, s.near_val[j]
        return best
    first = _first(s, now)
    if first >= 0 and s.near_bound[first].at != now:
        look_at(s, first, now)
    if first >= 0 and s.near_val[first] > 0.0:
        best, value = first, s.near_val[first]
    for j in range(s.ints[N_NEAR]):
        if _most(s, j, now) > value:
            if s.near_bound[j].at != now:
                look_at(s, j, now)
            if s.near_val[j] > value:
                best, value = j, s.near_val[j]
    return best
