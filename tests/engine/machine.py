"""EngineMachine: an engine and its plain twin live through one story and must agree after every step."""

import copy
import math
from typing import ClassVar

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from naive.beliefs import Observed
from naive.engine import Known, NaiveEngine

from recrawl import Engine
from recrawl._compile.plain import plain
from recrawl.engine.signals.arrays import ALONE, NEEDED, SCORE, row_of
from recrawl.engine.views.rate_kernels import signalled_rate

from .invariants import EngineInvariants

SEEDS = st.integers(0, 2**32 - 1)
COUNTS = st.sampled_from([0, 1, 1, 2, 3, 8, 30, 1000])
HOSTS = ("a.example", "b.example", "c.example")
FOLDERS = ("", "x/", "x/y/", "z/")


class EngineMachine(EngineInvariants):
    """Variants set what differs: objective, sources, forgetting, host rules."""

    objective = "freshness"
    sources = 1
    half_life = 730.0
    lease = 20.0
    hosts = False
    together = False  # clocks are in use: the twin knows nothing of them, so that beliefs of rates are not compared
    options: ClassVar[dict] = {}
    starts = (0.0, -40.0, 1.7e9)

    @initialize(start=st.integers(0, 2), budget=st.sampled_from([None, 0.01, 100.0]), seed=SEEDS, n=st.integers(0, 30))
    def begin(self, start, budget, seed, n):
        self.time = self.starts[start]
        given = {"objective": self.objective, "sources": self.sources, "half_life": self.half_life, "lease": self.lease}
        self.engine = Engine(budget, start=self.time, siblings=self.together, **given, **self.options)
        hears = self.sources > 0 and self.objective == "freshness"
        self.twin = NaiveEngine(day=86400.0, lease=self.lease, half_life=self.half_life, hears=hears, now=self.time)
        self.n_urls = 0
        self.add(n, seed, False, "now", False)

    @property
    def here(self):
        """A time before that of the engine counts as it: that of its last pick, or of the last bin of its clocks."""
        return max(self.time, self.twin.now, self.engine.now)

    @rule(
        n=st.sampled_from([1, 3, 9, 12, 20]),
        seed=SEEDS,
        own=st.booleans(),
        copy=st.sampled_from(["now", "old", "none"]),
        again=st.booleans(),
    )
    def add(self, n, seed, own, copy, again):
        rng = np.random.default_rng(seed)
        n = min(n, 70 - len(self.twin.pages))
        new = [f"https://{HOSTS[rng.integers(3)]}/{FOLDERS[rng.integers(4)]}{self.n_urls + k}" for k in range(n)]
        self.n_urls += len(new)
        more = [*rng.choice(sorted(self.twin.pages), min(3, len(self.twin.pages))).tolist(), *new[:1]] if again else []
        urls = [*more, *new]
        age = self.time - rng.choice([0.0, 30.0, 1e5, -50.0])
        last = np.full(len(urls), {"now": self.here, "old": age, "none": self.twin.no_copy_at}[copy])
        importance = np.where(rng.random(len(urls)) < 0.7, 1.0, rng.choice([0.0, 0.5, 30.0], len(urls)))
        known = {}
        if own:
            known = {"change_rate": rng.choice([0.0, 1e-6, 1e-3], len(urls)), "evidence": rng.choice([0.5, 2.0, 1e3])}
        ids = self.engine.add(
            urls, self.time, fetched_at=None if copy == "none" else last, importance=importance, **known
        ).tolist()  # fmt: skip
        gammas = self.gammas()
        for k, url in enumerate(urls):
            if url not in self.twin.pages:
                page = Known(url, min(last[k], self.here), importance[k], gammas[ids[k]], self.sources)
                self.twin.add(page, self.here, self.engine.beliefs.crawls > 0)
                if own:
                    self.give_rate(page, known["change_rate"][k], known["evidence"])
                self.twin.believe(page, count=False)
        self.compare_beliefs(urls)

    def give_rate(self, page, rate, evidence):
        rate = max(rate, 1e-6 * float(self.engine.beliefs.prior.mean))
        page.observed = page.observed._replace(given_changes=evidence, given_time=evidence / rate)

    def compare_beliefs(self, urls):
        """The gammas of pages' own rates are near those of the twin, which goes on from there."""
        b, ids = self.engine.beliefs.belief, self.engine.id(urls).tolist()
        for i, page in zip(ids, map(self.twin.pages.get, urls), strict=True):
            (shape, rate), mean = b.gamma[i], page.gamma[0] / page.gamma[1]
            if not self.together:
                found = f"{page.url}: {page.observed}"
                np.testing.assert_allclose(shape / rate, mean, rtol=page.close, err_msg=found)
                np.testing.assert_allclose(shape, page.gamma[0], rtol=0.03 + 4 * page.close, err_msg=found)
                if not page.by_signals and not self.by_signals(i):
                    counted = np.zeros(len(b.rates)) if page.share is None else page.share
                    assert np.abs(b.share[i] - counted).max() <= 1, page.url
        self.follow_beliefs()

    def follow_beliefs(self):
        """The twin takes over gammas of own rates and shares, and which pages are valued by signals."""
        b, gammas = self.engine.beliefs.belief, self.gammas()
        self.twin.strength = b.strength.tolist()
        for url, page in self.twin.pages.items():
            i = int(self.engine.id(url)[0])
            page.gamma, page.by_signals = gammas[i], self.by_signals(i)
            page.share = b.share[i].astype(float) if b.n_crawls[i] else None
            if self.together:
                page.observed = Observed(*b.seen[i].tolist(), *b.evidence[i].tolist())

    def gammas(self):
        return [tuple(pair) for pair in self.engine.beliefs.belief.gamma.tolist()]

    def by_signals(self, page):
        """Whether a source that counts on the page's host has signalled it."""
        return not math.isnan(signalled_rate(self.engine.beliefs.belief.signals, page)[0])

    def some(self, seed, most=12, repeat=False, leased=False):
        rng = np.random.default_rng(seed)
        pool = [u for u, page in self.twin.pages.items() if not leased or page.lease_end > self.twin.now]
        n = int(rng.integers(min(seed % 8, 1), most + 1)) if pool else 0
        n = n if repeat else min(n, len(pool))
        urls = rng.choice(pool, n, replace=repeat).tolist() if n else []
        return rng, urls, self.engine.id(urls)

    @rule(seed=SEEDS)
    def remove(self, seed):
        _, urls, ids = self.some(seed, 4)
        self.engine.remove(ids)
        for url in urls:
            del self.twin.pages[url]

    @rule(
        seed=SEEDS,
        leased=st.booleans(),
        ago=st.sampled_from([None, None, 0.0, 0.5, 5.0, 200.0]),
        judged=st.booleans(),
        fails=st.booleans(),
        repeat=st.booleans(),
        refit=st.sampled_from([False, False, False, True]),
    )
    def record(self, seed, leased, ago, judged, fails, repeat, refit):
        rng, urls, ids = self.some(seed, 40, repeat=repeat, leased=leased)
        here = self.here
        as_of = np.full(len(ids), here) if ago is None else here - ago * rng.random(len(ids))
        last = np.array([self.twin.pages[url].last for url in urls])
        as_of = np.where((as_of < here - self.lease) & (as_of >= last), here, as_of)  # signals are kept for a lease
        failed, gone = (rng.random(len(ids)) < (share if fails else 0.0) for share in (0.3, 0.1))
        changed = rng.random(len(ids)) < 0.4
        if refit:
            self.engine.beliefs.refit_at = 0
        flags = {"failed": failed, "gone": gone} if fails else {}
        flags |= {"changed": changed} if judged else {}
        flags |= {} if ago is None else {"as_of": as_of}
        distinct = len(set(urls)) == len(urls)
        signalled = [j for j, page in enumerate(ids.tolist()) if self.by_signals(page)]
        if signalled and distinct and seed % 2:  # one by one: what pages with signals add to tables is known between
            for j in range(len(ids)):
                one = {name: column[j : j + 1] for name, column in flags.items()}
                self.record_some([urls[j]], one, as_of[j : j + 1], here, compare=True)
        else:
            self.record_some(urls, flags, as_of, here, compare=distinct and not signalled)

    def record_some(self, urls, flags, as_of, here, *, compare):
        fits, shuts = self.engine.stats["refits"], self.shuts()
        self.engine.record(self.engine.id(urls), self.time, **flags)
        order = np.arange(len(urls)) if len(set(urls)) == len(urls) else np.argsort(as_of, kind="stable")
        for j in order.tolist():
            changed, failed, gone = (
                flags[name][j] if name in flags else None for name in ("changed", "failed", "gone")
            )
            outcome = (None if changed is None else bool(changed), bool(failed), bool(gone))
            self.twin.record(urls[j], float(as_of[j]), *outcome, here)
        for page in self.twin.first_copies:
            self.twin.believe(page, count=False)
        self.twin.first_copies.clear()
        moved = any(self.by_signals(int(self.engine.id(url)[0])) != self.twin.pages[url].by_signals for url in urls)
        if self.shuts() != shuts:
            self.settle()
        if compare and self.engine.stats["refits"] == fits and self.shuts() == shuts and not (moved and len(urls) > 1):
            self.compare_beliefs(urls)
        else:
            self.believe_as_fitted()

    def shuts(self):
        """A number that changes when a gate shuts: the next opening needs twice as much."""
        b = self.engine.beliefs.belief.signals
        return b.gate[:, NEEDED].tolist(), float(b.host_gate[:, :, NEEDED].sum() - 5.0 * b.host_gate[:, :, 0].size)

    def settle(self):
        """A gate has shut: where no other source has signalled, what was known of a page's rate is evidence now."""
        b = self.engine.beliefs.belief
        for url, page in self.twin.pages.items():
            i = int(self.engine.id(url)[0])
            found = Observed(*b.seen[i].tolist(), *b.evidence[i].tolist())
            if plain(row_of)(b.signals, i) >= 0 and not any(found[:3]):
                assert min(found) >= 0.0
                assert max(found) < math.inf
                page.observed = found

    def believe_as_fitted(self):
        """How tables are fitted is not repeated here: beliefs stay gammas, and the story goes on from there."""
        self.follow_beliefs()
        assert all(0 < x < math.inf for page in self.twin.pages.values() for x in page.gamma)

    @rule(seed=SEEDS, back=st.sampled_from([0.0, 0.0, 1.0]), dated=st.booleans())
    def signal(self, seed, back, dated):
        rng, urls, ids = self.some(seed, 15, repeat=True)
        source, now = int(rng.integers(max(self.sources, 1))), self.time - back
        changed_at = now - rng.choice([0.0, 1.0, 50.0], len(ids)) if dated else np.full(len(ids), np.inf)
        self.engine.signal(ids, now, source=source, changed_at=changed_at if dated else None)
        for url, about in zip(urls, changed_at.tolist(), strict=True):
            self.twin.signal(url, max(now, self.twin.now), source, about)
        self.follow_signals()

    @precondition(lambda self: self.twin.hears)
    @rule(seed=SEEDS, source=st.integers(0, 3), wait=st.sampled_from([10.0, 4e4, 4e5]))
    def tell_truly(self, seed, source, wait):
        """Signals about some pages, and crawls of all that find changes on these alone."""
        rng, source = np.random.default_rng(seed), source % self.sources
        urls = [url for url, page in self.twin.pages.items() if page.last > self.twin.no_copy_at]
        changed = rng.random(len(urls)) < 0.5
        signalled_urls = [url for url, flag in zip(urls, changed.tolist(), strict=True) if flag]
        self.engine.signal(self.engine.id(signalled_urls), self.time, source=source)
        for url in signalled_urls:
            self.twin.signal(url, self.here, source, math.inf)
        self.follow_signals()
        self.time = self.here + wait
        as_of = np.full(len(urls), self.here)
        self.record_some(urls, {"changed": changed}, as_of, self.here, compare=not self.any_by_signals())

    @precondition(lambda self: self.twin.hears)
    @rule(source=st.integers(0, 3), host=st.integers(-1, 2), trusted=st.booleans())
    def score_before(self, source, host, trusted):
        """A gate was scored so that the next outcome opens it, or shuts it if it is open."""
        b, source = self.engine.beliefs.belief.signals, source % self.sources
        number = -1 if host < 0 else self.engine.beliefs.signals.host_number(HOSTS[host])
        gate = b.gate[source] if number < 0 else b.host_gate[number, source]
        gate[SCORE] = gate[ALONE] = gate[NEEDED] + 1.0 if trusted else -11.0

    def any_by_signals(self):
        return any(page.by_signals for page in self.twin.pages.values())

    def follow_signals(self):
        """Which pages are valued by signals, after a signal."""
        for url, page in self.twin.pages.items():
            page.by_signals = self.by_signals(int(self.engine.id(url)[0]))

    @rule(seed=SEEDS)
    def request(self, seed):
        _, urls, ids = self.some(seed, 6, repeat=True)
        self.engine.request(ids, self.time)
        self.twin.request(urls, self.here)

    @rule(seed=SEEDS, what=st.sampled_from(["importance", "change_rate", "cost"]))
    def update(self, seed, what):
        rng, urls, ids = self.some(seed, 5)
        value = rng.choice([0.1, 1.0, 4.0] if what == "cost" else [0.0, 1e-4, 5.0], len(ids))
        self.engine.update(ids, **{what: value})
        for url, new in zip(urls, value.tolist(), strict=True):
            page = self.twin.pages[url]
            if what == "importance":
                page.given = page.importance = new
            elif what == "change_rate":
                self.give_rate(page, new, 2.0)
                self.twin.believe(page, count=False)
        if what == "change_rate":
            self.compare_beliefs(urls)

    @rule(seed=SEEDS)
    def release(self, seed):
        _, urls, ids = self.some(seed)
        self.engine.release(ids, self.time)
        for url in urls:
            self.twin.pages[url].lease_end = -math.inf

    @rule(seed=SEEDS, resume=st.booleans())
    def pause_or_resume(self, seed, resume):
        _, urls, ids = self.some(seed, 60 if resume else 6)
        (self.engine.resume if resume else self.engine.pause)(ids)
        for url in urls:
            page = self.twin.pages[url]
            page.paused, page.lease_end = not resume, page.lease_end if resume else -math.inf

    @rule(step=st.sampled_from([0.0, 1e-3, 0.1, 1.0, 20.0, 70.0, 500.0, 3e4, 1e6, 4e7, -1e-6, -2.0, -1e6]))
    def wait(self, step):
        self.time = self.here + step

    @rule(budget=st.sampled_from([0.01, 1.0, 1e4]))
    def change_budget(self, budget):
        self.engine.budget = budget

    @precondition(lambda self: self.hosts)
    @rule(k=st.integers(0, 2), ahead=st.sampled_from([-1.0, 0.0, 0.2, 50.0, math.inf]))
    def hold(self, k, ahead):
        self.engine.hold(HOSTS[k], self.time + ahead)
        self.twin.host(HOSTS[k])["until"] = self.time + ahead

    @precondition(lambda self: self.hosts)
    @rule(k=st.integers(0, 2), spacing=st.sampled_from([None, 0.0, 0.1, 30.0]), limit=st.sampled_from([None, 1, 2, 5]))
    def limit(self, k, spacing, limit):
        self.engine.host(HOSTS[k], spacing=spacing, concurrency=limit)
        host = self.twin.host(HOSTS[k])
        host["spacing"] = host["spacing"] if spacing is None else spacing
        host["limit"] = host["limit"] if limit is None else limit

    @rule()
    def save_and_restore(self):
        self.engine = Engine.restore(copy.deepcopy(self.engine.state()))

    @rule()
    def build_again_from_rows(self):
        rows = self.engine.rows()
        now = max([self.here, *(page.last for page in self.twin.pages.values())])
        values, signalled = self.values(now), {u for u, page in self.twin.pages.items() if page.by_signals}
        self.engine = Engine.restore(rows, now)
        self.time = self.twin.now = now
        self.twin.listens = self.engine.requests is not None
        for page in self.twin.pages.values():
            page.lease_end = -math.inf
            page.heard = [[-math.inf] * len(times) for times in page.heard]  # crawls under way are over
            self.twin.put_in_folder(page, self.engine.beliefs.crawls > 0)
        self.follow_beliefs()
        assert signalled == {url for url, page in self.twin.pages.items() if page.by_signals}
        if not self.together:  # what groups did lately is not in the rows, nor are tables of signals
            found = self.values(now)
            assert {url: found[url] for url in found if url not in signalled} == {
                url: values[url] for url in values if url not in signalled
            }

    @rule(n=COUNTS)
    def pick(self, n):
        ids = self.engine.pick(self.time, n)
        self.twin.now = self.here
        self.follow(self.engine.url(ids), n)

    @rule(n=COUNTS, seed=SEEDS, most=st.sampled_from([1, 5, 30, 100]))
    def pick_among(self, n, seed, most):
        _, some, ids = self.some(seed, most)
        threshold = self.engine.threshold
        picked = self.engine.pick(self.time, n, among=ids)
        assert self.engine.threshold == threshold
        self.twin.now = self.here
        self.follow(self.engine.url(picked), n, {url for url in some if not self.unlikely(url)})

    @rule()
    def ask_when(self):
        due = self.engine.next_at(self.time)
        self.twin.now = self.here
        values = self.values(self.twin.now)
        ready = any(values[url] > 0 and self.eligible(url) for url in values)
        assert due >= self.twin.now
        assert (due == self.twin.now) == ready, (due, self.twin.now, ready)
