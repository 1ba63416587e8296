"""What forecasts expect of copies: right on average where pages are Poisson, and nothing that decides is touched."""

import numpy as np
import pytest

from recrawl import Engine
from recrawl.engine.beliefs.staleness_kernels import fill_fresh
from recrawl.engine.views.expected import expected_fresh, fitting_mean, moved_gamma
from recrawl.schedule.exact import access
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


def test_forecasts_are_right_on_average_where_the_engine_s_own_belief_is_not(worlds):
    own, moved, reported = [], [], []
    for engine, true, trace, now in worlds:
        ids, weight, computed = engine.ids(), trace.importance, np.empty(len(trace))
        belief = engine.beliefs.belief
        fill_fresh(access.header(engine.scheduler), belief, ids, belief.gamma[ids, 0], now, computed)
        own.append(np.average(computed - true, weights=weight))
        moved.append(np.average(expected_fresh(engine, ids, now) - true, weights=weight))
        reported.append(np.average(engine.fresh(ids, now) - true, weights=weight))
    assert np.mean(own) > 0.015, "too fresh"
    assert abs(np.mean(moved)) < 0.012
    assert abs(np.mean(reported)) < 0.012


def test_the_mean_is_a_fixed_point_and_near_the_truth(worlds):
    engine, _, trace, _ = worlds[0]
    mean = fitting_mean(engine)
    gamma = moved_gamma(engine, engine.ids(), mean)
    seen = engine.beliefs.belief.watched[: len(gamma)] > 0
    assert (gamma[seen, 0] / gamma[seen, 1]).mean() == pytest.approx(mean, rel=1e-4)
    assert mean == pytest.approx(trace.pages.change_rate.mean(), rel=0.15)
    assert float(engine.beliefs.prior.mean) < 0.85 * mean


def test_nothing_that_decides_is_touched(worlds):
    engine, _, _, now = worlds[0]
    before = engine.beliefs.belief.gamma.copy()
    some = np.array([5, 3, 900])
    found = expected_fresh(engine, some, now)
    assert np.array_equal(engine.beliefs.belief.gamma, before)
    assert np.array_equal(found, expected_fresh(engine, engine.ids(), now)[some])
    assert np.array_equal(found, expected_fresh(engine, some, now, fitting_mean(engine)))


def test_before_the_prior_is_fitted_and_for_rates_that_were_given_beliefs_stay():
    engine = Engine(1.0)
    ids = engine.add([f"https://a.example/{k}" for k in range(3)], 0.0, fetched_at=0.0)
    assert np.array_equal(expected_fresh(engine, ids, 5e4), engine.fresh(ids, 5e4))
    fixed = engine.add(["https://b.example/"], 0.0, fetched_at=0.0, change_rate=1e-5)
    assert np.array_equal(moved_gamma(engine, fixed, 7.0), engine.beliefs.belief.gamma[fixed, 0])
