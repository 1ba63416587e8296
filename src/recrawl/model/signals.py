"""Signal sources: what one signal weighs, and one source that stands for several."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.model.pages import Pages

Array = NDArray[np.float64]


class Source(NamedTuple):
    """One signal source per page: changes it misses, signals it sends, and what each of those weighs."""

    missed_rate: Array
    signal_rate: Array
    weight: Array


def signal_weight(pages: Pages) -> Array:
    """κ: by how much a signal raises the staleness exponent; shape of ``pages.recall``.

    One source: log(1 + recall·Δ / false_rate), which is −log(1 − precision); infinity for a proof. Several independent
    sources: that of a lone signal of source k, log(1 + Δ·recall_k·∏_{j≠k}(1 − recall_j) / false_rate_k).
    Busa-Fekete et al. 2025, eq. 1.

    >>> signal_weight(Pages([1.0, 1.0], recall=[0.5, 0.5], false_rate=[0.5, 0.0])).tolist()
    [0.6931471805599453, inf]
    """
    return _weight(_lone_true_rate(pages), pages.false_rate)


def matched_source(pages: Pages) -> Source:
    """One source per page that stands for all of them: same signals per time, same changes behind them.

    Exact for one source. For several, γ = Σγ_k and γ(1 − e^{−κ}) = Σγ_k(1 − e^{−κ_k}), where a change signalled by two
    sources at once is one signal that is proof.
    """
    missed = pages.missed_rate
    if pages.n_sources == 1:
        return Source(missed, pages.signal_rate, signal_weight(pages))
    caught = pages.change_rate * _any_of(pages.recall)
    false_rate = pages.false_rate.sum(axis=1)
    return Source(missed, caught + false_rate, _weight(caught, false_rate))


def lone_sources(pages: Pages) -> tuple[Array, Array]:
    """Rates (n, k+1) and weights (n, k+1) of lone signals per source and, last, of simultaneous ones (weight ∞)."""
    recall = pages.recall.reshape(len(pages), -1)
    lone = _lone_true_rate(pages).reshape(recall.shape)
    false_rate = pages.false_rate.reshape(recall.shape)
    together = np.maximum(pages.change_rate * _any_of(recall) - lone.sum(axis=1), 0.0)
    together[np.count_nonzero(recall, axis=1) < 2] = 0.0
    weight = _weight(lone, false_rate)
    return np.column_stack([lone + false_rate, together]), np.column_stack([weight, np.full(len(pages), np.inf)])


def _any_of(recall: Array) -> Array:
    """1 − ∏(1 − recall_k), without cancellation for small recalls."""
    caught = np.zeros(len(recall))
    for column in recall.T:
        caught = caught + column * (1.0 - caught)
    return caught


def _lone_true_rate(pages: Pages) -> Array:
    recall = pages.recall
    if recall.ndim == 1:
        return pages.change_rate * recall
    others = np.ones_like(recall)
    for k in range(recall.shape[1]):
        others[:, k] = np.delete(1.0 - recall, k, axis=1).prod(axis=1)
    return pages.change_rate[:, None] * recall * others


def _weight(true_rate: Array, false_rate: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(true_rate > 0, np.log1p(true_rate / false_rate), 0.0)
