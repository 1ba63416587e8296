"""A learner that is given the distribution of change rates: the best that learning rates from crawls can do.

Its belief about each page is a distribution over a grid of rates. It starts from the true distribution over all pages
and is updated exactly: for constant rates and independent pages this is Bayes' rule, with no prior left to learn. The
page with the largest expected crawl value comes first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from recrawl.simulate import Contender, Trace

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

LEAST, RATIO, SIZE = 2.5e-4, 2**0.5, 40  # rates per day: 0 and 2.5e-4 · √2^k, up to 185


@njit(cache=True, fastmath=True)
def values(belief: Array, rate: Array, age: Array, weight: Array, out: Array) -> None:
    """Expected crawl value of each page: Σ p/r (1 − e^{−x}(1 + x)), x = rate × age; the grid's ratio is √2."""
    for i in range(len(age)):
        stay = (np.exp(-rate[0] * age[i]), np.exp(-rate[1] * age[i]))
        even, odd, total = stay[0], stay[1], 0.0
        for k in range(len(rate)):
            e = even if k % 2 == 0 else odd
            x = rate[k] * age[i]
            part = 1.0 - e * (1.0 + x) if x > 1e-4 else 0.5 * x * x
            total += belief[i, k] / rate[k] * part
            if k % 2 == 0:
                even *= even
            else:
                odd *= odd
        out[i] = weight[i] * total


class Bayes:
    """Crawls the page of largest expected value, by exact beliefs on a grid of rates."""

    def __init__(self, trace: Trace) -> None:
        self._rate = LEAST * RATIO ** np.arange(SIZE) / trace.day
        self._prior = self._histogram(trace.change_rate)
        self._belief = np.zeros((len(trace), SIZE))
        self._fetched = np.zeros(len(trace))
        self._weight = np.zeros(len(trace))  # 0: not there
        self._importance = trace.importance

    def _histogram(self, rates: Array) -> Array:
        """The share of pages at each rate of the grid; those that never change have the rest."""
        positive = rates[rates > 0]
        step = np.log(positive / self._rate[0]) / np.log(RATIO)
        place = np.clip(np.rint(step), 0, SIZE - 1).astype(np.int64)
        return np.bincount(place, minlength=SIZE) / len(rates)

    def add(self, rows: Ids, now: float) -> Ids:
        """Add pages; their copies are fresh."""
        self._belief[rows], self._fetched[rows], self._weight[rows] = self._prior, now, self._importance[rows]
        return rows

    def remove(self, ids: Ids) -> None:
        """Pages that go."""
        self._weight[ids] = 0.0

    def pick(self, now: float, n: int) -> Ids:
        """The n pages of largest value."""
        out = np.empty(len(self._weight))
        values(self._belief, self._rate, now - self._fetched, self._weight, out)
        n = min(n, int((self._weight > 0).sum()))
        best: Ids = np.argpartition(-out, n - 1)[:n] if n else np.zeros(0, np.int64)
        return best

    def record(self, ids: Ids, now: float, *, changed: Any) -> None:
        """Bayes' rule; what is missing from a belief's sum is the probability of a page that never changes."""
        stay = np.exp(-np.outer(now - self._fetched[ids], self._rate))
        never = 1.0 - self._belief[ids].sum(axis=1)
        found = self._belief[ids] * np.where(changed[:, None], 1.0 - stay, stay)
        whole = found.sum(axis=1) + np.where(changed, 0.0, np.maximum(never, 0.0))
        self._belief[ids] = found / np.maximum(whole, 1e-300)[:, None]
        self._fetched[ids] = now


def bayes(rates_of: Trace) -> Contender:
    """The policy, with the distribution of rates of a trace."""
    return Contender(
        "bayes", lambda trace, budget, rng: Bayes(rates_of), lambda policy, trace, rows, now: policy.add(rows, now)
    )
