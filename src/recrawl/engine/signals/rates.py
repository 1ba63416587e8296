"""How the signal rates of a source's pages are spread: a gamma distribution, fitted to the pages that have had signals.

A page is known here because a signal came, so that what is fitted is the probability of its n signals in a time t given
that there was one: with shape k and mean m, b = k/m,

    ln L = ln Γ(k + n) − ln Γ(k) + k ln b − (k + n) ln(b + t) − ln(1 − (b / (b + t))^k)

Without the last term the mean is far too high at first: pages whose signals are frequent are heard of first.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit
from recrawl.engine.signals.arrays import COUNTED, COUNTED_TIME, MOST_SIGNALS, SignalArrays

Array = NDArray[np.float64]

SHAPES = 2.0 ** np.arange(0.0, 3.25, 0.5)
MEANS = 2.0 ** -np.arange(0.0, 3.125, 0.125)  # over the mean rate of all time: with the condition, it is at most that
_PAGES = 1000  # that are read, at most twice as many
_LEAST = 1e-9


@jit
def rate_scores(counts: Array, times: Array, pooled: float) -> Array:
    """(shapes, means): ln L of each pair, summed over pages; `pooled` is what the means are multiples of."""
    out = np.zeros((SHAPES.size, MEANS.size))
    for i in range(SHAPES.size):
        shape = SHAPES[i]
        for row in range(counts.size):
            constant = math.lgamma(shape + counts[row]) - math.lgamma(shape)
            for j in range(MEANS.size):
                prior = shape / (pooled * MEANS[j])
                none = -shape * math.log1p(times[row] / prior)  # ln P(no signal)
                out[i, j] += constant + none - counts[row] * math.log(prior + times[row]) - math.log(-math.expm1(none))
    return out


def fitted_rates(counts: Array, times: Array, pooled: float) -> tuple[float, float]:
    """(shape, mean over the pooled one): geometric means over all pairs, each weighed by its likelihood."""
    scores = rate_scores(counts, times, pooled)
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    shape, mean = np.log(SHAPES) @ weights.sum(axis=1), np.log(MEANS) @ weights.sum(axis=0)
    return float(np.exp(shape)), float(np.exp(mean))


def signal_counts(b: SignalArrays, n_rows: int, k: int, elapsed: Array) -> tuple[Array, Array]:
    """Signals of source k about each page that has had some, all up to a number per copy, and in what time."""
    rows = np.flatnonzero(b.rate[:n_rows, k] > 0.0)
    rows = rows[:: max(len(rows) // _PAGES, 1)]
    heard = np.minimum(b.heard[rows, k], MOST_SIGNALS)
    since = np.where(heard >= MOST_SIGNALS, b.last[rows, k], elapsed[rows])
    times = b.statistics[rows, k, COUNTED_TIME] + since
    return b.statistics[rows, k, COUNTED] + heard, np.maximum(times, _LEAST / b.mean_rate[k])
