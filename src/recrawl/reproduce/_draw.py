"""Poisson worlds: changes of pages at their rates, signals by recall and false rate, late if asked to be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recrawl.model.pages import Pages
from recrawl.simulate.trace import Signals, Trace

Array = NDArray[np.float64]
Ids = NDArray[np.int64]


def poisson_trace(
    pages: Pages, horizon: float, rng: np.random.Generator, *, delay: float | None = None, dated: bool = False
) -> Trace:
    """What happens to pages up to a horizon; with ``delay`` signals come late by Poisson(6)·delay.

    Signals that are ``dated`` say when the change was (false ones, when they were sent).
    """
    offset, changed_at = _events(pages.change_rate, horizon, rng)
    signals = None
    if pages.has_signals:
        told = rng.random(len(changed_at)) < np.repeat(pages.recall, np.diff(offset))
        false_offset, false_at = _events(pages.false_rate, horizon, rng)
        page = np.concatenate([_page(offset)[told], _page(false_offset)])
        at = np.concatenate([changed_at[told], false_at])
        about = at if dated else np.full(len(at), np.inf)
        if delay is not None:
            at = at + rng.poisson(6.0, len(at)) * delay
        came = at < horizon
        signals = Signals.of(at[came], page[came], changed_at=about[came])
    return Trace(0.0, horizon, offset, changed_at, pages.importance, pages=pages, signals=signals)


def _events(rate: Array, horizon: float, rng: np.random.Generator) -> tuple[Ids, Array]:
    """Times of Poisson processes, sorted within each page."""
    offset = np.concatenate([[0], np.cumsum(rng.poisson(rate * horizon))])
    page = _page(offset)
    at = page + rng.random(len(page))
    at.sort()
    return offset, np.clip(at - page, 0.0, 1.0) * horizon


def _page(offset: Ids) -> Ids:
    return np.repeat(np.arange(len(offset) - 1), np.diff(offset))
