"""Forecasts: more budget is fresher, known rates give the plan's freshness, intervals hold the truth."""

import numpy as np
import pytest

from recrawl import Engine, Pages, ParameterError, solve
from recrawl.model import page_freshness

RATES = np.random.default_rng(3).gamma(1.0, 0.5, 200) + 0.01


def known(**settings):
    engine = Engine(50.0, day=1.0, **settings)
    importance = np.random.default_rng(4).uniform(0.1, 2.0, 200)
    engine.add(
        [f"a.example/{k}" for k in range(200)], 0.0, change_rate=RATES, evidence=1e9, importance=importance
    )  # fmt: skip
    return engine, Pages(RATES, importance)


@pytest.mark.parametrize("sources", [0, 1, 2])
def test_known_rates_give_the_plan(sources):
    engine, pages = known(sources=sources)
    for budget in (5.0, 50.0, 400.0):
        found = engine.forecast(budget)
        assert found.freshness == pytest.approx(solve(pages, budget).freshness, abs=1e-4)
        assert found.high - found.low < 1e-4
        assert (found.budget, found.level) == (budget, 0.9)


def learned(seed):
    """An engine that watched a Poisson world with known rates for long."""
    rng = np.random.default_rng(seed)
    engine = Engine(100.0, day=1.0, sources=0, half_life=1e9)
    engine.add([f"a.example/{k}" for k in range(200)], 0.0)
    last = np.zeros(200)
    for now in np.arange(0.5, 200.0, 0.5).tolist():
        ids = engine.pick(now, 50)
        engine.record(ids, now, changed=rng.random(50) < -np.expm1(-RATES[ids] * (now - last[ids])))
        last[ids] = now
    return engine


@pytest.fixture(scope="module")
def engine():
    return learned(5)


@pytest.fixture(scope="module")
def engines(engine):
    return [engine, *(learned(seed) for seed in range(100, 111))]


def test_more_budget_is_fresher(engine):
    found = [engine.forecast(budget).freshness for budget in (1.0, 10.0, 30.0, 100.0, 1000.0)]
    assert found == sorted(found)
    assert found[-1] - found[0] > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("budget", [20.0, 100.0, 300.0])
def test_the_interval_holds_what_the_true_rates_give(budget, engines):
    held = 0
    for engine in engines:
        plan = solve(engine.pages().replace(evidence=np.inf), budget)
        truth = page_freshness(Pages(RATES), plan.crawl_rate).mean()
        found = engine.forecast(budget, level=0.99)
        assert found.low <= found.freshness <= found.high
        assert found.high - found.low < 0.05
        held += found.low <= truth <= found.high
    assert held >= len(engines) - 1


def test_a_higher_level_is_a_wider_interval(engine):
    narrow, wide = (engine.forecast(50.0, level=level) for level in (0.5, 0.95))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_where_nothing_is_important_there_is_nothing_to_forecast():
    engine = Engine(1.0, day=1.0)
    engine.add(["a.example/", "b.example/"], 0.0, importance=0.0)
    with pytest.raises(ParameterError):
        engine.forecast(1.0)


def test_the_same_draws_each_time(engine):
    assert engine.forecast(50.0) == engine.forecast(50.0)
