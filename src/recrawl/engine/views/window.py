"""Forecast of a stated time: a copy of the engine picks, rates and changes are drawn, freshness is computed exactly.

1. A copy of the engine picks at the budget from ``start`` to ``start + duration`` and learns nothing. This gives the
   crawls of each page, with the host rules, waits and signals that hold.
2. Rates are drawn from `population`. In each interval between two crawls of a page, the copy is fresh for an
   exponential time, or until the first signal that is right. Where the engine found that pages change together,
   exponentials of a folder have a normal copula.
3. The freshness of a draw is Σ importance × fresh time inside the window / (duration × Σ importance). Its mean and
   standard deviation over the draws give the interval, which so contains what is not known of the rates and the
   randomness of the window itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from recrawl.engine.clocks.folders import folders
from recrawl.engine.names.addresses import host_of
from recrawl.engine.views.expected import expected_pages
from recrawl.engine.views.population import drawn_rates
from recrawl.engine.views.signals import heard_since
from recrawl.schedule.exact import access

if TYPE_CHECKING:
    from recrawl.engine.engine import Engine
    from recrawl.engine.questions import Questions

Array = NDArray[np.float64]
Ids = NDArray[np.int64]

MOST_PAGES = 5000  # larger populations are sampled
_DRAWS = 100
_STEPS = 2000  # picks at most; with more crawls each takes several pages
_TOGETHER = 0.1  # correlation of pages of a folder that follow a clock


class Window(NamedTuple):
    """A time to forecast."""

    start: float
    duration: float

    @property
    def end(self) -> float:
        """When it ends."""
        return self.start + self.duration


class _Signals(NamedTuple):
    """Signals of pages in the window and before it: each is right with a probability, about a change before it came."""

    page: Ids
    at: Array
    about: Array
    right: Array
    source: Ids


class _Intervals(NamedTuple):
    """Times between crawls of the pages that are forecast, by page and time; `page` is a row among them."""

    page: Ids
    begin: Array
    end: Array


def window_freshness(engine: Questions, budget: float, window: Window, rows: Ids, rng: np.random.Generator) -> Array:
    """Draws of the freshness of some pages in a window, in which all are crawled at a budget."""
    if len(rows) > MOST_PAGES:
        rows = np.sort(rng.choice(rows, MOST_PAGES, replace=False))
    signals = _drawn_signals(engine, engine.ids(), window, rng)
    page, at = _crawls(engine, budget, window, signals)
    place = np.full(access.id_count(engine.scheduler), -1)
    place[rows] = np.arange(len(rows))
    intervals = _intervals(engine.fetched_at(rows), place[page], at, window.end)
    first_right = _first_signals(intervals, signals._replace(page=place[signals.page]))
    rate = drawn_rates(engine, rows, _DRAWS, rng)
    weight = access.importance(engine.scheduler, rows)
    folder = np.unique([folders(url)[-1] for url in engine.url(rows)], return_inverse=True)[1]
    together = _TOGETHER if engine.clocks.enabled else 0.0
    out, begin = np.empty(_DRAWS), np.maximum(intervals.begin, window.start)
    for j in range(_DRAWS):
        fresh_for = _exponentials(folder, intervals.page, together, rng) / rate[j, intervals.page]
        until = np.minimum(np.minimum(intervals.begin + fresh_for, intervals.end), first_right(rng))
        out[j] = weight[intervals.page] @ np.maximum(until - begin, 0.0)
    return np.asarray(out / (window.duration * weight.sum()))


def _crawls(engine: Questions, budget: float, window: Window, signals: _Signals) -> tuple[Ids, Array]:
    """Pages and times of the crawls that a copy of the engine makes; it hears the signals and learns nothing."""
    copy = cast("type[Engine]", type(engine)).restore(engine.live_state())
    copy.budget = budget
    ids = copy.ids()
    leased = ids[access.status(copy.scheduler, ids) == access.LEASED]
    copy.release(leased, max(window.start, copy.now))  # crawls under way count as not made
    n = max(int(budget * window.duration), 1)
    steps, done, heard = min(n, _STEPS), 0, 0
    order = np.argsort(signals.at, kind="stable")
    new = order[np.searchsorted(signals.at[order], window.start, side="right") :]
    pages, times = [], []
    for k in range(steps):
        now = window.start + (k + 0.5) * window.duration / steps
        until = int(np.searchsorted(signals.at[new], now, side="right"))
        for one in new[heard:until].tolist():
            page = signals.page[one : one + 1]
            if signals.about[one] > copy.fetched_at(page)[0]:  # else a crawl has found it before
                copy.signal(page, now, source=int(signals.source[one]))
        heard = max(until, heard)
        found = copy.pick(now, n * (k + 1) // steps - done)
        copy.record(found, now)
        done += len(found)
        pages.append(found)
        times.append(np.full(len(found), now))
    return np.concatenate(pages), np.concatenate(times)


def _intervals(last: Array, page: Ids, at: Array, end: float) -> _Intervals:
    """From each copy to the next crawl or the end of the window."""
    wanted = page >= 0
    pages = np.concatenate([np.arange(len(last)), page[wanted]])
    begin = np.concatenate([last, at[wanted]])
    order = np.lexsort((begin, pages))
    pages, begin = pages[order], begin[order]
    until = np.full(len(begin), end)
    same = pages[1:] == pages[:-1]
    until[:-1][same] = begin[1:][same]
    return _Intervals(pages, begin, until)


def _drawn_signals(engine: Questions, rows: Ids, window: Window, rng: np.random.Generator) -> _Signals:
    """Signals since the copies were fetched, and a draw of those that come in the window."""
    none = np.zeros(0)
    parts = [_Signals(none.astype(np.int64), none, none, none, none.astype(np.int64))]
    pages = expected_pages(engine, rows)
    delay = engine.beliefs.signals.stated_delays.of(map(host_of, engine.url(rows)))
    copied_at, (since, heard_at) = engine.fetched_at(rows), heard_since(engine, rows)
    for k in range(engine.settings.sources):
        recall, false = (np.reshape(column, (len(rows), -1))[:, k] for column in (pages.recall, pages.false_rate))
        true = recall * pages.change_rate
        right = np.divide(true, true + false, out=np.zeros(len(rows)), where=true + false > 0.0)
        heard, n = since[:, k], rng.poisson((true + false) * window.duration)
        old = heard > 0
        before = 1.0 - (1.0 - right[old]) ** np.minimum(heard[old], 1.0)  # that they are right; repetitions say nothing
        about = np.maximum(heard_at[old] - delay[old, k], copied_at[old])
        parts.append(_Signals(rows[old], heard_at[old], about, before, np.full(int(old.sum()), k)))
        at = rng.uniform(window.start, window.end, int(n.sum()))
        about = at - np.repeat(delay[:, k], n)
        new = about > np.repeat(copied_at, n)
        page, of_right = np.repeat(rows, n)[new], np.repeat(right, n)[new]
        parts.append(_Signals(page, at[new], about[new], of_right, np.full(len(page), k)))
    return _Signals(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _first_signals(intervals: _Intervals, signals: _Signals) -> Callable[[np.random.Generator], Array]:
    """A function that draws which signals are right: the first change of one in each interval, infinity without."""
    wanted = signals.page >= 0
    page, at, right = signals.page[wanted], signals.about[wanted], signals.right[wanted]
    every = np.lexsort((np.concatenate([intervals.begin, at]), np.concatenate([intervals.page, page])))
    is_interval = every < len(intervals.page)
    place = np.maximum(np.cumsum(is_interval) - 1, 0)  # intervals are sorted alike
    inside = np.empty(len(page), np.int64)
    inside[every[~is_interval] - len(intervals.page)] = place[~is_interval]

    def draw(rng: np.random.Generator) -> Array:
        first = np.full(len(intervals.page), np.inf)
        np.minimum.at(first, inside, np.where(rng.random(len(at)) < right, at, np.inf))
        return first

    return draw


def _exponentials(folder: Ids, page: Ids, correlation: float, rng: np.random.Generator) -> Array:
    """Standard exponentials per interval; those of one folder are correlated (normal copula)."""
    if correlation == 0.0:
        return rng.exponential(size=len(page))
    from scipy.special import log_ndtr

    common = rng.normal(size=int(folder.max()) + 1)[folder[page]]
    normal = np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * rng.normal(size=len(page))
    return np.asarray(-log_ndtr(normal))
