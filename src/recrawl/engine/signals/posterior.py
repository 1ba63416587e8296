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
    FIRSTS,
    GIVEN_CHANGES,
    GIVEN_TIME,
    LOG_CLOCK,
    LOG_TIME,
    MOST_SIGNALS,
    N_CLASSES,
    PRECISIONS,
    UNCHANGED,
    UNCHANGED_REPEATS,
    SignalArrays,
    rate_bin,
)
from recrawl.model.kernels.elementary import exp_all, largest, log_all, sum_of

Array = NDArray[np.float64]

_HOST_PAGES = 2.0  # pages that a host's classes are worth before anything is known of them
_LEAST = 1e-300
_AT_RATES, _CONSTANTS, _DECAYS = 0, 2, 3  # rows of scratch
_EXCLUDED = 30.0  # a rate that is less likely by this logarithm is left out


@inline
def signal_rate(b: SignalArrays, row: int, k: int, elapsed: float) -> float:
    """Signals of source k per clock time, `elapsed` after the copy: up to a number of each copy.

    After each copy the clock stops at the last signal that counts. A flood counts no more than that per crawl.
    """
    st, heard = b.statistics[row, k], b.heard[row, k]
    time = b.last[row, k] if heard >= MOST_SIGNALS else elapsed
    return float((st[COUNTED] + min(heard, MOST_SIGNALS) + 1.0) / (st[COUNTED_TIME] + time + 1.0 / b.mean_rate[k]))


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
def fill_source(b: SignalArrays, row: int, source: tuple[int, int], bin_: int, out: Array) -> None:
    """ln (prior x likelihood) of what a source says, over (missed rate, class); (source, whether repetitions count)."""
    k, model = source
    st, decays = b.statistics[row, k], b.room[_AT_RATES]
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
    constants, decays_of_class = b.room[_CONSTANTS], b.room[_DECAYS]
    for c in range(N_CLASSES):
        constants[c] = math.log(host_factor(b, row, k, c, model)) - b.kappas[c] * exposed
        decays_of_class[c] = math.exp(-b.kappas[c] * n)
    for a in range(out.shape[0]):
        decays[a] = -b.rates[a] * time
    exp_all(decays[: out.shape[0]])
    for a in range(out.shape[0]):
        for c in range(N_CLASSES):
            out[a, c] = max(1.0 - decays_of_class[c] * decays[a], _LEAST)
    log_all(out.reshape(out.size))
    for a in range(out.shape[0]):
        for c in range(N_CLASSES):
            out[a, c] = table[a, c] + constants[c] + changed * out[a, c]


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
    most, limit, terms = -math.inf, 0, b.room[_AT_RATES]
    if changed > 1e-9:
        for a in range(b.rates.size):
            terms[a] = -b.rates[a] * time
        exp_all(terms)
        for a in range(b.rates.size):
            terms[a] = max(1.0 - terms[a], _LEAST)
        log_all(terms)
    for a in range(b.rates.size):
        common[a, 0] = -b.rates[a] * totals[CLOCK]
        if changed > 1e-9:
            common[a, 0] += changed * terms[a]
        most = max(most, common[a, 0])
        if common[a, 0] > most - _EXCLUDED:
            limit = a + 1
    return int(b.rates.size) if _is_given(totals) else limit  # a given rate can outweigh what the time excludes


@inline
def _normalise(table: Array) -> float:
    """Turn logarithms into shares; the logarithm of their sum."""
    flat = table.reshape(table.size)
    top = largest(flat)
    for j in range(flat.size):
        gap = flat[j] - top
        flat[j] = gap if gap > -_EXCLUDED else -math.inf
    exp_all(flat)
    total = sum_of(flat)
    for j in range(flat.size):
        flat[j] /= total
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
        fill_source(b, row, (k, int(b.repeats[k])), rate_bin(b, b.rate[row, k]), b.work[k, :limit])
        out[k, limit:] = 0.0
    if several > 1:
        for k in range(n_sources):
            if has_signals(b, row, k):
                model = int(b.repeats[k])
                for a in range(limit):
                    total = 0.0
                    for c in range(b.kappas.size):
                        total += math.exp(max(b.work[k, a, c] - b.log_missed[model, k, a], -700.0))
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
