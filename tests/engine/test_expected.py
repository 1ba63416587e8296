"""What forecasts expect of copies: right on average where pages are Poisson, and nothing that decides is touched."""

import numpy as np
import pytest

from recrawl import Engine
from recrawl.engine.views.expected import expected_fresh, expected_pages
from recrawl.simulate.compare.audits import _Audited
from recrawl.simulate.worlds.worlds import world


def crawled(seed, n=1000, days=30.0):
    """An engine after six crawls a page on average, the pages' true chances of being fresh, and the time."""
    rng = np.random.default_rng(seed)
    trace = world("poisson", n).draw(days + 1.0, rng)
    made = _Audited(trace, np.zeros(n, bool), 0.2 * n, rng, {})
    made._runner.run(0.0, made._period, 1, int(days / made._period) + 1, 1)
    elapsed = days - made.engine.scheduler._memory.state.rec["last"][:n]
    return made.engine, np.exp(-trace.pages.change_rate * elapsed), trace, days


@pytest.fixture(scope="module")
def worlds():
    return [crawled(seed) for seed in range(4)]


@pytest.mark.slow
def test_forecasts_are_right_on_average(worlds):
    computed, reported = [], []
    for engine, true, trace, now in worlds:
        ids, weight = engine.ids(), trace.importance
        computed.append(np.average(expected_fresh(engine, ids, now) - true, weights=weight))
        reported.append(np.average(engine.fresh(ids, now) - true, weights=weight))
    assert abs(np.mean(computed)) < 0.015
    assert abs(np.mean(reported)) < 0.012


def test_the_mean_of_believed_rates_is_near_the_truth(worlds):
    engine, _, trace, _ = worlds[0]
    believed = expected_pages(engine, engine.ids()).change_rate
    assert believed.mean() == pytest.approx(trace.pages.change_rate.mean(), rel=0.15)


def test_no_believed_rate_is_far_above_the_fastest_true_one(worlds):
    for engine, _, trace, _ in worlds:
        believed = expected_pages(engine, engine.ids()).change_rate
        assert believed.max() < 10.0 * trace.pages.change_rate.max()


def test_nothing_that_decides_is_touched(worlds):
    engine, _, _, now = worlds[0]
    before = engine.beliefs.belief.gamma.copy()
    some = np.array([5, 3, 900])
    found = expected_fresh(engine, some, now)
    assert np.array_equal(engine.beliefs.belief.gamma, before)
    assert np.array_equal(found, expected_fresh(engine, engine.ids(), now)[some])


def test_before_anything_is_learned_computed_and_reported_chances_are_one():
    engine = Engine(1.0)
    ids = engine.add([f"https://a.example/{k}" for k in range(3)], 0.0, fetched_at=0.0)
    assert expected_fresh(engine, ids, 5e4) == pytest.approx(engine.fresh(ids, 5e4), rel=1e-12)
    none = engine.add(["https://b.example/"], 0.0)
    assert expected_fresh(engine, none, 5e4).tolist() == [0.0]
