"""The arrays of beliefs, and what kernels read from them."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._jit import inline

Array = NDArray[np.float64]
Ids = NDArray[np.int64]


class Belief(NamedTuple):
    """Per page: gammas of the missed rate and of each source's weight (shape, rate), and what they rest on."""

    gamma: Array  # (pages, 1 + sources, 2)
    heard: Array  # (pages, sources): signals since the copy was fetched
    heard_at: Array  # (pages, 1; without sources 0): when the first of them came
    signals: Array  # (pages, sources): signals before that
    watched: Array  # time between the first copy and the last crawl
    n_crawls: Ids
    n_changes: Ids
    own: Array  # changes that the missed rate explains
    fixed_rate: NDArray[np.bool_]  # whether a rate was given for it: the prior does not apply then
    counted: NDArray[np.bool_]  # whether the time since the copy was fetched belongs to the ledger
    prior: Array  # (1 + sources, 2)
    half_life: Array  # (1,): after how much time evidence counts half
    shapes: Array  # shapes that the prior might have
    scores: Array  # how well each of them predicted the outcomes: Σ ln P
    ledger: Array  # (2,): importance × time of copies up to the crawl that judged them, and stale of that


@inline
def precision(b: Belief, i: int, k: int) -> float:
    """Expected share of source k's signals that follow a change: E(1 − e^{−κ})."""
    return -math.expm1(-b.gamma[i, 1 + k, 0] * math.log1p(1.0 / b.gamma[i, 1 + k, 1]))


@inline
def signal_rate(b: Belief, i: int, k: int, elapsed: float) -> float:
    """Signals of source k per time, as of some time after the last crawl."""
    time = b.watched[i] + elapsed
    return (b.signals[i, k] + b.heard[i, k]) / time if time > 0.0 else 0.0
