"""Pages that change together, folder by folder, and how an engine crawls them."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl.engine import Engine
from recrawl.simulate.run.policies import admit_unknown, learning
from recrawl.simulate.run.run import Contender, simulate
from recrawl.simulate.trace import Trace

URLS = np.array([f"https://site{k // 200}.example/part/{k // 20}/page{k}" for k in range(400)])


def trace_of(rng: np.random.Generator, days: float, *, together: float, alone: float) -> Trace:
    """Pages in folders of twenty: sweeps change most of a folder at once, besides changes of single pages."""
    n = len(URLS)
    page, at = [], []
    for folder in range(n // 20):
        for when in rng.uniform(0, days, rng.poisson(together * days)):
            hit = folder * 20 + np.flatnonzero(rng.random(20) < 0.8)
            page.append(hit)
            at.append(np.full(len(hit), when))
    for k in range(n):
        own = rng.uniform(0, days, rng.poisson(alone * days))
        page.append(np.full(len(own), k))
        at.append(own)
    pages, times = np.concatenate(page), np.concatenate(at)
    order = np.lexsort((times, pages))
    offset = np.concatenate([[0], np.cumsum(np.bincount(pages, minlength=n))])
    return Trace(0.0, days, offset=offset, changed_at=times[order], url=URLS, day=1.0)


def run(trace: Trace, budget: float, **settings: Any) -> tuple[Any, Engine]:
    """(result, engine after it) of the learning policy."""
    held: list[Engine] = []
    make = learning(**settings)

    def keep(trace: Trace, budget: float, rng: np.random.Generator) -> Engine:
        held.append(make(trace, budget, rng))
        return held[0]

    return simulate(Contender("learned", keep, admit_unknown), trace, budget), held[0]
