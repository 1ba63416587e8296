"""What a crawl's outcome teaches about a page, and how that belief becomes the scheduler's parameters.

The live engine and the simulator's compiled loop call the same `learn`, `heed` and `believe`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import inline, jit
from recrawl.estimate._stream_kernels import take_in
from recrawl.schedule._view_kernels import Header, opened
from recrawl.schedule.layout import EVIDENCE, State

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_FEW = 4.0  # with so few signals of a source so far, each one changes what is believed of its rate at once


class Belief(NamedTuple):
    """Per page: gammas of the missed rate and of each source's weight (shape, rate), and what they rest on."""

    gamma: Array  # (pages, 1 + sources, 2)
    heard: Array  # (pages, sources): signals since the copy was fetched
    signals: Array  # (pages, sources): signals before that
    watched: Array  # time between the first copy and the last crawl
    n_crawls: Ids
    n_changes: Ids
    told: NDArray[np.bool_]  # whether a rate was given for it: the prior says nothing of it then
    prior: Array  # (1 + sources, 2)
    half_life: Array  # (1,): after how much time evidence counts half
    shapes: Array  # shapes that the prior might have
    scores: Array  # how well each of them foretold the outcomes: Σ ln P


@inline
def precision(b: Belief, i: int, k: int) -> float:
    """Expected share of source k's signals that tell of a change: E(1 − e^{−κ})."""
    return -math.expm1(-b.gamma[i, 1 + k, 0] * math.log1p(1.0 / b.gamma[i, 1 + k, 1]))


@inline
def signal_rate(b: Belief, i: int, k: int, elapsed: float) -> float:
    """Signals of source k per time, as of some time after the last crawl."""
    time = b.watched[i] + elapsed
    return (b.signals[i, k] + b.heard[i, k]) / time if time > 0.0 else 0.0


@jit
def qualities(b: Belief, ids: Ids, elapsed: Array, recall: Array, false_rate: Array, change_rate: Array) -> None:
    """The columns of `Pages` that follow from what is believed."""
    for j in range(ids.size):
        i = ids[j]
        change_rate[j] = b.gamma[i, 0, 0] / b.gamma[i, 0, 1]
        for k in range(b.heard.shape[1]):
            rate, share = signal_rate(b, i, k, elapsed[j]), precision(b, i, k)
            recall[j, k] = share * rate
            false_rate[j, k] = (1.0 - share) * rate
            change_rate[j] += recall[j, k]
        for k in range(b.heard.shape[1]):
            recall[j, k] /= change_rate[j]


@jit
def believe(s: State, b: Belief, i: int, elapsed: float) -> None:
    """Write what is believed of a page into the scheduler's record, for at most one signal source.

    The caller sees to it that the page is placed anew.
    """
    missed = b.gamma[i, 0, 0] / b.gamma[i, 0, 1]
    true = false = 0.0
    if b.heard.shape[1] > 0:
        rate, share = signal_rate(b, i, 0, elapsed), precision(b, i, 0)
        true, false = share * rate, (1.0 - share) * rate
    s.rec[i].change_rate = missed + true
    s.rec[i].recall = true / (missed + true)
    s.rec[i].false_rate = false
    s.rec[i].least = 0.0
    s.extra[s.ints[EVIDENCE], i] = b.gamma[i, 0, 0] if true == 0.0 else math.inf


@inline
def _score(b: Belief, i: int, interval: float, changed: bool) -> None:
    """What each shape of the prior, with its mean as it is, would have said of this outcome given the page's past."""
    changes, time = max(b.gamma[i, 0, 0] - b.prior[0, 0], 0.0), max(b.gamma[i, 0, 1] - b.prior[0, 1], 0.0)
    for k in range(b.heard.shape[1]):
        if b.heard[i, k] > 0.0:
            return
    for g in range(b.shapes.size):
        shape = b.shapes[g] + changes
        rate = b.shapes[g] * b.prior[0, 1] / b.prior[0, 0] + time
        silent = -shape * math.log1p(interval / rate)  # ln of the chance of no change
        b.scores[g] += math.log(max(-math.expm1(silent), 1e-300)) if changed else silent


@jit
def learn(b: Belief, i: int, interval: float, changed: bool) -> None:
    """Take in a crawl's outcome: after this interval, with the signals heard in it, the page had changed or not."""
    if interval <= 0.0:
        return
    if b.half_life[0] < math.inf:
        kept = math.exp2(-interval / b.half_life[0])
        for j in range(b.gamma.shape[1]):
            for c in range(2):
                b.gamma[i, j, c] = b.prior[j, c] + (b.gamma[i, j, c] - b.prior[j, c]) * kept
    if b.n_crawls[i] > 0 and not b.told[i]:
        _score(b, i, interval, changed)
    take_in(b.gamma[i], interval, b.heard[i], changed)
    for k in range(b.heard.shape[1]):
        b.signals[i, k] += b.heard[i, k]
        b.heard[i, k] = 0.0
    b.watched[i] += interval
    b.n_crawls[i] += 1
    b.n_changes[i] += changed


@jit
def learn_all(b: Belief, ids: Ids, interval: Array, changed: NDArray[np.bool_], kept: Array) -> None:
    """Take in outcomes; `kept` signals came after the fetch began and belong to the next interval."""
    for j in range(ids.size):
        for k in range(b.heard.shape[1]):
            b.heard[ids[j], k] -= kept[j, k]
        learn(b, ids[j], interval[j], changed[j])
        for k in range(b.heard.shape[1]):
            b.heard[ids[j], k] = kept[j, k]


@jit
def believe_all(header: Header, b: Belief, ids: Ids, now: float) -> None:
    """Write what is believed of pages into the scheduler's records; the caller places them anew."""
    s = opened(header)
    for i in ids:
        believe(s, b, i, max(now - s.rec[i].last, 0.0))


@inline
def heed(b: Belief, i: int, k: int) -> bool:
    """Count a signal; whether it changes what is believed of the page at once."""
    b.heard[i, k] += 1.0
    return bool(b.signals[i, k] + b.heard[i, k] <= _FEW)


@jit
def heed_all(b: Belief, ids: Ids, k: int) -> NDArray[np.bool_]:
    """Count signals of a source; for which of them the belief changes at once."""
    stirred = np.zeros(ids.size, np.bool_)
    for j in range(ids.size):
        stirred[j] = heed(b, ids[j], k)
    return stirred
