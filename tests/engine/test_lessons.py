"""Lessons: engines with half the hosts each, exchanging sums, learn about all pages what one engine with all learns."""

import json

import numpy as np
import pytest

from recrawl import Engine
from recrawl.engine import Lessons
from recrawl.engine.beliefs.arrays import ALL
from recrawl.errors import ParameterError

from .snapshot import snapshot

pytestmark = pytest.mark.slow

DAY = 86400.0
HOSTS, PAGES, ROUNDS = 4, 20, 6
URLS = [f"https://h{h}.example/{k % 3}/{k}" for h in range(HOSTS) for k in range(PAGES)]
BUDGET = len(URLS) / (2 * DAY)


class World:
    """Pages that all engines crawl at the same times, with the same outcomes; sitemaps that speak of their changes."""

    def __init__(self, seed=5):
        rng = np.random.default_rng(seed)
        host = np.repeat(np.arange(HOSTS), PAGES)
        self.rate = rng.lognormal(0.0, 1.0, len(URLS)) * rng.lognormal(0.0, 0.7, HOSTS)[host] / (4 * DAY)
        step = DAY * rng.uniform(0.5, 1.5, (ROUNDS, len(URLS)))
        self.times = np.cumsum(step, axis=0)
        busy = np.where(np.arange(ROUNDS) % 4 == 0, 3.0, 0.5)[:, None]  # all pages change together
        self.changed = rng.random(step.shape) < -np.expm1(-self.rate * step * busy)
        self.signalled = self.changed & (rng.random(step.shape) < 0.9)

    def crawl(self, engine, rows, first, last):
        """Record the crawls of some rounds, as they come in time; signals before them."""
        ids = engine.id([URLS[k] for k in rows])
        for j in range(first, last):
            for k in np.argsort(self.times[j, rows]):
                now = float(self.times[j, rows[k]])
                if self.signalled[j, rows[k]]:
                    engine.signal(ids[k : k + 1], now - 60.0)
                engine.record(ids[k : k + 1], now, changed=self.changed[j, rows[k]])


def engine_of(rows, **settings):
    engine = Engine(BUDGET * len(rows) / len(URLS), min_change_probability=0.0, **settings)
    engine.add([URLS[k] for k in rows], 0.0, fetched_at=0.0)
    return engine


def refit(engine):
    engine.beliefs.refit_at = engine.beliefs.crawls
    engine.refit_if_due()


def exchange(engines, now, names=None):
    published = [Lessons.of(json.loads(json.dumps(engine.lessons(names).as_dict()))) for engine in engines]
    for k, engine in enumerate(engines):
        engine.learn_from(published[:k] + published[k + 1 :], now, names)


@pytest.fixture(scope="module")
def learned():
    """With clocks and signals."""
    return one_and_two()


