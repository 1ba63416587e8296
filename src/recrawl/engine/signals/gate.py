"""Whether signals count: per source and per host, decided by predictions made before each outcome.

A gate starts shut. It opens when the outcomes were predicted better with the signals than with the changes that they
tell taken as missed ones, and also better than by the belief that knows no signals.
"""

import math

from recrawl._compile.jit import inline, jit_lean
from recrawl.engine.signals.arrays import (
    ALONE,
    BEGAN,
    EXPECTED,
    FOLLOWS,
    FOUND,
    NEEDED,
    OPEN,
    OPENED,
    SCORE,
    SHUT,
    SHUT_AT,
    TOOK,
    SignalArrays,
    is_open,
)
from recrawl.engine.signals.components import unchanged_chance

_CLIP, _CAP = 1.0, 12.0
_CLOSE = (-6.0, -3.0)  # of a host, of a source
NOTHING, HAS_OPENED, HAS_SHUT = range(3)


@inline
def _gain(with_: float, without: float, changed: bool) -> float:
    """ln P(outcome) of one prediction over another's, clipped."""
    with_, without = min(max(with_, 1e-6), 1.0 - 1e-6), min(max(without, 1e-6), 1.0 - 1e-6)
    gain = math.log((1.0 - with_) / (1.0 - without)) if changed else math.log(with_ / without)
    return min(max(gain, -_CLIP), _CLIP)


@jit_lean
def score(
    b: SignalArrays, row: int, k: int, begin: float, elapsed: float, own: float, changed: bool
) -> tuple[int, int]:
    """Score source k by an outcome, `own` being the exponent that the belief without signals predicted.

    `begin` is when the copy was fetched. What happened to the gates of the host and of the source: NOTHING, HAS_OPENED
    or HAS_SHUT.
    """
    with_ = unchanged_chance(b, row, elapsed, -1)
    gain = _gain(with_, unchanged_chance(b, row, elapsed, k), changed)
    return _add_scores(b, row, k, begin, gain, _gain(with_, math.exp(-own), changed))


@jit_lean
def score_late(b: SignalArrays, row: int, k: int) -> tuple[int, int]:
    """Correct the scores of source k by a signal that came after the crawl: as if it had come in the interval `ended`.

    What happened to the gates, as for `score`.
    """
    elapsed, alone = b.ended[row, TOOK], math.exp(-b.ended[row, EXPECTED])
    heard, credit = b.messages[0], b.credit[row, k]
    found = b.ended[row, FOUND] > 0.0
    for j in range(heard.size):
        heard[j], b.heard[row, j] = b.heard[row, j], 0.0
    silent, without = unchanged_chance(b, row, elapsed, -1), unchanged_chance(b, row, elapsed, k)
    b.heard[row, k] = b.credit[row, k] = 1.0
    with_ = unchanged_chance(b, row, elapsed, -1)
    for j in range(heard.size):
        b.heard[row, j] = heard[j]
    b.credit[row, k] = credit
    gain = _gain(with_, without, found) - _gain(silent, without, found)
    alone = _gain(with_, alone, found) - _gain(silent, alone, found)
    return _add_scores(b, row, k, b.ended[row, BEGAN], gain, alone)


@jit_lean
def _add_scores(b: SignalArrays, row: int, k: int, begin: float, gain: float, alone: float) -> tuple[int, int]:
    """Add to the scores of source k, of the page's host and of all; what happened to the gates."""
    host = b.host[row]
    opened = is_open(b, host, k)
    host_event, source_event = NOTHING, NOTHING
    for level in range(2):
        event = NOTHING
        gate = b.host_gate[host, k] if level == 0 else b.gate[k]
        if begin <= gate[SHUT_AT]:
            continue
        most = max(_CAP, gate[NEEDED])
        gate[SCORE] = min(max(gate[SCORE] + gain, -_CAP), most)
        if not opened:
            gate[ALONE] = min(max(gate[ALONE] + alone, -_CAP), most)
        if gate[OPEN] != OPENED and gate[SCORE] >= gate[NEEDED] and gate[ALONE] >= gate[NEEDED]:
            gate[OPEN], event = OPENED, HAS_OPENED
        elif gate[SCORE] < _CLOSE[level] and (gate[OPEN] == OPENED or (level == 0 and opened)):
            gate[OPEN], event = SHUT if level == 0 else FOLLOWS, HAS_SHUT
        if level == 0:
            host_event = event
        else:
            source_event = event
    return host_event, source_event


@jit_lean
def shut(b: SignalArrays, host: int, k: int, now: float) -> None:
    """Begin again after a gate has shut: of a host, or with −1 of the source. The next opening needs twice as much."""
    gate = b.host_gate[host, k] if host >= 0 else b.gate[k]
    gate[SCORE], gate[ALONE], gate[SHUT_AT] = 0.0, 0.0, now
    gate[NEEDED] *= 2.0
