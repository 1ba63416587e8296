"""The publication of a clock, and what follows for the pages of its group."""

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit_lean
from recrawl.schedule.exact.kernels.places.near import drop_bounds, widen_bounds
from recrawl.schedule.exact.kernels.value.clocks import pace_at, write_clock
from recrawl.schedule.exact.layout import State


@jit_lean
def publish_clock(s: State, g: int, first: int, paces: NDArray[np.float64], ahead: float, now: float) -> None:
    """Publish a clock, and widen the bounds of the near pages that follow it."""
    rise = publish_of_many(s, g, first, paces, ahead, now)
    widen_bounds(s, g, rise, max(ahead, 1.0), s.head[0].now)


@jit_lean
def publish_of_many(s: State, g: int, first: int, paces: NDArray[np.float64], ahead: float, now: float) -> float:
    """Write the paces of a clock's bins up to now; the members must be reinserted (`reinsert_group`) before a pick.

    By how much clock times have risen at most. A page that sleeps until some time then relied on a clock time of at
    most its old one and `risen`'s growth: that of the past, and what the pace ahead can add in all times to come. Near
    pages have bounds besides: after the last of many publications at one time, `drop_published` must follow.
    """
    now = max(now, s.head[0].now)
    s.head[0].now = now
    before = pace_at(s, g, now)
    rise = write_clock(s, g, first, paces, ahead, now)
    s.groups[g].risen += rise + max(ahead - before, 0.0) * s.head[0].memory
    return float(rise)


@jit_lean
def drop_published(s: State) -> None:
    """Evaluate the near pages again that follow clocks which were published just now: one pass for all clocks."""
    drop_bounds(s, s.head[0].now)