def one_and_two(**settings):
    """One engine with all pages, and two with half the hosts each that exchange lessons now and then."""
    world, every = World(), np.arange(len(URLS))
    halves = [every[: len(URLS) // 2], every[len(URLS) // 2 :]]
    one, two = engine_of(every, **settings), [engine_of(rows, **settings) for rows in halves]
    for j in range(ROUNDS):
        world.crawl(one, every, j, j + 1)
        for engine, rows in zip(two, halves, strict=True):
            world.crawl(engine, rows, j, j + 1)
        exchange(two, one.now)
    for _ in range(4):
        refit(one)
        exchange(two, one.now)
        for engine in two:
            refit(engine)
    exchange(two, one.now)
    return one, two


def test_without_clocks_and_signals_beliefs_are_those_of_one_engine():
    """Observations are then the same: in the time of clocks they depend on when lessons were heard.

    A page counts in units of 1/255, so that a fit can end at tables that differ by rounding.
    """
    one, two = one_and_two(siblings=False, sources=0)
    for engine in two:
        table, alone = engine.beliefs.belief.tables[ALL], one.beliefs.belief.tables[ALL]
        assert np.abs(table - alone).sum() <= 0.03 * alone.sum()
        assert engine.beliefs.belief.strength.tolist() == one.beliefs.belief.strength.tolist()
        rows = one.id(engine.url(engine.ids()))
        assert engine.pages().change_rate == pytest.approx(one.pages(rows).change_rate, rel=0.02)


def test_the_table_of_all_pages_is_about_that_of_one_engine(learned):
    one, two = learned
    for engine in two:
        table, alone = engine.beliefs.belief.tables[ALL], one.beliefs.belief.tables[ALL]
        assert engine.beliefs.belief.sizes[ALL] == one.beliefs.belief.sizes[ALL] == 255 * len(URLS)
        assert np.abs(table - alone).sum() <= 0.05 * alone.sum()
        assert engine.beliefs.population == pytest.approx(one.beliefs.population, abs=0.02)
        assert np.abs(engine.lessons().table - alone).sum() > 0.4 * alone.sum(), "half of it is of the others"
    own = sum(engine.lessons().table for engine in two)
    assert own.tolist() == two[0].beliefs.belief.tables[ALL].tolist()


def test_the_clock_of_all_pages_is_that_of_one_engine():
    one, two = one_and_two(sources=0)
    for engine in two:
        mine, alone = engine.clocks.arrays, one.clocks.arrays
        assert mine.newest[0] == alone.newest[0]
        assert mine.scale.tolist() == alone.scale.tolist()
        for name in ("found", "expected"):
            shared, single = getattr(mine, name)[0], getattr(alone, name)[0]
            assert shared.sum() == pytest.approx(single.sum(), rel=0.1)
            assert np.corrcoef(shared, single)[0, 1] > 0.97
        assert mine.usual == pytest.approx(alone.usual, rel=0.2)
        assert mine.weight == pytest.approx(alone.weight, abs=0.03)
    bins = [np.stack([one.found, one.expected]) for one in (engine.lessons().clocks for engine in two)]
    newest = [engine.lessons().clocks.newest for engine in two]
    assert newest[0] == newest[1]
    ring = two[0].clocks.arrays
    assert np.sort(ring.found[0]) == pytest.approx(np.sort((bins[0] + bins[1])[0]))


def test_signals_are_worth_what_they_are_worth_to_one_engine(learned):
    one, two = learned
    alone = one.beliefs.belief.signals
    for engine in two:
        mine = engine.beliefs.belief.signals
        assert mine.classes == pytest.approx(alone.classes, abs=0.05)
        assert mine.mean_rate == pytest.approx(alone.mean_rate, rel=0.1)


def test_a_new_page_is_believed_to_be_as_one_engine_believes(learned):
    one, two = learned
    for engine in two:
        copy, reference = Engine.restore(engine.state()), Engine.restore(one.state())
        new = [other.add(["https://new.example/"], other.now) for other in (copy, reference)]
        found, alone = copy.beliefs.gamma(new[0]), reference.beliefs.gamma(new[1])
        assert float(found.mean[0]) == pytest.approx(float(alone.mean[0]), rel=0.02)


def test_state_and_rows_keep_own_lessons_apart(learned):
    _, two = learned
    engine = two[0]
    assert snapshot(Engine.restore(engine.state()).lessons()) == snapshot(engine.lessons())
    assert engine.rows()["table"] == engine.lessons().table.tolist()


def test_sources_go_by_name(learned):
    """Two engines that number their sources differently."""
    _, two = learned
    copy = Engine.restore(two[0].state())
    copy.learn_from([two[1].lessons(["sitemap"])], copy.now, ["sitemap"])
    assert copy.beliefs.signals._others.statistics.any()
    copy.learn_from([two[1].lessons(["sitemap"])], copy.now, ["feed"])
    assert not copy.beliefs.signals._others.statistics.any()


def test_a_gate_opens_by_what_all_engines_have_seen(learned):
    _, two = learned
    copy = Engine.restore(two[0].state())
    gate = copy.beliefs.belief.signals.gate
    gate[0] = [0.0, 3.0, 3.0, 5.0, -np.inf]
    published = two[1].lessons()
    published.sources["0"].score[:] = 3.0
    copy.learn_from([published], copy.now)
    assert gate[0, 0] == 1.0
    published.sources["0"].score[:] = -7.0
    copy.learn_from([published], copy.now)
    assert gate[0, 0] == 0.0
    assert gate[0, 3] == 10.0, "it needs twice as much to open again"


def test_lessons_of_nobody_change_nothing():
    """All the ways of sharing with nothing to share; an engine that never shared is the same by construction."""
    world, rows = World(), np.arange(2 * PAGES)
    alone, empty = engine_of(rows), engine_of(rows)
    for j in range(3):
        empty.learn_from([], empty.now)
        world.crawl(alone, rows, j, j + 1)
        world.crawl(empty, rows, j, j + 1)
    for name in ("tables", "gamma", "strength", "prior"):
        assert np.array_equal(getattr(alone.beliefs.belief, name), getattr(empty.beliefs.belief, name)), name
    assert np.array_equal(alone.clocks.arrays.found, empty.clocks.arrays.found)
    assert np.array_equal(alone.pick(1e7, 20), empty.pick(1e7, 20))


def test_bins_of_another_width_are_spread():
    from recrawl.engine.clocks.shared import BINS, _rebinned
    from recrawl.engine.outcomes.lessons import ClockLessons

    rng = np.random.default_rng(0)
    found, expected = rng.random((2, BINS))
    one = ClockLessons(1.0, 99, found, expected, np.ones(2), np.zeros(9), np.zeros((9, 9)))
    for span in (0.5, 2.0, 3.7):
        newest, bins, _ = _rebinned(one, span)
        assert newest * span < 100.0 <= (newest + 1) * span
        covered = min(BINS * span, BINS) / BINS
        assert bins.sum() <= found.sum() + expected.sum() + 1e-9
        if covered == 1.0:
            assert bins.sum(axis=1) == pytest.approx([found.sum(), expected.sum()])


def test_lessons_of_earlier_versions_say_nothing_about_weights():
    """They had the credit of each term of clocks and the changes that it would have expected alone."""
    from recrawl.engine.outcomes.lessons import ClockLessons

    saved = engine_of(np.arange(3)).lessons().clocks.as_dict()
    del saved["slope"], saved["curvature"]
    one = ClockLessons.of({**saved, "credit": [1.0] * 9, "exposure": [2.0] * 9})
    assert one.slope.tolist() == [0.0] * 9
    assert one.curvature.tolist() == [[0.0] * 9] * 9
    with pytest.raises(ParameterError, match="lessons have no slope"):
        ClockLessons.of(saved)


def test_strange_lessons_are_refused():
    engine = engine_of(np.arange(3))
    with pytest.raises(ParameterError, match="another day"):
        engine.learn_from([engine_of(np.arange(3), day=1.0).lessons()], 0.0)
    with pytest.raises(ParameterError, match="no table"):
        Lessons.of({"day": 1.0, "pages": 1, "budget": 0.0, "crawls": 0})
