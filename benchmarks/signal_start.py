"""Pages with noisy signals as they are in the long run, when each is crawled as soon as its value reaches a threshold.

Signals come at one rate for every page, whatever the page's parameters say: that is what the benchmark sends.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl import Pages
from recrawl._compile.jit import jit
from recrawl.model import matched_source
from recrawl.model.kernels.signal_inverse import signal_inverse
from recrawl.model.kernels.signals import ALL_TERMS, signal_interval

_SAMPLE = 20_000
_LONG = 30.0  # pages are followed for this time and up to twice as much


def threshold(pages: Pages, crawls: float, signals: float) -> float:
    """The value at which so many crawls per page and time are made, with so many signals per page and time."""
    columns = [column[:_SAMPLE] for column in _columns(pages)]
    low, high = 0.0, 1e3
    while high - low > 1e-7 * high:
        middle = 0.5 * (low + high)
        if _mean_rate(*columns, middle, signals) > crawls:
            low = middle
        else:
            high = middle
    return high


def long_run(pages: Pages, level: float, signals: float, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """(age of every copy, signals since its fetch)."""
    age, heard = np.empty(len(pages)), np.empty(len(pages), dtype=np.int16)
    _follow(*_columns(pages), level, signals, rng, age, heard)
    return age, heard


def _columns(pages: Pages) -> list[NDArray[np.float64]]:
    source = matched_source(pages)
    columns = (*source, pages.change_rate, pages.importance)
    return [np.ascontiguousarray(np.broadcast_to(column, (len(pages),))) for column in columns]


@jit
def _due(alpha: float, gamma: float, kappa: float, change_rate: float, importance: float, level: float) -> float:
    """The exponent at which the value reaches the level."""
    if importance <= 0.0 or level * change_rate >= importance:
        return math.inf
    return signal_inverse(alpha, gamma, kappa, change_rate, level / importance, ALL_TERMS, 0.0)


@jit
def _mean_rate(
    alpha: Any, gamma: Any, kappa: Any, change_rate: Any, importance: Any, level: float, signals: float
) -> float:
    total = 0.0
    for i in range(alpha.size):
        due = _due(alpha[i], gamma[i], kappa[i], change_rate[i], importance[i], level)
        if due < math.inf:
            total += 1.0 / signal_interval(alpha[i], signals, kappa[i], due, 0.0)
    return total / alpha.size


@jit
def _follow(
    alpha: Any,
    gamma: Any,
    kappa: Any,
    change_rate: Any,
    importance: Any,
    level: float,
    signals: float,
    rng: np.random.Generator,
    age: Any,
    heard: Any,
) -> None:
    for i in range(alpha.size):
        due = _due(alpha[i], gamma[i], kappa[i], change_rate[i], importance[i], level)
        now = last = -_LONG * (1.0 + rng.random())
        exponent, n = 0.0, 0
        while True:
            wait = -math.log(1.0 - rng.random()) / signals
            crossing = (due - exponent) / alpha[i] if alpha[i] > 0.0 else math.inf
            now += min(wait, crossing)
            if now >= 0.0:
                break
            exponent += alpha[i] * wait + kappa[i]
            n += 1
            if crossing <= wait or exponent >= due:
                last, exponent, n = now, 0.0, 0
        age[i] = -last
        heard[i] = n
