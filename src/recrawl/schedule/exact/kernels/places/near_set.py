"""The near set as a container: ids, their values, and bounds where clocks are in use."""

import math

from recrawl._compile.jit import inline
from recrawl.schedule.exact.kernels.state.pages import set_state
from recrawl.schedule.exact.layout import NEAR, State

NEVER = -math.inf


@inline
def near_add(s: State, i: int, value: float, now: float) -> None:
    """Put a page whose value was just computed among the near ones."""
    n = s.head[0].n_near
    s.near_id[n] = i
    s.near_val[n] = value
    if s.member.size > 0:
        s.near_bound[n].at = s.near_bound[n].since = now
        s.near_bound[n].room = -1.0
    s.rec[i].pos = n
    s.head[0].n_near = n + 1
    set_state(s, i, NEAR)


@inline
def near_remove(s: State, i: int) -> None:
    """Take a page out of the near set."""
    place = s.rec[i].pos
    n = s.head[0].n_near - 1
    last = s.near_id[n]
    s.near_id[place] = last
    s.near_val[place] = s.near_val[n]
    if s.member.size > 0:
        s.near_bound[place] = s.near_bound[n]
    s.rec[last].pos = place
    s.head[0].n_near = n
