"""Each source of signals on each host: how often it was right, what it tells, and whether it counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl._compile.plain import plain
from recrawl.engine.signals.arrays import (
    ALONE,
    BOTH_FIRSTS,
    CHANGED,
    COUNTED,
    FIRSTS,
    FOLLOWS,
    MEAN,
    NEEDED,
    OPEN,
    OPENED,
    PRECISIONS,
    SCORE,
    SHAPE,
    SHUT,
    SHUT_AT,
    WEIGHT,
    SignalArrays,
    is_open,
)
from recrawl.engine.signals.delays import median_delay

if TYPE_CHECKING:
    from recrawl.engine.questions import Questions

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

_TAILS = (0.05, 0.95)  # of the intervals
_SHARED = 0.25  # correlation of the errors of two pages of a host: they have the same prior
_ENDS = np.concatenate([[0.0], (PRECISIONS[1:] + PRECISIONS[:-1]) / 2.0, [1.0]])  # a class stands for those in between
_WITHIN = np.diff(_ENDS) ** 2 / 12.0  # variance of the precisions that a class stands for


class Share(NamedTuple):
    """A share that is not known exactly: its mean and a 90% interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class SourceFacts:
    """A source of signals on one host, as far as the host's pages have had its signals.

    Counts are those that the engine learns from: older ones fade with the engine's ``half_life``, and what was counted
    before the source lost its trust is dropped.
    """

    source: int
    host: str
    pages: int  # that it has signalled
    signals: float  # counted: at most 16 per copy
    waiting: int  # pages with a signal since their copy
    crawls: float  # after signals, with a copy to compare
    changes: float  # that those found
    precision: Share | None  # share of signals with a change behind them, mean over pages; None: not learned
    recall: Share | None  # share of these pages' changes that it tells
    late: float  # mean delay of its signals that do not say when their changes were; 0 until outcomes say otherwise
    counts: bool  # whether its signals bring crawls forward here
    proven: bool  # on this host, by its own gate; else the gate of the source on all hosts decides
    score: float  # by how much it has predicted outcomes better, in logarithms of probabilities
    needed: float  # the score at which its gate opens
    lost_at: float | None  # when it lost its trust, if it has not regained it

    @property
    def trust(self) -> str:
        """Whether its signals count, in words."""
        if self.counts:
            return "counts" if self.proven else "counts as on most hosts"
        return "not proven" if self.lost_at is None else "lost its trust"


@dataclass(frozen=True)
class LostTrust:
    """A source whose signals counted and no longer do: on a host, or with None wherever no host decides by itself."""

    source: int
    host: str | None
    at: float


