"""The change rate of a page by its signals, as explanations ask for it."""

import math

from recrawl._compile.jit import jit
from recrawl.engine.signals.arrays import SignalArrays, any_open, row_of
from recrawl.engine.signals.components import change_rate_moments


@jit
def signalled_rate(b: SignalArrays, i: int) -> tuple[float, float]:
    """Mean and variance of a page's change rate where signals count for it, else not-a-number."""
    row = row_of(b, i)
    if row < 0 or not any_open(b, row):
        return math.nan, math.nan
    return change_rate_moments(b, row)
