"""EngineMachine: an engine and its plain twin live through one story and must agree after every step."""

import copy
import math
from typing import ClassVar

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from naive.beliefs import Observed
from naive.engine import Known, NaiveEngine, Source, open_components
from naive.mixture import mixture

from recrawl import Engine
from recrawl._plain import plain
from recrawl.engine.signals.arrays import ALONE, NEEDED, SCORE, is_open, row_of
from recrawl.engine.views.rate_kernels import signalled_rate
from recrawl.schedule.exact import access

from .snapshot import assert_reading_changes_nothing

SEEDS = st.integers(0, 2**32 - 1)
COUNTS = st.sampled_from([0, 1, 1, 2, 3, 8, 30, 1000])
TOLERANCE = 1e-9
HOSTS = ("a.example", "b.example", "c.example")
FOLDERS = ("", "x/", "x/y/", "z/")


class EngineMachine(RuleBasedStateMachine):
    """Variants set what differs: objective, sources, forgetting, host rules."""

    objective = "freshness"
    sources = 1
    half_life = 730.0
    lease = 20.0
    hosts = False
    together = False  # clocks are in use: the twin knows nothing of them, so that beliefs of rates are not compared
    options: ClassVar[dict] = {}
    starts = (0.0, -40.0, 1.7e9)

    # --- the story ---------------------------------------------------------------------------------------------------

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

    @rule()
    def ask_when(self):
        due = self.engine.next_at(self.time)
        self.twin.now = self.here
        values = self.values(self.twin.now)
        ready = any(values[url] > 0 and self.eligible(url) for url in values)
        assert due >= self.twin.now
        assert (due == self.twin.now) == ready, (due, self.twin.now, ready)

    # --- what must hold ----------------------------------------------------------------------------------------------

    def values(self, now):
        urls = list(self.twin.pages)
        return dict(zip(urls, self.engine.scheduler.value(self.engine.id(urls), now).tolist(), strict=True))

    def eligible(self, url):
        """Whether a page may be picked; of pages that were withdrawn, the engine knows until when."""
        return self.twin.eligible(url) and not self.withdrawn(url)

    def withdrawn(self, url):
        if not self.engine.eligibility.unlikely:  # most machines withdraw no page
            return False
        page = int(self.engine.id(url)[0])
        return self.engine.eligibility.unlikely_until(page) > self.twin.now

    def unlikely(self, url):
        """Whether enough is known of a page to say that it has hardly changed."""
        page, engine, now = self.twin.pages[url], self.engine, self.twin.now
        known = page.n_crawls >= 10 or engine.beliefs.fits > 0 or engine.beliefs.belief.fixed_rate[engine.id(url)[0]]
        chance = 1.0 - engine.fresh(engine.id(url), now)[0]
        return known and page.last > self.twin.no_copy_at and chance < 0.999999 * engine.settings.min_change_probability

    @invariant()
    def withdrawn_pages_are_unlikely(self):
        """As far as nothing was learned since: then they are examined again after some crawls."""
        if hasattr(self, "engine") and self.engine.now == self.twin.now:
            for number, until in self.engine.eligibility.unlikely.items():
                assert number < 0 or until > -math.inf
                assert number >= 0 or ~number in self.engine.eligibility.cohorts.closed

    def follow(self, urls, n):
        """Check a pick against all that could be picked, page by page; ties may go either way."""
        values = self.values(self.twin.now)
        assert len(urls) <= n
        assert not any(self.unlikely(url) for url in urls)
        for url in [*urls, None][:n]:
            free = [other for other in values if self.eligible(other)]
            best = max((values[other] for other in free), default=0.0)
            if url is None:
                assert best <= 1e-290, f"nothing more was picked, but a page worth {best} may be"
                return
            assert url in free, f"{url} was picked and may not be"
            assert values[url] >= best * (1 - TOLERANCE), f"{url}, worth {values[url]}, was picked; the best is {best}"
            self.twin.take(url)

    @invariant()
    def memory_is_sound(self):
        if hasattr(self, "engine"):
            self.engine.scheduler._check()
            self.engine.eligibility._check()
            assert len(self.engine) == len(self.twin.pages)

    @invariant()
    def tables_hold_what_pages_add_to_them(self):
        if hasattr(self, "engine"):
            b, ids = self.engine.beliefs.belief, self.engine.ids()
            tables = np.zeros_like(b.tables)
            for rows in (np.zeros(len(ids), np.int64), *b.table[ids].T):
                np.add.at(tables, rows, b.share[ids].astype(float))
            np.testing.assert_allclose(b.tables, tables, atol=1e-6)
            np.testing.assert_allclose(b.sizes, tables.sum(axis=1), atol=1e-6)

    @invariant()
    def beliefs_are_those_of_the_twin(self):
        if not hasattr(self, "engine") or not self.twin.pages:
            return
        pages = list(self.twin.pages.values())
        ids, b = self.engine.id(list(self.twin.pages)), self.engine.beliefs.belief
        record = self.engine.scheduler._memory.state.rec[ids]
        close = np.testing.assert_allclose
        close(b.gamma[ids], [page.gamma for page in pages], rtol=TOLERANCE)
        close(b.seen[ids], [page.observed[:3] for page in pages], rtol=TOLERANCE, atol=1e-9)
        close(b.evidence[ids], [page.observed[3:] for page in pages], rtol=TOLERANCE)
        assert self.heard(ids) == [[len(times) for times in page.heard] for page in pages]
        assert b.n_crawls[ids].tolist() == [page.n_crawls for page in pages]
        assert b.n_changes[ids].tolist() == [page.n_changes for page in pages]
        close(b.watched[ids], [page.watched for page in pages], rtol=TOLERANCE)
        assert record["last"].tolist() == [page.last for page in pages]
        copied = [page.last > self.twin.no_copy_at for page in pages]
        assert self.engine.has_copy(ids).tolist() == copied
        assert not self.engine.fresh(ids, self.here)[~np.array(copied)].any()
        close(record["importance"], [page.importance for page in pages], rtol=TOLERANCE)
        close(record["change_rate"], [page.gamma[0] / page.gamma[1] for page in pages], rtol=1e-12)
        assert not record["recall"].any()
        for i, page in zip(ids.tolist(), pages, strict=True):
            assert self.engine.eligibility.waiting.failures(i) == page.failures
            assert self.engine.eligibility.waiting.times_gone(i) == page.times_gone
            if page.until > self.twin.now:
                assert self.engine.eligibility.waiting.until(i) == page.until

    def heard(self, ids):
        """Signals since the copy, per page and source."""
        b = self.engine.beliefs.belief.signals
        rows = [plain(row_of)(b, page) for page in ids.tolist()]
        return [b.heard[row].tolist() if row >= 0 else [0.0] * self.sources for row in rows]

    @invariant()
    def pages_have_the_components_of_their_open_sources(self):
        """And only those; the value of one of them is that of a naive mixture."""
        if not hasattr(self, "engine") or not self.twin.pages:
            return
        b, scheduler = self.engine.beliefs.belief.signals, self.engine.scheduler
        ids = self.engine.id(list(self.twin.pages))
        found = access.components_of(scheduler, ids)
        for i, page, components in zip(ids.tolist(), self.twin.pages.values(), found, strict=True):
            used, row = components[components[:, 0] > 0], plain(row_of)(b, i)
            assert (len(used) > 0) == page.by_signals, page.url
            if page.by_signals:
                columns = zip(b.rate[row].tolist(), b.mean_kappa[row].tolist(), b.heard[row], b.repeats, strict=True)
                host, main = int(b.host[row]), int(b.main[row])
                sources = [Source(plain(is_open)(b, host, k), k == main, *one) for k, one in enumerate(columns)]
                expected = open_components(b.components[row].astype(float).tolist(), sources)
                np.testing.assert_allclose(used, expected, rtol=1e-6, err_msg=page.url)
        mixed = [j for j, page in enumerate(self.twin.pages.values()) if page.by_signals]
        for j in mixed[:1]:
            page, i = list(self.twin.pages.values())[j], int(ids[j])
            time = access.clock_between(scheduler, i, page.last, max(self.here, page.last))
            unit = mixture(found[j].tolist(), time) * page.importance / access.cost(scheduler, ids[j : j + 1])[0]
            value = float(scheduler.value([i], self.here)[0])
            np.testing.assert_allclose(value, unit, rtol=1e-6, atol=1e-300, err_msg=page.url)

    @rule(ahead=st.sampled_from([0.0, 0.0, 3e4, 1e7, -5.0]))
    def read(self, ahead):
        """Methods that read change no byte, whatever time they are asked for."""
        assert_reading_changes_nothing(self.engine, self.engine.ids(), self.here + ahead)

    @invariant()
    def pages_can_be_explained(self):
        """Some of them, after every third step: it takes long."""
        self.n_steps = getattr(self, "n_steps", 0) + 1
        if hasattr(self, "engine") and self.n_steps % 3 == 0:
            ids = self.engine.id(list(self.twin.pages)[:: max(len(self.twin.pages) // 3, 1)])
            texts = assert_reading_changes_nothing(self.engine, ids, self.here, ["explain"])["explain"]
            assert not any("nan" in text for text in texts)

    @invariant()
    def a_pick_now_would_be_right(self):
        if hasattr(self, "engine") and self.twin.pages:
            other, twin = self.engine, copy.deepcopy(self.twin)
            self.engine = Engine.restore(self.engine.state())
            self.pick(1 + len(self.twin.pages) // 4)
            self.engine.eligibility._check()
            self.engine, self.twin = other, twin
