"""Posterior of a page's missed rate and of each source's precision, from its statistics and the population's tables.

Given the missed rate a, the sources of a page are independent but for the changed intervals in which several of them
signalled. Those enter the table of a source with the other sources at their mean weight, one source after the other:
two sources that tell of the same changes share the credit. The cost is linear in the number of sources.
"""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit_lean
from recrawl.engine.signals.arrays import (
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
    GIVEN_CHANGES,
    GIVEN_TIME,
    LOG_CLOCK,
    LOG_TIME,
    MOST_SIGNALS,
    PRECISIONS,
    UNCHANGED,
    UNCHANGED_REPEATS,
    SignalArrays,
    rate_bin,
)

Array = NDArray[np.float64]

_HOST_PAGES = 2.0  # pages that a host's classes are worth before anything is known of them
_LEAST = 1e-300
_EXCLUDED = 30.0  # a rate that is less likely by this logarithm is left out


@inline
def signal_rate(b: SignalArrays, row: int, k: int, elapsed: float) -> float:
    """Signals of source k per clock time, `elapsed` after the copy: first ones until they come, or all up to a number.

    After each copy the clock stops at the last signal that counts. A flood counts no more than that per crawl.
    """
    st, heard = b.statistics[row, k], b.heard[row, k]
    if b.repeats[k] > 0.0:
        time = b.last[row, k] if heard >= MOST_SIGNALS else elapsed
        return float((st[COUNTED] + min(heard, MOST_SIGNALS) + 1.0) / (st[COUNTED_TIME] + time + 1.0 / b.mean_rate[k]))
    time = b.first[row, k] if heard > 0.0 else elapsed
    return float((st[FIRSTS] + min(heard, 1.0) + 1.0) / (st[EXPOSURE] + time + 1.0 / b.mean_rate[k]))


@inline
def has_signals(b: SignalArrays, row: int, k: int) -> bool:
    """Whether source k has ever signalled the page."""
    return bool(b.statistics[row, k, FIRSTS] + b.heard[row, k] > 0.0)


@inline
def count_sources(b: SignalArrays, row: int) -> int:
    """How many sources have ever signalled the page."""
    n = 0
    for k in range(b.statistics.shape[1]):
        n += has_signals(b, row, k)
    return n


@inline
def _is_given(totals: Array) -> bool:
    return bool(totals[GIVEN_CHANGES] > 0.0 or totals[GIVEN_TIME] > 0.0)


@inline
def is_alone(several: int, totals: Array) -> bool:
    """Whether nothing but the silent terms is added to what a source says: there is no other, and no given rate."""
    return several == 1 and not _is_given(totals)


@inline
def host_factor(b: SignalArrays, row: int, k: int, c: int, model: int) -> float:
    """What the host's other pages say about class c: their posterior over their prior."""
    h = b.host[row]
    own = b.bins[row, k]
    posterior, prior = b.host_share[h, k, c], b.host_prior[h, k, c]
    if own >= 0:
        posterior -= b.share[row, k, c]
        prior -= b.bin_classes[model, k, own, c]
    least = _HOST_PAGES * b.classes[model, k, c]
    return float((max(posterior, 0.0) + least) / (max(prior, 0.0) + least))


@inline
def _changed_term(count: float, decay: float) -> float:
    return count * math.log(max(1.0 - decay, _LEAST))


@jit_lean
def fill_source(b: SignalArrays, row: int, source: tuple[int, int], bin_: int, alone: bool, out: Array) -> None:
    """ln (prior x likelihood) of what a source says, over (missed rate, class); (source, whether repetitions count).

    With `alone` nothing but the silent terms (`fill_common`) is added later: what they exclude is not computed.
    """
    k, model = source
    st, common, decays = b.statistics[row, k], b.work[b.statistics.shape[1]], b.room[0]
    exposed = st[UNCHANGED] + model * st[UNCHANGED_REPEATS]
    changed = st[CHANGED]
    table = b.log_table[model, k, bin_]
    if not changed > 0.0:
        for c in range(b.kappas.size):
            constant = math.log(host_factor(b, row, k, c, model)) - b.kappas[c] * exposed
            for a in range(out.shape[0]):
                out[a, c] = table[a, c] + constant
        return
    time = math.exp(st[LOG_TIME] / changed)
    n = min(math.exp(model * st[CHANGED_REPEATS] / changed), MOST_SIGNALS)
    for a in range(out.shape[0]):
        decays[a] = math.exp(-b.rates[a] * time)
    top = -math.inf
    for c in range(b.kappas.size):
        kappa = b.kappas[c]
        constant = math.log(host_factor(b, row, k, c, model)) - kappa * exposed
        decay = math.exp(-kappa * n)
        for a in range(out.shape[0]):
            value = table[a, c] + constant
            if alone and value + common[a, 0] < top - _EXCLUDED:
                value = -math.inf
            else:
                value += _changed_term(changed, decay * decays[a])
                top = max(top, value + common[a, 0])
            out[a, c] = value


