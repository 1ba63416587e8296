"""Populations of pages with the parameters that a published data set shows."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from recrawl.errors import ParameterError
from recrawl.model.pages import Pages

_MEDIAN_RATE, _RATE_SPREAD = 0.17, 0.5  # changes per day of most pages: lognormal
_FAST_SHARE, _FAST_RATE = 0.18, 5.36  # pages that had changed at every daily crawl
_MEAN_IMPORTANCE, _IMPORTANCE_SPREAD = 1134.0, 1.7  # lognormal
_SIGNALLED_SHARE, _SIGNALLED_IMPORTANCE = 0.04, 0.264  # pages with complete signals, and what they carry
_PRECISION, _RECALL = (0.6, 3.0), (0.8, 1.6)  # Beta distributions of signal quality
_TOP_SHARE = 0.05  # pages with the best signals

SignalKind = Literal["none", "proof", "noisy"]


def uniform_pages(n: int, rng: np.random.Generator, signals: SignalKind = "none") -> Pages:
    """n pages with change rate and importance uniform on [0, 1], as in the experiments of Busa-Fekete et al. 2025.

    ``signals``: "none"; "proof", recall ~ Beta(1/4, 1/4) and no false ones; "noisy", false rates ~ U[0.1, 0.6] too.

    >>> pages = uniform_pages(100, np.random.default_rng(1), "noisy")
    >>> bool((pages.false_rate >= 0.1).all()), bool((pages.change_rate <= 1).all())
    (True, True)
    """
    _check_size(n)
    if signals not in ("none", "proof", "noisy"):
        raise ParameterError(f"signals {signals!r} is not one of none, proof, noisy")
    change_rate, importance = rng.random(n), rng.random(n)
    if signals == "none":
        return Pages(change_rate, importance)
    recall = rng.beta(0.25, 0.25, n)
    return Pages(change_rate, importance, recall, rng.uniform(0.1, 0.6, n) if signals == "noisy" else 0.0)


def bing_signals(n: int, rng: np.random.Generator, least_precision: float = 0.01) -> Pages:
    """The pages of ``bing_like``, all with noisy signals: precision ~ Beta(0.6, 3), recall ~ Beta(0.8, 1.6).

    A top 5% (the pages that ``bing_like`` gives complete signals, and others at random) draw both from the upper 5% of
    the distributions, all others from the rest; Busa-Fekete et al. 2025, figure 5. A precision below
    ``least_precision`` is raised to it: 1/precision, and with it the number of false signals, has no mean otherwise.

    >>> pages = bing_signals(1000, np.random.default_rng(1))
    >>> best = np.sort(pages.recall)[-50:], np.sort(pages.precision)[-50:]
    >>> [round(float(column[0]), 2) for column in best]
    [0.82, 0.54]
    """
    from scipy.special import betaincinv

    if not 0 < least_precision <= 1:
        raise ParameterError(f"least_precision is {least_precision:g}: must be above 0 and at most 1")
    pages = bing_like(n, rng)
    top = np.zeros(n, np.bool_)
    top[np.argsort(pages.recall + rng.random(n))[n - math.ceil(_TOP_SHARE * n) :]] = True
    low, width = np.where(top, 1.0 - _TOP_SHARE, 0.0), np.where(top, _TOP_SHARE, 1.0 - _TOP_SHARE)
    precision, recall = (betaincinv(a, b, low + width * rng.random(n)) for a, b in (_PRECISION, _RECALL))
    precision = np.maximum(precision, least_precision)
    return Pages.from_quality(pages.change_rate, pages.importance, precision=precision, recall=recall)


def bing_like(n: int, rng: np.random.Generator) -> Pages:
    """n pages like the 18.5 million of Kolobov et al. 2019; rates per day.

    A stand-in calibrated to that paper's figures, not the data: change rates 82% lognormal (median 0.17, σ 0.5) and 18%
    at 5.36, importance lognormal (σ 1.7, mean 1134), and 4% of pages, picked at random and scaled to carry 26.4% of
    importance, with complete signals. In expectation its costs per page at a budget of 0.2·n are 2142 (harmonic) and
    962.5 (binary) for crawls in proportion to change rates, and 1279 and 626 for equal rates.

    >>> pages = bing_like(1000, np.random.default_rng(1))
    >>> signalled = pages.recall == 1
    >>> round(float(pages.importance[signalled].sum() / pages.importance.sum()), 3)
    0.264
    """
    _check_size(n)
    change_rate = rng.lognormal(math.log(_MEDIAN_RATE), _RATE_SPREAD, n)
    change_rate[rng.random(n) < _FAST_SHARE] = _FAST_RATE
    centre = math.log(_MEAN_IMPORTANCE) - 0.5 * _IMPORTANCE_SPREAD**2
    importance = rng.lognormal(centre, _IMPORTANCE_SPREAD, n)
    signalled = rng.random(n) < _SIGNALLED_SHARE
    if 0 < np.count_nonzero(signalled) < n:
        total, carried = float(importance.sum()), float(importance[signalled].sum())
        factors = (_SIGNALLED_IMPORTANCE * total / carried, (1 - _SIGNALLED_IMPORTANCE) * total / (total - carried))
        importance *= np.where(signalled, *factors)
    return Pages(change_rate, importance, recall=signalled.astype(float))


def _check_size(n: int) -> None:
    if n < 1:
        raise ParameterError(f"n is {n}: at least one page is needed")
