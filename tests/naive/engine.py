"""A plain twin of the engine's bookkeeping: dictionaries by URL, gammas by their moments; imports nothing of it."""

from __future__ import annotations

import math
from urllib.parse import urlsplit

import numpy as np
from mpmath import mp, mpf

from naive import beliefs
from naive.beliefs import Observed

FIRST_RETRY, LAST_RETRY = 60.0 / 86400.0, 7.0
FIRST_RECHECK, LAST_RECHECK = 30.0, 365.0
REQUEST_HALF_LIFE = 30.0


def after_outcome(gammas, amounts, changed):
    """Gammas (shape, rate) of independent parameters x_j, of P(changed) = 1 − e^{−Σ x_j·amount_j}, after an outcome.

    Unchanged: the rate grows by the amount. Changed: the moments of the difference of two gammas, E x^k ∝
    m_k(a, b) − R·m_k(a, b + amount) with R the chance of no change, are those of the new gamma.
    """
    if not changed:
        return [(a, b + x) for (a, b), x in zip(gammas, amounts, strict=True)]
    with mp.workdps(60):
        unchanged = mpf(1)
        for (a, b), x in zip(gammas, amounts, strict=True):
            unchanged *= (mpf(b) / (mpf(b) + mpf(x))) ** mpf(a)
        if unchanged == 1:
            return list(gammas)
        new = []
        for (a, b), x in zip(gammas, amounts, strict=True):
            if x == 0:
                new.append((a, b))
                continue
            a, b, x = mpf(a), mpf(b), mpf(x)
            first = (a / b - unchanged * a / (b + x)) / (1 - unchanged)
            second = a * (a + 1) * (1 / b**2 - unchanged / (b + x) ** 2) / (1 - unchanged)
            spread = second - first**2
            new.append((float(first**2 / spread), float(first / spread)))
        return new


def forgotten(gammas, prior, kept):
    """Evidence beyond the prior counts less."""
    return [
        (p + (a - p) * kept, q + (b - q) * kept) for (a, b), (p, q) in zip(gammas, prior, strict=True)
    ]  # fmt: skip


class Known:
    """What is known of one page."""

    def __init__(self, url, last, given, gammas, n_sources):
        self.url, self.host, self.last = url, urlsplit(url).hostname, last
        self.folder = None  # pages of one folder learn from each other; those that came later apart
        self.given = self.importance = given
        self.gammas = gammas
        self.observed, self.own = Observed(), 0.0
        self.share = None  # the posterior as it counts for other pages
        self.close = 0.0  # how near to the mean of the gamma another one is
        self.heard = [[] for _ in range(n_sources)]  # when each signal since the copy came
        self.signals = [0] * n_sources  # those before
        self.watched, self.n_crawls, self.n_changes = 0.0, 0, 0
        self.lease_end = self.until = -math.inf
        self.paused = False
        self.failures = self.times_gone = 0
        self.asked = []
        self.watched_from = None


class NaiveEngine:
    """Computes, after any sequence of calls, the belief about every page and the pages that may be picked."""

    def __init__(self, *, day, lease, half_life, remembers, now):
        self.no_copy_at = -1e6 * day  # a page without a copy counts as fetched then
        self.day, self.lease, self.half_life, self.remembers, self.now = day, lease, half_life * day, remembers, now
        self.pages: dict[str, Known] = {}
        self.hosts: dict[str, dict[str, float]] = {}
        self.listens = False  # to readers
        self.n_late = 0
        self.first_copies: list[Known] = []  # pages that got their first copy: they are believed in anew
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
        page.gammas = [(shape, rate), *page.gammas[1:]]
        if count:
            page.share = beliefs.shares(beliefs.posterior(prior, page.observed, self.rates))

    def host(self, name):
        return self.hosts.setdefault(name, {"until": -math.inf, "spacing": 0.0, "limit": math.inf})

    def signal(self, url, now, source, changed_at):
        page = self.pages[url]
        if page.heard and changed_at > page.last:
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

    def record(self, url, as_of, changed, failed, gone, here, prior):
        """One crawl that ended; changed is None where that is not known."""
        page = self.pages[url]
        if not failed and as_of < page.last:
            self.n_late += 1
            return
        page.lease_end = -math.inf
        if as_of < page.last:
            return
        if not failed:
            self._fetched(page, as_of, None if gone else changed, prior)
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

    def _fetched(self, page, as_of, changed, prior):
        kept = [[t for t in times if t > as_of] if self.remembers else [] for times in page.heard]
        counts = [len(times) - len(stay) for times, stay in zip(page.heard, kept, strict=True)]
        compared = changed is not None and page.last > self.no_copy_at
        if page.last <= self.no_copy_at:
            self.first_copies.append(page)
        interval, page.last, page.heard = as_of - page.last, as_of, kept
        if not compared or interval <= 0:
            return
        own = page.gammas[0][0] * math.log1p(interval / page.gammas[0][1])
        heard = sum(n * shape / rate for n, (shape, rate) in zip(counts, page.gammas[1:], strict=True))
        mine = (own / (own + heard) if heard else 1.0) if changed else 0.0
        kept_share = 2 ** (-interval / self.half_life)
        faded = [page.gammas[0], *forgotten(page.gammas[1:], prior[1:], kept_share)]
        page.gammas = [page.gammas[0], *after_outcome(faded, [interval, *counts], changed)[1:]]
        page.observed = Observed(*(kept_share * np.array(page.observed)).tolist())
        unchanged, changes, logs, *given = page.observed
        if mine > 0.0:
            page.observed = Observed(unchanged, changes + mine, logs + mine * math.log(interval), *given)
        else:
            page.observed = Observed(unchanged + interval, changes, logs, *given)
        page.own += mine
        page.signals = [a + b for a, b in zip(page.signals, counts, strict=True)]
        page.watched += interval
        page.n_crawls += 1
        page.n_changes += changed
        self.believe(page, count=True)

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