@jit_lean
def fill_common(b: SignalArrays, row: int, totals: Array) -> int:
    """Write the silent term of each rate; how many rates, from the lowest on, the unchanged time does not exclude.

    It is the ln likelihood of the unchanged time, and of the changed intervals in which no source signalled.
    """
    common = b.work[b.statistics.shape[1]]
    changed, log_time = totals[CHANGES] - b.both[row, BOTH], totals[LOG_CLOCK] - b.both[row, BOTH_LOG_TIME]
    for k in range(b.statistics.shape[1]):
        changed -= b.statistics[row, k, CHANGED]
        log_time -= b.statistics[row, k, LOG_TIME]
    time = math.exp(log_time / changed) if changed > 1e-9 else 0.0
    most, limit = -math.inf, 0
    for a in range(b.rates.size):
        common[a, 0] = -b.rates[a] * totals[CLOCK]
        if changed > 1e-9:
            common[a, 0] += _changed_term(changed, math.exp(-b.rates[a] * time))
        most = max(most, common[a, 0])
        if common[a, 0] > most - _EXCLUDED:
            limit = a + 1
    return int(b.rates.size) if _is_given(totals) else limit  # a given rate can outweigh what the time excludes


@inline
def _normalise(table: Array) -> float:
    """Turn logarithms into shares; the logarithm of their sum."""
    top = table[0, 0]
    for a in range(table.shape[0]):
        for c in range(table.shape[1]):
            top = max(top, table[a, c])
    total = 0.0
    for a in range(table.shape[0]):
        for c in range(table.shape[1]):
            table[a, c] = math.exp(table[a, c] - top) if table[a, c] > top - _EXCLUDED else 0.0
            total += table[a, c]
    for a in range(table.shape[0]):
        for c in range(table.shape[1]):
            table[a, c] /= total
    return float(top + math.log(total))


@inline
def _mean_precision(table: Array) -> float:
    total = 0.0
    for a in range(table.shape[0]):
        for c in range(table.shape[1]):
            total += table[a, c] * PRECISIONS[c]
    return total


@jit_lean
def posterior(b: SignalArrays, row: int, totals: Array, elapsed: float, out: Array) -> None:
    """Posterior (missed rate, class) of every source with signals into `out`; writes its rate and mean weight."""
    n_sources = b.statistics.shape[1]
    messages = b.messages
    limit = fill_common(b, row, totals)
    several = count_sources(b, row)
    for k in range(n_sources):
        b.mean_kappa[row, k] = 0.0
        if not has_signals(b, row, k):
            b.rate[row, k] = 0.0
            continue
        b.rate[row, k] = signal_rate(b, row, k, elapsed)
        alone = is_alone(several, totals)
        fill_source(b, row, (k, int(b.repeats[k])), rate_bin(b, b.rate[row, k]), alone, b.work[k, :limit])
        out[k, limit:] = 0.0
    if several > 1:
        for k in range(n_sources):
            if has_signals(b, row, k):
                for a in range(limit):
                    total = 0.0
                    for c in range(b.kappas.size):
                        total += math.exp(max(b.work[k, a, c] - b.log_base[a], -700.0))
                    messages[a, k] = math.log(total + _LEAST)
    for _ in range(2 if several > 1 else 1):
        for k in range(n_sources):
            if has_signals(b, row, k):
                source_posterior(b, row, (k, int(b.repeats[k])), totals, several, out[k, :limit])
                b.mean_kappa[row, k] = -math.log1p(-_mean_precision(out[k, :limit]))


@jit_lean
def source_posterior(
    b: SignalArrays, row: int, source: tuple[int, int], totals: Array, several: int, out: Array
) -> float:
    """Posterior of (source, model), the others as they are in `work` and at their mean weights; its log evidence."""
    k, model = source
    last = b.statistics.shape[1]
    common, messages = b.work[last], b.messages
    both = b.both[row, BOTH] if several > 1 else 0.0
    time = math.exp(b.both[row, BOTH_LOG_TIME] / both) if both > 0.0 else 0.0
    signalled, exponent = 0.0, 0.0
    for j in range(last):
        if j != k:
            signalled -= b.rate[row, j] * math.expm1(-b.mean_kappa[row, j])
            if both > 0.0 and b.mean_kappa[row, j] > 0.0:
                exponent += b.mean_kappa[row, j] * both_count(b, row, j, int(b.repeats[j])) / both
    n = both_count(b, row, k, model) / both if both > 0.0 else 0.0
    given = _is_given(totals)
    for a in range(out.shape[0]):
        start = common[a, 0]
        if several > 1:
            for j in range(last):
                if j != k and has_signals(b, row, j):
                    start += messages[a, j]
        decay = math.exp(-b.rates[a] * time - exponent) if both > 0.0 else 0.0
        for c in range(b.kappas.size):
            value = start + b.work[k, a, c]
            if both > 0.0:
                value += _changed_term(both, decay * math.exp(-b.kappas[c] * n))
            if given:
                d = b.rates[a] + PRECISIONS[c] * b.rate[row, k] + signalled
                value += totals[GIVEN_CHANGES] * math.log(d) - totals[GIVEN_TIME] * d
            out[a, c] = value
    return _normalise(out)


@inline
def both_count(b: SignalArrays, row: int, k: int, model: int) -> float:
    """Signals of source k in the changed intervals in which several sources signalled."""
    st = b.statistics[row, k]
    return float(st[BOTH_FIRSTS] + model * st[BOTH_REPEATS])
