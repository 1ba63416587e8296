"""The population's tables: prior of (missed rate, precision class) per source and signal rate, by EM over the pages."""

import math

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.jit import inline, jit, jit_lean
from recrawl.engine.signals.arrays import N_BINS, N_EVIDENCE, PRECISIONS, SQUARES, SignalArrays, first_classes, rate_bin
from recrawl.engine.signals.posterior import (
    count_sources,
    fill_common,
    fill_source,
    has_signals,
    host_factor,
    posterior,
    source_posterior,
)

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_PSEUDO = 1.0  # pages that the classes before anything is known are worth
_STRUCTURE = 15.0  # pages that the structure of a table is worth
_LEAST = 1e-30
_NOTHING = 1e-6  # of a posterior: not worth counting
_FIRST_CLASSES = first_classes()


@jit
def structure(b: SignalArrays, classes: Array, rate: float, out: Array) -> None:
    """Prior where signals come at a rate γ: h(p) P(Δ > pγ) and, given p, f(Δ) a/Δ² with Δ = a + pγ."""
    n = b.rates.size
    step = math.log(b.rates[1] / b.rates[0])
    total = 0.0
    for c in range(b.kappas.size):
        signalled = PRECISIONS[c] * rate
        sum_, above = 0.0, 0.0
        for a in range(n):
            d = b.rates[a] + signalled
            x = math.log(d / b.rates[0]) / step
            q = int(x)
            f = 0.0
            if q < n - 1:
                f = math.exp(b.log_base[q]) * (1.0 - x + q) + math.exp(b.log_base[q + 1]) * (x - q)
            elif q == n - 1:
                f = math.exp(b.log_base[q]) * max(1.0 - x + q, 0.0)
            if b.rates[a] > signalled:
                above += math.exp(b.log_base[a])
            out[a, c] = f if c == 0 else (f + 1e-9) * b.rates[a] / (d * d)
            sum_ += out[a, c]
        if c == 0:
            above = 1.0
        for a in range(n):
            out[a, c] *= classes[c] * (above + 1e-3) / sum_
            total += out[a, c]
    for a in range(n):
        for c in range(b.kappas.size):
            out[a, c] /= total


@jit
def set_tables(b: SignalArrays, counts: Array) -> None:
    """Tables and classes from the pages' posteriors, summed; with none, what is assumed at first."""
    n, m = b.rates.size, b.kappas.size
    table = np.zeros((n, m))
    for model in range(2):
        for k in range(b.rate.shape[1]):
            classes = b.classes[model, k]
            for c in range(m):
                classes[c] = _PSEUDO * _FIRST_CLASSES[c] + counts[model, k, :, :, c].sum()
            classes /= classes.sum()
            classes[:] = np.maximum(classes, 1e-4)
            classes /= classes.sum()
            pages = counts[model, k].sum() + _STRUCTURE
            for a in range(n):
                share = (counts[model, k, :, a].sum() + _STRUCTURE * math.exp(b.log_base[a])) / pages
                b.log_missed[model, k, a] = math.log(share + _LEAST)
            for q in range(N_BINS):
                structure(b, classes, b.rates[0] * 2.0 ** (q - 0.5), table)
                total = counts[model, k, q].sum() + _STRUCTURE
                for c in range(m):
                    b.bin_classes[model, k, q, c] = 0.0
                    for a in range(n):
                        share = (counts[model, k, q, a, c] + _STRUCTURE * table[a, c]) / total
                        b.log_table[model, k, q, a, c] = math.log(share + _LEAST)
                        b.bin_classes[model, k, q, c] += share


