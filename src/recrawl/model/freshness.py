"""What a crawl rate earns: freshness, harmonic penalty, age, and how fast they change with the rate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.model.kinds import Objective, Spacing, choose_kinds, first_row, one_if_constant
from recrawl.model.pages import Pages

Array = NDArray[np.float64]


def page_freshness(pages: Pages, crawl_rate: ArrayLike, *, spacing: Spacing = "even") -> Array:
    """Share of time that each page's copy is fresh when crawled at a rate.

    x = Δ/rate: even (1 − e^{−x})/x, random 1/(1 + x), in steps p/(p + Δ − pΔ); with noisy signals (even) that of the
    threshold policy with this rate. Azar et al. 2018, eqs. 1, 2, 6; Busa-Fekete et al. 2025, Theorem 1.

    >>> page_freshness(Pages([1.0, 3.0]), 1.0, spacing="random").tolist()
    [0.5, 0.25]
    """
    return _outcomes(1, pages, crawl_rate, "freshness", spacing)


def page_cost(
    pages: Pages, crawl_rate: ArrayLike, objective: Objective = "freshness", *, spacing: Spacing = "even"
) -> Array:
    """What an objective that is minimised charges each page at a rate, per unit of importance.

    freshness: 1 − freshness (the binary cost); harmonic: mean of 1 + 1/2 + … + 1/n over n unseen changes, for random
    spacing log(1 + Δ/rate); age: mean time since the first unseen change. Kolobov et al. 2019, eqs. 2–5.

    >>> page_cost(Pages([1.0]), 1.0, "harmonic", spacing="random").tolist() == [np.log(2.0)]
    True
    """
    gain = _outcomes(0, pages, crawl_rate, objective, spacing)
    return 1.0 - gain if objective == "freshness" else -gain


def marginal_value(
    pages: Pages, crawl_rate: ArrayLike, objective: Objective = "freshness", *, spacing: Spacing = "even"
) -> Array:
    """What one more crawl per time would earn on each page: importance · d gain / d rate, in importance × time.

    For even spacing it is the crawl value at elapsed = 1/rate. At an optimum it is the same on all pages that are
    crawled, and no larger on the others.

    >>> marginal_value(Pages([1.0]), 1.0, spacing="random").tolist()
    [0.25]
    """
    return pages.importance * _outcomes(2, pages, crawl_rate, objective, spacing)


def _outcomes(what: int, pages: Pages, crawl_rate: ArrayLike, objective: str, spacing: str) -> Array:
    from recrawl.model.kernels.outcomes import fill_outcomes

    rate = np.atleast_1d(np.asarray(crawl_rate, dtype=np.float64))
    first_row("crawl_rate", ~(rate >= 0), "must be at least 0")
    n = max(len(pages), len(rate))
    if {len(pages), len(rate)} - {1, n}:
        raise ParameterError(f"crawl_rate has {len(rate)} rows but there are {len(pages)} pages")
    if spacing == "steps":
        first_row("crawl_rate", rate > 1, "is a probability per step with spacing 'steps': at most 1")
    kind, source = choose_kinds(pages, objective, spacing)
    out = np.empty(n)
    columns = (pages.change_rate, np.ones(1), pages.evidence, *source, rate)
    fill: Any = fill_outcomes
    fill(what, kind, *(one_if_constant(column) for column in columns), out)
    return out
