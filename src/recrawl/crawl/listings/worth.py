"""Worth of a listing: when its next poll is worth a request, from what its signals brought.

News of a listing are signals about pages whose copies are stale and that would be crawled later anyway. While news
wait for the next poll, their pages stay stale. With news of worth ``gain`` per second (importance per news, so
importance/s) and ``lead``, the mean time by which a signal comes before the crawl that would have been made anyway,
copies lose gain·lead·(1 − e^{−t/lead}) per second at a time t after a poll. That is what a page of importance
gain·lead loses that changes at the rate 1/lead. A poll is one request, as a crawl is. So the value of a poll is the
crawl value of that page, and the listing is polled when it reaches the crawl value at the margin.

A signal of a page that is stale with probability q brings importance·(q − p) per second: p is the probability at
which the page is crawled anyway, and pays for the request that comes earlier.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.model.pages import Pages
from recrawl.model.value import crawl_value, elapsed_at_value, fresh_probability

Array = NDArray[np.float64]

DAY = 86400.0
HALF_LIFE = 30.0  # days, of what was learned
_PRIOR_TIME = 2.0  # days for which the expectation counts
_PRIOR_SHARE = 0.5  # of what signals of all changes would bring: expected of a listing that was not polled yet
_LONGEST_LEAD = 90.0  # days
_SHORTEST_LEAD = 1.0 / DAY  # days
_FOUND_LEAD = 7.0  # days until a new page would be found otherwise
_FIRST, _LAST = 1.0, 7.0  # days: longest intervals between polls, of a new listing and of any


class Forecast(NamedTuple):
    """When pages would be crawled anyway, and the probability that they have changed by then."""

    interval: Array  # seconds after the last crawl; infinity: never
    probability: Array


def anyway(pages: Pages, threshold: float) -> Forecast:
    """When the crawl value of pages reaches the threshold if no signal comes, which they may be known to lack.

    >>> found = anyway(Pages([1.0]), float(crawl_value(Pages([1.0]), 2.0)[0]))
    >>> float(found.interval[0].round(6)), float(found.probability[0].round(6))
    (2.0, 0.864665)
    """
    recall, false_rate = pages.recall, pages.false_rate
    if pages.n_sources > 1:  # silent sources are as one that signals what any of them does
        recall, false_rate = 1.0 - (1.0 - recall).prod(axis=1), false_rate.sum(axis=1)
    quiet = Pages(pages.change_rate, importance=pages.importance, recall=recall, false_rate=false_rate)
    interval = elapsed_at_value(quiet, threshold)
    return Forecast(interval, 1.0 - fresh_probability(quiet, np.minimum(interval, _LONGEST_LEAD * DAY)))


@dataclass(frozen=True, slots=True)
class Worth:
    """What is known of a listing's news. Sums halve after 30 days; ``expected`` is the prior, by its pages.

    A day has ``day`` seconds, as in the engine.
    """

    gain: float = 0.0  # importance of news
    lead: float = 0.0  # importance x seconds
    watched: float = 0.0  # seconds
    at: float = 0.0  # the last poll
    expected: float = 0.0  # importance per second, if every change were signalled
    expected_lead: float = DAY  # seconds
    polls: int = 0
    day: float = DAY
    judged: float = 0.0  # signals whose pages were crawled since
    waiting: float = 0.0  # signals whose pages were not: what they are worth is not known
    found: float = 0.0  # importance of new pages

    def polled(self, now: float, *, is_judged: bool = True) -> Worth:
        """After a poll: the time since the one before is watched, and what was seen before counts less.

        Time is not watched while signals cannot be judged, because the pages have no copies yet.
        """
        elapsed = max(now - self.at, 0.0) if self.polls and is_judged else 0.0
        weight = 0.5 ** (elapsed / (HALF_LIFE * self.day))
        watched = weight * self.watched + elapsed
        faded = {name: weight * getattr(self, name) for name in ("gain", "lead", "judged", "waiting", "found")}
        return replace(self, watched=watched, at=now, polls=self.polls + 1, **faded)

    def signalled(self, n: int) -> Worth:
        """Further signals wait for the crawls of their pages; −1: one of them was judged."""
        return replace(self, waiting=max(self.waiting + n, 0.0), judged=self.judged + max(-n, 0))

    def credited(self, gain: float, lead: float) -> Worth:
        """A signal whose page was crawled: importance·(changed − p), and by how long it came before that crawl.

        Signals that say nothing are wrong as often as right, so that their gains add up to nothing.
        """
        return replace(self, gain=self.gain + gain, lead=self.lead + gain * min(lead, _LONGEST_LEAD * self.day))

    def discovered(self, importance: float) -> Worth:
        """A new page was found, which would have been found 7 days later otherwise."""
        return replace(self, found=self.found + importance)

    def with_prior(self, pages: Pages, forecast: Forecast) -> Worth:
        """What its pages let expect of a listing: a share of the changes, found half an interval earlier.

        Leads that were learned grow and shrink with those intervals: the margin moves, and the crawls made anyway.
        """
        due = np.isfinite(forecast.interval) & (pages.change_rate > 0)
        if not due.any():
            return replace(self, expected=0.0)
        gains = (pages.importance * pages.change_rate * (1.0 - forecast.probability))[due]
        total = float(gains.sum())
        lead = float((gains * forecast.interval[due]).sum()) / (2.0 * total) if total > 0 else self.day
        lead = self._bounded(lead)
        return replace(self, expected=total, expected_lead=lead, lead=self.lead * lead / self.expected_lead)

    def scaled(self, pages: float) -> Worth:
        """The same where the prior comes from one in so many pages."""
        return replace(self, expected=self.expected * pages)

    @property
    def rate(self) -> float:
        """Importance of news per second. Time counts as watched as far as the signals in it were judged."""
        signals = self.judged + self.waiting
        watched = self.watched * self.judged / signals if signals > 0.0 else self.watched
        return (max(self._prior + self.gain, 0.0) + self.found) / (_PRIOR_TIME * self.day + watched)

    @property
    def mean_lead(self) -> float:
        """By how many seconds its news come before the crawls that would be made anyway."""
        prior = self._prior
        total = prior + max(self.gain, 0.0) + self.found
        if total <= 0:
            return self.expected_lead
        leads = prior * self.expected_lead + max(self.lead, 0.0) + self.found * _FOUND_LEAD * self.day
        return self._bounded(leads / total)

    @property
    def longest(self) -> float:
        """The longest interval between two polls, where requests for that are left: a day at first, later a week."""
        return self.day * min(_FIRST * 2.0 ** min(max(self.polls - 3, 0), 9), _LAST)

    @property
    def _prior(self) -> float:
        return _PRIOR_SHARE * self.expected * _PRIOR_TIME * self.day

    def _bounded(self, lead: float) -> float:
        return self.day * min(max(lead / self.day, _SHORTEST_LEAD), _LONGEST_LEAD)


def as_pages(worths: Sequence[Worth], cost: Array | float = 1.0) -> Pages:
    """Listings as pages: importance gain·lead and change rate 1/lead; ``cost`` is the requests of a poll."""
    leads = np.array([one.mean_lead for one in worths])
    rates = np.array([one.rate for one in worths])
    return Pages(1.0 / leads, importance=rates * leads / cost)


def poll_value(worths: Sequence[Worth], elapsed: Array) -> Array:
    """What a poll is worth after so many seconds, in importance x time, as a crawl is.

    gain·lead²·(1 − e^{−x}(1 + x)), x = elapsed/lead.

    >>> one = Worth(gain=1.0, lead=10.0, watched=1e9)
    >>> bool(np.isclose(poll_value([one], np.array([np.inf]))[0], one.rate * one.mean_lead**2))
    True
    """
    return crawl_value(as_pages(worths), elapsed)


def poll_intervals(worths: Sequence[Worth], threshold: float, cost: Array | float = 1.0) -> Array:
    """Seconds after which polls are worth their requests; infinity where they never are.

    >>> poll_intervals([Worth()], 1.0).tolist()
    [inf]
    """
    if not 0 < threshold < math.inf:
        return np.full(len(worths), np.inf)
    return elapsed_at_value(as_pages(worths, cost), threshold)


def poll_interval(worth: Worth, threshold: float, requests: float = 1.0) -> float:
    """The same of one listing."""
    return float(poll_intervals([worth], threshold, max(requests, 1.0))[0])
