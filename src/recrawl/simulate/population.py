"""Populations of pages with the parameters that a published data set shows."""

from __future__ import annotations

import math

import numpy as np

from recrawl.errors import ParameterError
from recrawl.model.pages import Pages

_MEDIAN_RATE, _RATE_SPREAD = 0.17, 0.5  # changes per day of most pages: lognormal
_FAST_SHARE, _FAST_RATE = 0.18, 5.36  # pages that had changed at every daily crawl
_MEAN_IMPORTANCE, _IMPORTANCE_SPREAD = 1134.0, 1.7  # lognormal
_SIGNALLED_SHARE, _SIGNALLED_IMPORTANCE = 0.04, 0.264  # pages with complete signals, and what they carry


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
    if n < 1:
        raise ParameterError(f"n is {n}: at least one page is needed")
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
