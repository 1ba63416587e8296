"""What a signal and a crawl's outcome do to the statistics of a page with signals."""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import jit_lean
from recrawl.engine.signals.arrays import (
    BEGAN,
    BOTH,
    BOTH_FIRSTS,
    BOTH_LOG_TIME,
    BOTH_REPEATS,
    CHANGED,
    CHANGED_REPEATS,
    CHANGES,
    CLOCK,
    COUNTED,
    COUNTED_TIME,
    EXPOSURE,
    FIRSTS,
    FOUND,
    LOG_CLOCK,
    LOG_TIME,
    MOST_SIGNALS,
    TOOK,
    UNCHANGED,
    UNCHANGED_REPEATS,
    SignalArrays,
)
from recrawl.engine.signals.components import change_rate_moments, update_components
from recrawl.engine.signals.delays import credit_at
from recrawl.engine.signals.posterior import has_signals
from recrawl.engine.signals.tables import add_to_host, update_host

Array = NDArray[np.float64]

_FEW = 4.0  # with so few signals of a source, each of them changes what is believed at once


@jit_lean
def begin_row(b: SignalArrays, row: int, host: int, totals: Array) -> None:
    """A page's first signal: until now it was watched without any."""
    b.host[row] = host
    watched = totals[CLOCK]
    if totals[CHANGES] > 0.0:
        watched += totals[CHANGES] * math.exp(totals[LOG_CLOCK] / totals[CHANGES])
    for k in range(b.rate.shape[1]):
        b.statistics[row, k, EXPOSURE] = b.statistics[row, k, COUNTED_TIME] = watched


@jit_lean
def set_age(b: SignalArrays, row: int, k: int, age: float) -> None:
    """Of the signals of source k since the copy, that of the largest credit came at an age."""
    b.age[row, k] = age
    b.credit[row, k] = credit_at(b.delays, b.delay[k], b.host_delay[b.host[row], k], age)


@jit_lean
def hear(b: SignalArrays, row: int, k: int, totals: Array, times: tuple[float, float], out: Array) -> None:
    """Count a signal of source k; `times` since the copy by the clock, and `age` as in the arrays."""
    elapsed, age = times
    b.heard[row, k] += 1.0
    if b.heard[row, k] > MOST_SIGNALS:
        return
    b.last[row, k] = elapsed
    set_age(b, row, k, age if b.heard[row, k] == 1.0 else max(b.age[row, k], age))
    if b.heard[row, k] == 1.0:
        b.first[row, k] = elapsed
    if b.statistics[row, k, COUNTED] + b.heard[row, k] <= _FEW:
        update_components(b, row, totals, elapsed, out)


@jit_lean
def add_outcome(b: SignalArrays, row: int, elapsed: float, changed: bool, keep: float) -> None:
    """Add an interval to the fading sums; `keep` is what is left of the older ones."""
    several = 0
    for k in range(b.rate.shape[1]):
        several += b.heard[row, k] > 0.0
    for j in range(b.both.shape[1]):
        b.both[row, j] *= keep
    if changed and several > 1:
        b.both[row, BOTH] += 1.0
        b.both[row, BOTH_LOG_TIME] += math.log(elapsed)
    for k in range(b.rate.shape[1]):
        st = b.statistics[row, k]
        for j in range(st.size):
            st[j] *= keep
        if b.heard[row, k] <= 0.0:
            st[EXPOSURE] += elapsed
            st[COUNTED_TIME] += elapsed
            continue
        repeats = min(b.heard[row, k], MOST_SIGNALS) - 1.0
        st[COUNTED] += 1.0 + repeats
        st[COUNTED_TIME] += b.last[row, k] if b.heard[row, k] >= MOST_SIGNALS else elapsed
        st[FIRSTS] += 1.0
        st[EXPOSURE] += b.first[row, k]
        if not changed:
            st[UNCHANGED] += 1.0
            st[UNCHANGED_REPEATS] += repeats
        elif several > 1:
            st[BOTH_FIRSTS] += 1.0
            st[BOTH_REPEATS] += repeats
        else:
            st[CHANGED] += 1.0
            st[LOG_TIME] += math.log(elapsed)
            st[CHANGED_REPEATS] += math.log1p(repeats)  # as of times: the mean of ln P(changed) is met best


@jit_lean
def learn_row(b: SignalArrays, row: int, totals: Array, outcome: tuple[float, bool, float], out: Array) -> None:
    """Learn from (clock time since the copy, changed, keep); `totals` have the outcome already."""
    add_outcome(b, row, outcome[0], outcome[1], outcome[2])
    b.heard[row] = 0.0
    update_components(b, row, totals, 0.0, out)
    update_host(b, row, out)


@jit_lean
def confirm(b: SignalArrays, row: int, k: int, share: float) -> None:
    """Count a signal of source k in the interval `ended`, after a share of it."""
    st, time = b.statistics[row, k], b.ended[row, TOOK]
    if b.ended[row, FOUND] > 0.0:
        st[CHANGED] += 1.0
        st[LOG_TIME] += math.log(time)
    else:
        st[UNCHANGED] += 1.0
    st[FIRSTS] += 1.0
    st[COUNTED] += 1.0
    st[EXPOSURE] = max(st[EXPOSURE] - (1.0 - share) * time, 0.0)
    b.ended[row, BEGAN] = math.inf


@jit_lean
def settle(b: SignalArrays, row: int, k: int) -> tuple[float, float]:
    """Forget what source k earned on a page; (changes, time) that keep what is known of its change rate.

    Intervals that ended because of signals say too much of change rates, so that they cannot stay in the totals.
    Where other sources have signalled, all but source k stays as it is, and the answer is negative.
    """
    others = False
    for j in range(b.rate.shape[1]):
        others = others or (j != k and has_signals(b, row, j))
    mean, variance = change_rate_moments(b, row)
    if b.bins[row, k] >= 0:
        add_to_host(b, row, k, -1.0)
    b.bins[row, k] = -1
    b.share[row, k] = 0.0
    b.statistics[row, k] = 0.0
    b.ended[row, BEGAN] = math.inf
    if others:
        return -1.0, -1.0
    b.both[row] = 0.0
    variance = max(variance, (0.15 * mean) ** 2)
    first = second = 0.0
    for a in range(b.rates.size):
        first += math.exp(b.log_base[a]) * b.rates[a]
        second += math.exp(b.log_base[a]) * b.rates[a] ** 2
    spread = max(second - first * first, 1e-6 * first * first)
    changes = max(mean * mean / variance - first * first / spread, 0.0)
    return changes, changes / mean
