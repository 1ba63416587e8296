"""Kernels of the bandits: probabilities of the arms, and what a reward does to them.

``score`` is, up to a constant that all arms share, the logarithm of the weight (EXP3, EXP3.S) or the estimated loss so
far (EXP3-IX, EXP3++). The constant is taken off after every step, so that no number grows but the differences.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit

EXP3, SHARED, IMPLICIT, GAPS = 0, 1, 2, 3
_CONFIDENCE, _GAP_WEIGHT = 3.0, 256.0  # α and β of Seldin and Lugosi 2017


@jit
def learning_rate(kind: int, n: int, t: int) -> float:
    """η at the t-th step: √(ln K/(Kt)) for EXP3-IX (Neu 2015), half of it for EXP3++."""
    eta = math.sqrt(math.log(n) / (n * t))
    return eta if kind == IMPLICIT else 0.5 * eta


@jit
def _softmax(score: NDArray[np.float64], scale: float, usable: NDArray[np.bool_], out: NDArray[np.float64]) -> None:
    top = -np.inf
    for k in range(len(score)):
        if usable[k]:
            top = max(top, scale * score[k])
    total = 0.0
    for k in range(len(score)):
        out[k] = np.exp(scale * score[k] - top) if usable[k] else 0.0
        total += out[k]
    for k in range(len(score)):
        out[k] /= total


@jit
def _mean_bound(plays: int, gain: float, t: int, n: int, sign: float) -> float:
    """Upper (sign 1) or lower (−1) confidence bound of an arm's mean loss."""
    if plays == 0:
        return 1.0 if sign > 0 else 0.0
    width = math.sqrt((_CONFIDENCE * math.log(t) + math.log(n)) / (2.0 * plays))
    return min(max(1.0 - gain / plays + sign * width, 0.0), 1.0)


@jit
def _mix_gaps(
    t: int, n: int, plays: NDArray[np.int64], gain: NDArray[np.float64], usable: NDArray[np.bool_],
    out: NDArray[np.float64],
) -> None:  # fmt: skip
    """Exploration of EXP3++: as much as an arm's estimated gap to the best one leaves worth while."""
    eta = learning_rate(GAPS, n, t)
    best = 1.0
    for k in range(len(out)):
        if usable[k]:
            best = min(best, _mean_bound(plays[k], gain[k], t, n, 1.0))
    kept = 1.0
    for again in range(2):
        for k in range(len(out)):
            if not usable[k]:
                continue
            gap = max(_mean_bound(plays[k], gain[k], t, n, -1.0) - best, 0.0)
            share = min(0.5 / n, eta)
            if gap > 0.0:
                share = min(share, _GAP_WEIGHT * np.log(t) / (t * gap * gap))
            if again == 0:
                kept -= share
            else:
                out[k] = kept * out[k] + share


@jit
def probabilities(
    kind: int, t: int, score: NDArray[np.float64], plays: NDArray[np.int64], gain: NDArray[np.float64],
    exploration: float, usable: NDArray[np.bool_], out: NDArray[np.float64],
) -> None:  # fmt: skip
    """The probability of each arm at the t-th step (from 1); arms that are not usable get 0."""
    n = 0
    for k in range(len(score)):
        n += usable[k]
    if kind in (IMPLICIT, GAPS):
        _softmax(score, -learning_rate(kind, n, t), usable, out)
        if kind == GAPS:
            _mix_gaps(t, n, plays, gain, usable, out)
        return
    _softmax(score, 1.0, usable, out)
    for k in range(len(score)):
        if usable[k]:
            out[k] = (1.0 - exploration) * out[k] + exploration / n


@jit
def learn(
    kind: int, t: int, score: NDArray[np.float64], plays: NDArray[np.int64], gain: NDArray[np.float64],
    arm: int, reward: float, probability: float, exploration: float, share: float, n: int,
) -> None:  # fmt: skip
    """What the reward of an arm does that was drawn, among n, with a probability at the t-th step."""
    plays[arm] += 1
    gain[arm] += reward
    if kind == IMPLICIT:
        score[arm] += (1.0 - reward) / (probability + 0.5 * learning_rate(kind, n, t))
    elif kind == GAPS:
        score[arm] += (1.0 - reward) / probability
    else:
        total = 0.0
        for k in range(len(score)):
            total += np.exp(score[k])  # the largest score is 0
        score[arm] += exploration / n * reward / probability
        if kind == SHARED and share > 0.0:
            given = 1.0 + np.log(share / len(score)) + np.log(total)  # e·α/K of all weight
            for k in range(len(score)):
                high, low = max(score[k], given), min(score[k], given)
                score[k] = high + np.log1p(np.exp(low - high))
    zero = score.max() if kind <= SHARED else score.min()
    for k in range(len(score)):
        score[k] -= zero


@jit
def draw(probability: NDArray[np.float64], u: float) -> int:
    """The arm in whose part of [0, 1) a number lies."""
    last = 0
    for k in range(len(probability)):
        if probability[k] > 0.0:
            if u < probability[k]:
                return k
            u -= probability[k]
            last = k
    return last


@jit
def play(
    kind: int, reward: NDArray[np.float64], u: NDArray[np.float64], n_steps: int, score: NDArray[np.float64],
    plays: NDArray[np.int64], gain: NDArray[np.float64], exploration: float, share: float,
    chosen: NDArray[np.int64],
) -> None:  # fmt: skip
    """Many steps at once; rewards (a row per step) and draws are repeated when they run out."""
    n = reward.shape[1]
    usable, probability = np.ones(n, np.bool_), np.empty(n)
    for t in range(n_steps):
        probabilities(kind, t + 1, score, plays, gain, exploration, usable, probability)
        arm = draw(probability, u[t % len(u)])
        if t < len(chosen):
            chosen[t] = arm
        learn(
            kind, t + 1, score, plays, gain, arm, reward[t % len(reward), arm], probability[arm], exploration, share, n
        )
