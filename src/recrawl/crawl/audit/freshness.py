"""Freshness of the copies of a crawl as it is reported: expected now, found so far, or not known yet."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.engine import Engine
from recrawl.engine.views.expected import expected_fresh
from recrawl.schedule.exact import access

Ids = NDArray[np.int64]

ENOUGH = 50  # comparisons before freshness is reported; with few pages two for each of them


def audited_pages(engine: Engine) -> Ids:
    """The pages that audits draw from: all that are not paused."""
    ids = engine.ids()
    return ids[~engine.is_paused(ids)]


def expected_freshness(engine: Engine, now: float) -> float:
    """The expected share of fresh copies, weighted by importance; a page without a copy is not fresh."""
    ids = audited_pages(engine)
    weight = access.importance(engine.scheduler, ids)
    if not weight.sum() > 0:
        return math.nan
    return float(np.average(expected_fresh(engine, ids, now), weights=weight))


class Freshness(NamedTuple):
    """What is known of how fresh the copies are; None: not known yet.

    ``now`` is expected by the change rates, ``so_far`` is the share of past time by what crawls found. Both are None
    until ``comparisons`` of a page with its copy were made as often as ``needed``: until then they would repeat what
    was assumed of the pages.
    """

    now: float | None
    so_far: float | None
    comparisons: int
    needed: int

    @property
    def known(self) -> bool:
        """Whether there were enough comparisons."""
        return self.comparisons >= self.needed

    def __str__(self) -> str:
        if not self.known:
            return f"not known yet: {self.comparisons} of {self.needed} comparisons were made"
        return "not known" if self.now is None else f"{self.now:.3f} (expected)"


def reported_freshness(engine: Engine, now: float) -> Freshness:
    """The freshness of all pages that are not paused, weighted by importance, as every command reports it."""
    unknown = int((~engine.beliefs.belief.fixed_rate[engine.ids()]).sum())
    made, needed = engine.beliefs.crawls, min(ENOUGH, 2 * unknown)
    if made < needed:
        return Freshness(None, None, made, needed)
    expected = expected_freshness(engine, now)
    return Freshness(None if math.isnan(expected) else expected, _so_far(engine, now), made, needed)


def _so_far(engine: Engine, now: float) -> float | None:
    """Share of past time in which copies were fresh, by the outcomes of crawls; None before the first outcome."""
    ledger = engine.ledger(now, audited_pages(engine))
    return 1.0 - ledger.staleness if ledger.time > 0.0 else None
