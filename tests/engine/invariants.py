"""EngineInvariants: what must hold of an engine and its plain twin after every step."""

import copy
import math

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from naive.engine import Source, open_components
from naive.mixture import mixture

from recrawl import Engine
from recrawl._compile.plain import plain
from recrawl.engine.signals.arrays import is_open, row_of
from recrawl.schedule.exact import access

from .snapshot import READS, assert_reading_changes_nothing

TOLERANCE = 1e-9


class EngineInvariants(RuleBasedStateMachine):
    """Compares ``engine`` with ``twin`` at the time ``here``; a machine with rules has them."""

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

    def follow(self, urls, n, among=None):
        """Check a pick against all that could be picked, page by page; ties may go either way."""
        values = self.values(self.twin.now)
        values = values if among is None else {url: value for url, value in values.items() if url in among}
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
        assert not len(self.engine.scheduler._memory.state.source)
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
                classes = [list(zip(b.kappas.tolist(), share, strict=True)) for share in b.share[row].tolist()]
                names = (b.rate, b.mean_kappa, b.heard)
                columns = zip(*(a[row].tolist() for a in names), b.repeats, b.credit[row], classes, strict=True)
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

    @rule(name=st.sampled_from(list(READS)), ahead=st.sampled_from([0.0, 0.0, 3e4, 1e7, -5.0]))
    def read(self, name, ahead):
        """A method that reads changes no byte, whatever time it is asked for."""
        assert_reading_changes_nothing(self.engine, self.engine.ids(), self.here + ahead, [name])

    @invariant()
    def reading_changes_nothing(self):
        """One method per step, each compared alone: every third time ``explain``, else the next one in turn."""
        self.n_steps = getattr(self, "n_steps", -1) + 1
        if hasattr(self, "engine"):
            ids = self.engine.id(list(self.twin.pages)[:: max(len(self.twin.pages) // 3, 1)])
            name = "explain" if self.n_steps % 3 == 2 else list(READS)[(self.n_steps - self.n_steps // 3) % len(READS)]
            results = assert_reading_changes_nothing(self.engine, ids, self.here, [name])
            assert not any("nan" in text for text in results.get("explain", []))

    @invariant()
    def a_pick_now_would_be_right(self):
        if hasattr(self, "engine") and self.twin.pages:
            other, twin = self.engine, copy.deepcopy(self.twin)
            self.engine = Engine.restore(self.engine.state())
            self.pick(1 + len(self.twin.pages) // 4)
            self.engine.eligibility._check()
            self.engine, self.twin = other, twin