@jit
def count_rows(b: SignalArrays, rows: Ids, totals: Array, elapsed: Array, counts: Array, out: Array) -> Array:
    """Add the pages' posteriors, with repetitions that count and that do not; ln evidence of both, per source.

    The third row, SQUARES, is the sum of the squared differences of both by page.
    """
    n_sources = b.rate.shape[1]
    evidence = np.zeros((N_EVIDENCE, n_sources))
    table = np.zeros((b.rates.size, b.kappas.size))
    for row in rows:
        posterior(b, row, totals[row], elapsed[row], out)
        limit = fill_common(b, row, totals[row])
        several = count_sources(b, row)
        for k in range(n_sources):
            if not has_signals(b, row, k):
                continue
            bin_ = rate_bin(b, b.rate[row, k])
            gain = 0.0
            for model in range(2):
                fill_source(b, row, (k, model), bin_, b.work[k, :limit])
                one = source_posterior(b, row, (k, model), totals[row], several, table[:limit])
                one += _without_host(b, row, k, model, table[:limit])
                evidence[model, k] += one
                gain = one - gain
                counts[model, k, bin_, :limit] += table[:limit]
            evidence[SQUARES, k] += gain * gain
    return evidence


@inline
def _without_host(b: SignalArrays, row: int, k: int, model: int, posterior: Array) -> float:
    """What is added to a page's ln evidence if its host says nothing: hosts know the posteriors of one model only."""
    total = 0.0
    for c in range(b.kappas.size):
        share = 0.0
        for a in range(posterior.shape[0]):
            share += posterior[a, c]
        total += share / host_factor(b, row, k, c, model)
    return math.log(total)


@jit_lean
def sum_hosts(b: SignalArrays, n_rows: int) -> None:
    """The hosts' sums again, after the tables have changed."""
    b.host_share[:] = 0.0
    b.host_prior[:] = 0.0
    for row in range(n_rows):
        for k in range(b.rate.shape[1]):
            if b.bins[row, k] >= 0:
                add_to_host(b, row, k, 1.0)


@inline
def add_to_host(b: SignalArrays, row: int, k: int, sign: float) -> None:
    """Add a page's classes to its host's, or take them away."""
    h, model = b.host[row], int(b.repeats[k])
    for c in range(b.kappas.size):
        b.host_share[h, k, c] += sign * b.share[row, k, c]
        b.host_prior[h, k, c] += sign * b.bin_classes[model, k, b.bins[row, k], c]


@jit_lean
def update_host(b: SignalArrays, row: int, out: Array) -> None:
    """Let the host know of a page's posterior."""
    for k in range(b.rate.shape[1]):
        if b.bins[row, k] >= 0:
            add_to_host(b, row, k, -1.0)
        b.bins[row, k] = -1
        if has_signals(b, row, k):
            b.bins[row, k] = rate_bin(b, b.rate[row, k])
            for c in range(b.kappas.size):
                total = 0.0
                for a in range(b.rates.size):
                    total += out[k, a, c]
                b.share[row, k, c] = total
            add_to_host(b, row, k, 1.0)


@jit_lean
def forget_row(b: SignalArrays, row: int) -> None:
    """The page of a row is gone: it counts neither in its host's sums nor in the tables."""
    for k in range(b.rate.shape[1]):
        if b.bins[row, k] >= 0:
            add_to_host(b, row, k, -1.0)
    b.bins[row] = -1
    b.statistics[row] = 0.0
    b.ended[row] = math.inf
    b.heard[row] = 0.0
    b.rate[row] = 0.0
    b.share[row] = 0.0


@jit_lean
def add_change_rates(b: SignalArrays, row: int, out: Array, counts: Array) -> None:
    """Add the posterior of a page's change rate to the population's counts over the grid."""
    k = b.main[row]
    step = math.log(b.rates[1] / b.rates[0])
    other = 0.0
    for j in range(b.rate.shape[1]):
        if j != k:
            other -= b.rate[row, j] * math.expm1(-b.mean_kappa[row, j])
    for a in range(b.rates.size):
        for c in range(b.kappas.size):
            if out[k, a, c] < _NOTHING:
                continue
            d = b.rates[a] + PRECISIONS[c] * b.rate[row, k] + other
            q = math.floor(math.log(d / b.rates[0]) / step + 0.5)
            counts[min(max(q, 0), b.rates.size - 1)] += out[k, a, c]
