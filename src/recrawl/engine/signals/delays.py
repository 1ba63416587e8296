"""How long after its change a signal comes: learned per source and host from outcomes, and what it means for a signal.

Let a source tell changes of a page after independent delays. Of its signals that come a time s after the copy was
fetched, the share F(s) = P(delay ≤ s) then tells of changes after the copy; the others tell of what the copy has
already. Precisions are learned from all signals, early and late: they are what a signal of the mean F is worth. A
signal at s has the credit F(s) / mean F, by which its precision is multiplied. Statistics of pages do not depend on
delays.

The delay is a mixture of exponential distributions. Their means are a grid, the first of which is 0: F(s) = 1. Each is
judged by the outcomes after signals, as if it alone held: at its own mean F, so that none is preferred for the number
of changes that it explains. A signal that says when its change was has the credit 1.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit_lean
from recrawl._compile.plain import plain

Array = NDArray[np.float64]

EVIDENCE, WITHIN, SHARE, N_DELAY = 0, 1, 2, 3  # of a candidate: ln evidence, fading Σ F(s), probability
_FIRST = 0.003  # probability that signals are late, before anything is known
_LONGER = 0.7  # that of a delay, over that of the next shorter one: outcomes cannot tell delays beyond all ages apart
_DOUBT = 0.02  # of P(unchanged) that a signal leaves at least
_LEAST = -16.0  # ln evidence below that of the best candidate: what is kept of it
_KEPT = 0.995  # of the sums after each outcome
_NOTHING = 1e-9
_SOURCE = 0.9  # how far a host is like the others of a source, before anything is known of it


def grid(rates: Array) -> Array:
    """The candidates: no delay, then mean delays by powers of four."""
    return np.concatenate([[0.0], 1.0 / rates[::-2]])


def first_delays(n: int) -> Array:
    """(N_DELAY, candidates) before anything is known."""
    out = np.zeros((N_DELAY, n))
    out[SHARE] = [plain(_first)(n, j) for j in range(n)]
    return out


@inline
def _first(n: int, j: int) -> float:
    """Probability of a candidate before anything is known."""
    if j == 0:
        return 1.0 - _FIRST
    return _FIRST * (1.0 - _LONGER) * _LONGER ** (j - 1) / (1.0 - _LONGER ** (n - 1))


@inline
def within(mean: float, age: float) -> float:
    """F(age): P(a signal so long after the copy tells of a change after it), at a mean delay."""
    return -math.expm1(-age / mean) if mean > 0.0 else 1.0


@inline
def _credit(delays: Array, learned: Array, j: int, age: float) -> float:
    """The credit at an age, were candidate j the delay."""
    return float(within(delays[j], age) * learned[WITHIN, 0] / max(learned[WITHIN, j], _NOTHING))


@jit_lean
def credit_at(delays: Array, of_source: Array, of_host: Array, age: float) -> float:
    """The credit of a signal that comes `age` after the copy; infinity: its change is known to be later than that."""
    if math.isinf(age):
        return 1.0
    learned = of_host if of_host[WITHIN, 0] > 0.0 else of_source
    if learned[WITHIN, 0] == 0.0:
        return 1.0
    credit = 0.0
    for j in range(delays.size):
        credit += learned[SHARE, j] * _credit(delays, learned, j, age)
    return credit


@jit_lean
def judge_delays(delays: Array, learned: Array, age: float, chance: tuple[float, float], changed: bool) -> None:
    """Add an outcome after a signal to evidence and sums.

    `chance` is P(unchanged) had no signal come, and by how much a signal of the credit 1 lowers it.
    """
    silent, taken = chance
    none, top = _log_chance(silent - taken, silent, changed), -math.inf
    for j in range(delays.size):
        learned[WITHIN, j] = _KEPT * learned[WITHIN, j] + within(delays[j], age)
        gain = _log_chance(silent - taken * _credit(delays, learned, j, age), silent, changed) - none
        learned[EVIDENCE, j] += gain
        top = max(top, learned[EVIDENCE, j])
    for j in range(delays.size):
        learned[EVIDENCE, j] = max(learned[EVIDENCE, j] - top, _LEAST)


@inline
def _log_chance(unchanged: float, silent: float, changed: bool) -> float:
    """ln P(outcome), which is bounded: a signal leaves some of the chance that nothing changed."""
    unchanged = max(unchanged, _DOUBT * silent)
    return math.log(max(1.0 - unchanged, 1e-6) if changed else max(unchanged, 1e-6))


@jit_lean
def share_delays(learned: Array, prior: Array, follow: float) -> None:
    """Probabilities of the candidates from their evidence; `prior` counts by a share, what is assumed at first else."""
    n, total = learned.shape[1], 0.0
    for j in range(n):
        share = follow * prior[j] + (1.0 - follow) * _first(n, j)
        learned[SHARE, j] = share * math.exp(learned[EVIDENCE, j])
        total += learned[SHARE, j]
    for j in range(n):
        learned[SHARE, j] /= total


@jit_lean
def learn_delays(
    delays: Array, of_source: Array, of_host: Array, age: float, chance: tuple[float, float], changed: bool
) -> None:
    """Learn from an outcome after a signal of one source: for the page's host, and for all hosts."""
    judge_delays(delays, of_source, age, chance, changed)
    share_delays(of_source, of_source[SHARE], 0.0)
    judge_delays(delays, of_host, age, chance, changed)
    share_delays(of_host, of_source[SHARE], _SOURCE)


def median_delay(delays: Array, learned: Array) -> float:
    """The mean delay that is as likely too long as too short."""
    return float(delays[np.searchsorted(np.cumsum(learned[SHARE]), 0.5)])