def source_facts(engine: Questions) -> tuple[SourceFacts, ...]:
    """Every source on every host of whose pages it has signalled one; most pages first."""
    b, hosts = engine.beliefs.belief.signals, engine.beliefs.signals.hosts
    n, k = engine.beliefs.signals.n_rows, b.rate.shape[1]
    row, source = np.nonzero(b.statistics[:n, :, FIRSTS] + b.heard[:n] > 0.0)
    pairs, pair = np.unique(b.host[row] * k + source, return_inverse=True)
    sums = _Sums(b, row, source, pair, len(pairs))
    st = b.statistics[row, source]
    pages, waiting = sums.total(np.ones(len(row))), sums.total(b.heard[row, source] > 0.0)
    signals, crawls = sums.total(st[:, COUNTED] + b.heard[row, source]), sums.total(st[:, FIRSTS])
    changes = sums.total(st[:, CHANGED] + st[:, BOTH_FIRSTS])
    seen = engine.beliefs.belief.seen[b.page[row], 1] + engine.beliefs.belief.evidence[b.page[row], 0]
    precision, recall = sums.precision(crawls), sums.recall(sums.total(seen))
    found = []
    for j, (h, s) in enumerate(zip((pairs // k).tolist(), (pairs % k).tolist(), strict=True)):
        gate, opened = b.host_gate[h, s], plain(is_open)(b, h, s)
        found.append(
            SourceFacts(
                source=s,
                host=hosts[h],
                pages=int(pages[j]),
                signals=float(signals[j]),
                waiting=int(waiting[j]),
                crawls=float(crawls[j]),
                changes=float(changes[j]),
                precision=precision[j],
                recall=recall[j],
                late=median_delay(b.delays, b.host_delay[h, s]),
                counts=opened,
                proven=bool(gate[OPEN] == OPENED),
                score=float(gate[SCORE] if opened else min(gate[SCORE], gate[ALONE])),
                needed=float(gate[NEEDED]),
                lost_at=_lost_at(b.gate[s], gate),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.pages, one.host, one.source)))


def counts_on(engine: Questions, host: str, source: int) -> bool:
    """Whether the signals of a source count on a host."""
    b, number = engine.beliefs.belief.signals, engine.beliefs.signals.host_number(host)
    if source >= len(b.gate):
        return False
    state = b.host_gate[number, source, OPEN] if number >= 0 else FOLLOWS
    return bool(state == OPENED or (state == FOLLOWS and b.gate[source, OPEN] > 0.0))


def lost_trust(engine: Questions) -> tuple[LostTrust, ...]:
    """Sources that have lost their trust and not regained it, the latest first."""
    b = engine.beliefs.belief.signals
    found = [LostTrust(k, None, at) for k, gate in enumerate(b.gate) if (at := _lost_at(gate, gate)) is not None]
    for host, gates in engine.beliefs.signals.host_gates().items():
        found += [LostTrust(k, host, float(gate[SHUT_AT])) for k, gate in enumerate(gates) if gate[OPEN] == SHUT]
    return tuple(sorted(found, key=lambda one: (-one.at, one.source, one.host or "")))


def _lost_at(source: Array, host: Array) -> float | None:
    """When a source lost its trust on a host, from both gates; None if it counts there or never did."""
    gate = source if host[OPEN] == FOLLOWS else host
    return float(gate[SHUT_AT]) if gate[OPEN] != OPENED and math.isfinite(gate[SHUT_AT]) else None


class _Sums:
    """Sums over the pages of each pair of host and source, of pages that the source has signalled."""

    def __init__(self, b: SignalArrays, row: Ids, source: Ids, pair: Ids, n_pairs: int) -> None:
        self._b, self._row, self._source, self._pair, self._n = b, row, source, pair.ravel(), n_pairs
        share = b.share[row, source].astype(np.float64)
        self._mean = share @ PRECISIONS
        self._variance = np.maximum(share @ PRECISIONS**2 - self._mean**2, 0.0)
        self._within = share @ _WITHIN
        self._learned = b.bins[row, source] >= 0

    def total(self, column: NDArray[np.generic]) -> Array:
        """Sums by pair."""
        return np.asarray(np.bincount(self._pair, np.asarray(column, np.float64), self._n), np.float64)

    def variance(self, error: Array) -> Array:
        """Variances of sums over pages, from the standard errors of the pages."""
        return (1.0 - _SHARED) * self.total(error**2) + _SHARED * self.total(error) ** 2

    def precision(self, crawls: Array) -> list[Share | None]:
        """Mean over pages. Each crawl after a signal tells at most one outcome, whatever the pages share."""
        learned = self._learned
        n = self.total(learned)
        mean = self.total(learned * self._mean) / np.maximum(n, 1.0)
        variance = self.variance(learned * np.sqrt(self._variance)) / np.maximum(n, 1.0) ** 2
        within = self.total(learned * self._within) / np.maximum(n, 1.0)  # the same for all pages
        return _shares(mean, variance + within, crawls, n > 0.0)

    def recall(self, changes: Array) -> list[Share | None]:
        """Signalled changes over all changes, per time. Each change found tells at most one outcome.

        The errors of signalled and of missed changes are taken to have opposite signs.
        """
        b, row, k = self._b, self._row, self._source
        rates = -b.rate[row] * np.expm1(-b.mean_kappa[row])
        rate = b.rate[row, k].astype(np.float64)
        signalled = rates[np.arange(len(row)), k].astype(np.float64)
        weight, mean, shape = (b.components[row, :, field].astype(np.float64) for field in (WEIGHT, MEAN, SHAPE))
        missed = (weight * mean).sum(axis=1)
        second = (weight * mean**2 * (1.0 + 1.0 / np.maximum(shape, 1e-9))).sum(axis=1)
        spread = np.sqrt(np.maximum(second - missed**2, 0.0))
        heard = b.statistics[row, k, FIRSTS] + np.minimum(b.heard[row, k], 1.0) + 1.0
        spread_signalled = np.sqrt(rate**2 * self._variance + signalled**2 / heard)
        of = self.total(missed + rates.sum(axis=1))
        recall = np.minimum(self.total(signalled) / np.maximum(of, 1e-300), 1.0)
        mine = recall[self._pair]
        variance = self.variance((1.0 - mine) * spread_signalled + mine * spread) / np.maximum(of, 1e-300) ** 2
        return _shares(recall, variance, changes, self.total(self._learned) > 0.0)


def _shares(mean: Array, variance: Array, outcomes: Array, known: NDArray[np.bool_]) -> list[Share | None]:
    """Intervals of the beta distributions with these means and variances, of no more outcomes than there were."""
    from scipy.special import betaincinv

    mean = np.clip(mean, 1e-6, 1.0 - 1e-6)
    count = np.minimum(mean * (1.0 - mean) / np.maximum(variance, 1e-12) - 1.0, outcomes + 1.0)
    count = np.maximum(count, 0.1)
    low, high = (betaincinv(mean * count, (1.0 - mean) * count, tail) for tail in _TAILS)
    ends = zip(mean, np.minimum(low, mean), np.maximum(high, mean), known, strict=True)
    return [Share(float(m), float(a), float(z)) if there else None for m, a, z, there in ends]
