"""Unknown change rates: epochs of planning and learning, and the loop in which the estimate times the next crawl."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.observations import Observations
from recrawl.estimate.rates.change_rate import PseudoObservation, estimate_change_rate
from recrawl.model.pages import Pages
from recrawl.simulate.learning.planners import Planner, is_complete
from recrawl.simulate.trace import Trace

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

HOURS_PRIOR: tuple[PseudoObservation, ...] = ((1.0, True), (57.0, False))  # Grimes §4.4, in hours


class CrawlIntervals(NamedTuple):
    """Crawl intervals of many pages; page i has rows ``offset[i]`` to ``offset[i + 1]``, the last one cut by the end.

    ``since`` is the first change within the interval, infinity where there was none.
    """

    offset: Ids
    began: Array
    until: Array
    since: Array

    @property
    def whole(self) -> NDArray[np.bool_]:
        """Which intervals ended in a crawl."""
        whole = np.ones(len(self.until), bool)
        whole[self.offset[1:] - 1] = False
        return whole

    @property
    def stale(self) -> Array:
        """How long the copy had been stale when each interval ended."""
        return np.maximum(self.until - self.since, 0.0)


def crawls_by_estimate(
    trace: Trace, ratio: float, pseudo: tuple[PseudoObservation, ...] = HOURS_PRIOR
) -> CrawlIntervals:
    """Pages enter without history: estimate the rate, wait ratio/estimate, crawl, repeat. Grimes §5.

    The estimate is the irregular MLE with the pseudo-observations (interval, changed) that make it always defined.

    >>> trace = Trace(0.0, 100.0, offset=[0, 0], changed_at=[])
    >>> crawls_by_estimate(trace, ratio=1.0).until.round(1).tolist()  # 1/ln(1 + 1/57), then with 57 + 57.5 h unchanged
    [57.5, 100.0]
    """
    from recrawl.simulate.learning.kernels import follow_estimate

    if not 0 < ratio < np.inf:
        raise ParameterError(f"ratio is {ratio}: must be finite and above 0")
    seen = np.array([entry[0] for entry in pseudo if entry[1]], np.float64)
    unchanged = float(sum(entry[0] for entry in pseudo if not entry[1]))
    if not (0 < len(seen) <= 8 and unchanged > 0):
        raise ParameterError("pseudo needs at least one changed and one unchanged interval")
    parts = []
    for page in range(len(trace)):
        changed_at = trace.changed_at[trace.offset[page] : trace.offset[page + 1]]
        parts.append(follow_estimate(changed_at, trace.start, trace.end, ratio, seen, unchanged))
    offset = np.cumsum([0] + [len(until) for until, _ in parts])
    until, since = (np.concatenate(column) for column in zip(*parts, strict=True))
    return CrawlIntervals(offset, _began(offset, until, trace.start), until, since)


def crawls_every(trace: Trace, interval: float) -> CrawlIntervals:
    """Every page is crawled at start + k·interval, as one does when its rate is known."""
    if not 0 < interval < np.inf:
        raise ParameterError(f"interval is {interval}: must be finite and above 0")
    crawls = trace.start + interval * np.arange(1, int(np.ceil((trace.end - trace.start) / interval)))
    edges = np.append(crawls, trace.end)
    n, k = len(trace), len(edges)
    since = np.full((n, k), np.inf)
    page = np.repeat(np.arange(n), trace.n_changes)
    np.minimum.at(since, (page, np.searchsorted(edges, trace.changed_at)), trace.changed_at)
    offset, until = np.arange(n + 1) * k, np.tile(edges, n)
    return CrawlIntervals(offset, _began(offset, until, trace.start), until, since.ravel())


def _began(offset: Ids, until: Array, start: float) -> Array:
    began = np.concatenate([[start], until[:-1]])
    began[offset[:-1]] = start
    return began


def learn(
    pages: Pages,
    budget: float,
    planner: Planner,
    rng: np.random.Generator,
    *,
    epochs: int = 21,
    first_guess: float = 1.0,
    limits: tuple[float, float] = (0.0005, 7.0),
) -> Iterator[Array]:
    """The crawl rates of each epoch of one day when change rates must be learned. Kolobov et al. 2019, Algorithm 4.

    Plan with the rates believed so far, act for a day, estimate again: pages without signals are crawled at random
    times and estimated by the MLE smoothed with one changed and one unchanged interval of half a day; every change of
    a page with complete signals is seen, and its rate is (U + ½)/(T + ½). ``pages`` holds the true rates, per day.

    >>> from recrawl.simulate.learning.planners import PLANNERS
    >>> pages = Pages([0.1, 2.0], importance=[1.0, 3.0])
    >>> [rates.round(2).tolist() for rates in learn(pages, 1.0, PLANNERS["UC"], np.random.default_rng(1), epochs=2)]
    [[0.5, 0.5], [0.5, 0.5]]
    """
    complete = is_complete(pages) if planner.uses_signals else np.zeros(len(pages), bool)
    visible = planner.sees(pages)
    believed = np.full(len(pages), first_guess)
    crawled_at = np.zeros(len(pages))
    n_changes = np.zeros(len(pages), np.int64)
    seen: list[tuple[Ids, Array, NDArray[np.bool_]]] = []
    for day in range(epochs):
        rate = planner.rates(visible.replace(change_rate=believed), budget)
        rate = np.where(complete, np.minimum(rate / believed, 1.0) * pages.change_rate, rate)
        yield rate
        seen.append(_crawl_for_a_day(pages.change_rate, np.where(complete, 0.0, rate), crawled_at, day, rng))
        n_changes += rng.poisson(pages.change_rate)
        believed = np.clip(_estimates(seen, complete, n_changes, day + 1.0), *limits)


def _crawl_for_a_day(
    change_rate: Array, crawl_rate: Array, crawled_at: Array, day: int, rng: np.random.Generator
) -> tuple[Ids, Array, NDArray[np.bool_]]:
    """(page, interval, changed) of crawls at random times; updates when each page was crawled last."""
    page = np.repeat(np.arange(len(change_rate)), rng.poisson(crawl_rate))
    when = day + rng.random(len(page))
    order = np.lexsort((when, page))
    when = when[order]
    before = np.concatenate([[0.0], when[:-1]])
    first = np.diff(page, prepend=-1) > 0
    before[first] = crawled_at[page[first]]
    crawled_at[page] = when  # the last one stays
    interval = when - before
    return page, interval, rng.random(len(page)) < -np.expm1(-change_rate[page] * interval)


def _estimates(
    seen: list[tuple[Ids, Array, NDArray[np.bool_]]], complete: NDArray[np.bool_], n_changes: Ids, time: float
) -> Array:
    page, interval, changed = (np.concatenate(parts) for parts in zip(*seen, strict=True))
    watched = Observations.from_pages(page, interval, changed, n_pages=len(complete))
    rate = estimate_change_rate(watched, "smoothed", day=1.0, level=None).change_rate
    if complete.any():
        rate[complete] = estimate_change_rate(
            _log(n_changes[complete], time), "complete", day=1.0, level=None
        ).change_rate
    return rate


def _log(n_changes: Ids, time: float) -> Observations:
    """A log in which every change of a page is a row, over a time."""
    offset = np.concatenate([[0], np.cumsum(n_changes + 1)])
    interval, changed = np.zeros(offset[-1]), np.ones(offset[-1], bool)
    interval[offset[1:] - 1], changed[offset[1:] - 1] = time, False
    return Observations(offset, interval, changed)
