"""A plain twin of the engine's bookkeeping: dictionaries by URL; it imports nothing of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np

from naive import beliefs
from naive.beliefs import Observed

FIRST_RETRY, LAST_RETRY = 60.0 / 86400.0, 7.0
FIRST_RECHECK, LAST_RECHECK = 30.0, 365.0
REQUEST_HALF_LIFE = 30.0
SUREST = 0.993  # the highest precision of a signal


class Source(NamedTuple):
    """A source of signals, as one page knows it."""

    open: bool
    main: bool
    rate: float
    kappa: float
    heard: float
    repeated: float
    credit: float  # what the precision of its signals since the copy is multiplied by
    classes: Sequence[tuple[float, float]]  # (weight of a signal, share) of its classes of precision

    def exponent(self, main_kappa):
        """What its signals since the copy add to the exponent, by the class of the main source or by all classes."""
        n = 1.0 + self.repeated * (min(self.heard, 16.0) - 1.0) if self.heard > 0 else 0.0
        if n == 0 or self.main:
            return credited(main_kappa, self.credit) * n
        kept = sum(share * math.exp(-credited(kappa, self.credit) * n) for kappa, share in self.classes)
        return -math.log(kept / sum(share for _, share in self.classes))


def credited(kappa, credit):
    """The weight of a signal whose precision, 1 − exp(−kappa), is multiplied by its credit."""
    return kappa if credit == 1.0 else -math.log1p(-min(-math.expm1(-kappa) * credit, SUREST))


def open_components(components, sources):
    """What the scheduler gets of (weight, missed rate, shape, weight of a signal of the main source) components.

    An open source's true signals are matched by one source that signals as often as
    all open ones; those of others count as missed. Slight components are left out.
    """
    out = []
    total = sum(weight for weight, *_ in components if weight > 0.01)
    for weight, mean, shape, main_kappa in components:
        if weight <= 0.01:
            continue
        missed, often, true, heard, repeated = mean, 0.0, 0.0, 0.0, 1.0
        for source in sources:
            kappa = main_kappa if source.main else source.kappa
            announced = source.rate * -math.expm1(-kappa)
            if announced > 0 and source.open:
                often, true, repeated = often + source.rate, true + announced, min(repeated, source.repeated)
                heard += source.exponent(main_kappa)
            elif announced > 0:
                missed += announced
        one = -math.log1p(-min(true / often, 0.99999)) if true > 0 else 0.0
        out.append((weight / total, missed, shape * (missed / mean) ** 2, often, one, heard, repeated))
    return out


class Known:
    """What is known of one page."""

    def __init__(self, url, last, given, gamma, n_sources):
        self.url, self.host, self.last = url, urlsplit(url).hostname, last
        self.folder = None  # pages of one folder learn from each other; those that came later apart
        self.given = self.importance = given
        self.gamma = gamma  # (shape, rate) of the change rate, by a belief that knows no signals
        self.observed = Observed()
        self.share = None  # the posterior as it counts for other pages
        self.close = 0.0  # how near to the mean of the gamma another one is
        self.heard = [[] for _ in range(n_sources)]  # when each signal since the copy came
        self.by_signals = (
            False  # whether a source that counts has signalled it: then signals say what it adds to tables
        )
        self.watched, self.n_crawls, self.n_changes = 0.0, 0, 0
        self.lease_end = self.until = -math.inf
        self.paused = False
        self.failures = self.times_gone = 0
        self.asked = []
        self.watched_from = None


class NaiveEngine:
    """Computes, after any sequence of calls, the belief about every page and the pages that may be picked."""

    def __init__(self, *, day, lease, half_life, hears, now):
        self.no_copy_at = -1e6 * day  # a page without a copy counts as fetched then
        self.day, self.lease, self.half_life, self.hears, self.now = day, lease, half_life * day, hears, now
        self.pages: dict[str, Known] = {}
        self.hosts: dict[str, dict[str, float]] = {}
        self.listens = False  # to readers
        self.n_late = 0
        self.first_copies: list[Known] = []  # pages that got their first copy: their beliefs are computed again
        self.rates = beliefs.RATES / day
        self.first, self.strength = beliefs.first_table(), [5.0, 5.0]

    def add(self, page, now, late):
        self.pages[page.url] = page
        self.put_in_folder(page, late)
        if self.listens:
            page.watched_from = now - self.day

    def put_in_folder(self, page, late):
        page.folder = (late, page.url.rpartition("/")[0])

    def believe(self, page, *, count):
        """The gamma of a page's rate, from what was observed of it and of other pages."""
        prior = beliefs.prior_of(page, self.pages.values(), self.first, self.strength)
        shape, rate, page.close = beliefs.gamma_of(prior, page.observed, self.rates)
        page.gamma = (shape, rate)
        if count:
            page.share = beliefs.shares(beliefs.posterior(prior, page.observed, self.rates))

    def host(self, name):
        return self.hosts.setdefault(name, {"until": -math.inf, "spacing": 0.0, "limit": math.inf})

    def signal(self, url, now, source, changed_at):
        page = self.pages[url]
        if self.hears and page.last > self.no_copy_at and changed_at > page.last:
            page.heard[source].append(now)

    def request(self, urls, now):
        if not self.listens:
            self.listens = True
            for page in self.pages.values():
                page.watched_from = now - self.day
        for url in urls:
            self.pages[url].asked.append(now)
        for url in set(urls):
            self._weigh(self.pages[url], now)

    def _weigh(self, page, now):
        if not self.listens:
            return
        half = REQUEST_HALF_LIFE * self.day
        newest = max([now, *page.asked])
        seen = 1 - 2 ** (-max(now - page.watched_from, 0.0) / half)
        total = sum(2 ** (-(newest - t) / half) for t in page.asked)
        page.importance = page.given + self.day * total * math.log(2) / half / seen

    def record(self, url, as_of, changed, failed, gone, here):
        """One crawl that ended; changed is None where that is not known."""
        page = self.pages[url]
        if not failed and as_of < page.last:
            self.n_late += 1
            return
        page.lease_end = -math.inf
        if as_of < page.last:
            return
        if not failed:
            self._fetched(page, as_of, None if gone else changed)
            self._weigh(page, here)
        if gone:
            page.times_gone += 1
            page.until = here + self.day * min(FIRST_RECHECK * 2 ** (page.times_gone - 1), LAST_RECHECK)
        elif failed:
            page.failures += 1
            page.until = here + self.day * min(FIRST_RETRY * 2 ** (page.failures - 1), LAST_RETRY)
        else:
            page.failures = page.times_gone = 0
            page.until = -math.inf

    def _fetched(self, page, as_of, changed):
        page.heard = [[t for t in times if t > as_of] for times in page.heard]
        compared = changed is not None and page.last > self.no_copy_at
        if page.last <= self.no_copy_at:
            self.first_copies.append(page)
        interval, page.last = as_of - page.last, as_of
        if not compared or interval <= 0:
            return
        unchanged, changes, logs, *given = (2 ** (-interval / self.half_life) * np.array(page.observed)).tolist()
        if changed:
            page.observed = Observed(unchanged, changes + 1, logs + math.log(interval), *given)
        else:
            page.observed = Observed(unchanged + interval, changes, logs, *given)
        page.watched += interval
        page.n_crawls += 1
        page.n_changes += changed
        self.believe(page, count=not page.by_signals)

    def eligible(self, url):
        page = self.pages[url]
        if page.paused or page.until > self.now or page.lease_end > self.now:
            return False
        host = self.hosts.get(page.host)
        if host is None:
            return True
        running = sum(other.host == page.host and other.lease_end > self.now for other in self.pages.values())
        return host["until"] <= self.now and running < host["limit"]

    def take(self, url):
        page = self.pages[url]
        page.lease_end = self.now + self.lease
        host = self.hosts.get(page.host)
        if host is not None and host["spacing"] > 0:
            host["until"] = max(host["until"], self.now + host["spacing"])
