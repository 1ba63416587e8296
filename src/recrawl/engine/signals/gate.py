"""Whether signals count: per source and per host, decided by predictions made before each outcome.

A gate starts shut. It opens when the outcomes were predicted better with the signals than with the changes that they
tell taken as missed ones, and also better than by the belief that knows no signals.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import inline, jit
from recrawl.engine.signals.arrays import (
    ALONE,
    EVENT,
    FOLLOWS,
    NEEDED,
    OPEN,
    OPENED,
    SCORE,
    SHUT,
    SHUT_AT,
    SignalArrays,
    is_open,
)
from recrawl.engine.signals.components import unchanged_chance

Array = NDArray[np.float64]

_CLIP, _CAP = 1.0, 12.0
_CLOSE = (-6.0, -3.0)  # of a host, of a source
NOTHING, HOST_OPENED, HOST_SHUT, SOURCE_OPENED, SOURCE_SHUT = range(5)


@inline
def _gain(with_: float, without: float, changed: bool) -> float:
    """ln P(outcome) of one prediction over another's, clipped."""
    with_, without = min(max(with_, 1e-6), 1.0 - 1e-6), min(max(without, 1e-6), 1.0 - 1e-6)
    gain = math.log((1.0 - with_) / (1.0 - without)) if changed else math.log(with_ / without)
    return min(max(gain, -_CLIP), _CLIP)


@inline
def _note(b: SignalArrays, gate: Array, event: int) -> None:
    """Leave word that a gate has opened or shut, for whoever values the pages that it concerns."""
    gate[EVENT] = event
    b.moved[0] += 1


@jit
def score(b: SignalArrays, row: int, k: int, begin: float, elapsed: float, own: float, changed: bool) -> int:
    """Score source k by an outcome, `own` being the exponent that the belief without signals predicted.

    `begin` is when the copy was fetched. What happened to the gates: a host's or the source's has opened or shut.
    """
    host = b.host[row]
    with_ = unchanged_chance(b, row, elapsed, -1)
    gain = _gain(with_, unchanged_chance(b, row, elapsed, k), changed)
    alone = _gain(with_, math.exp(-own), changed)
    opened = is_open(b, host, k)
    event = NOTHING
    for level in range(2):
        gate = b.host_gate[host, k] if level == 0 else b.gate[k]
        if begin <= gate[SHUT_AT]:
            continue
        most = max(_CAP, gate[NEEDED])
        gate[SCORE] = min(max(gate[SCORE] + gain, -_CAP), most)
        if not opened:
            gate[ALONE] = min(max(gate[ALONE] + alone, -_CAP), most)
        if gate[OPEN] != OPENED and gate[SCORE] >= gate[NEEDED] and gate[ALONE] >= gate[NEEDED]:
            gate[OPEN] = OPENED
            event = HOST_OPENED if level == 0 else SOURCE_OPENED
            _note(b, gate, event)
        elif gate[SCORE] < _CLOSE[level] and (gate[OPEN] == OPENED or (level == 0 and opened)):
            gate[OPEN] = SHUT if level == 0 else FOLLOWS
            event = HOST_SHUT if level == 0 else SOURCE_SHUT
            _note(b, gate, event)
    return event


@jit
def shut(b: SignalArrays, host: int, k: int, now: float) -> None:
    """Begin again after a gate has shut: of a host, or with −1 of the source. The next opening needs twice as much."""
    gate = b.host_gate[host, k] if host >= 0 else b.gate[k]
    gate[SCORE], gate[ALONE], gate[SHUT_AT] = 0.0, 0.0, now
    gate[NEEDED] *= 2.0
