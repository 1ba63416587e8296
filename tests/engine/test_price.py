"""A price of a crawl: pages are crawled when a crawl saves as much as it costs, and the bound on very stale copies."""

import numpy as np
import pytest

from recrawl import Engine, ParameterError
from recrawl.engine.eligibility.eligibility import Reason
from recrawl.model.cost import bounded_ratio, refresh_ratio

HOUR = 3600.0
KNOWN = {"evidence": 1e9, "fetched_at": 0.0}


def priced(hours, price, n=1, budget=1.0, **settings):
    """Pages that change every ``hours``, with rates that are known."""
    engine = Engine(budget, price=price * HOUR, min_change_probability=0.0, **settings)
    urls = [f"https://a{k}.example/" for k in range(n)]
    ids = engine.add(urls, 0.0, change_rate=1.0 / (np.asarray(hours) * HOUR), **KNOWN)
    return engine, ids


def test_a_page_is_crawled_at_the_interval_that_costs_least():
    engine, _ = priced(24.0, 1.0)
    due = float(refresh_ratio(24.0, 1.0, 1.0)) * 24.0 * HOUR
    assert engine.next_at(1.0) == pytest.approx(due, rel=1e-5)
    assert engine.pick(0.999 * due, 3).tolist() == []
    assert engine.pick(engine.next_at(1.0), 3).tolist() == [0]
    engine.record([0], engine.now, changed=[False])
    assert engine.next_at(engine.now + 1.0) == pytest.approx(2 * due, rel=1e-4)


def test_a_page_that_changes_too_fast_is_never_worth_its_price():
    engine, ids = priced([0.5, 24.0], 1.0, n=2)
    for k in range(1, 200):
        found = engine.pick(k * HOUR, 2)
        engine.record(found, k * HOUR, changed=np.zeros(len(found), bool))
        assert 0 not in found
    assert np.isinf(engine.explain(0, engine.now).next_at)
    assert "never saves as much as it costs" in str(engine.explain(0, engine.now))
    engine.update(ids[:1], importance=100.0)
    assert 0 in engine.pick(engine.now, 2)


@pytest.mark.slow
def test_the_budget_stays_the_upper_limit_and_less_is_spent():
    rng = np.random.default_rng(3)
    engine, _ = priced(rng.uniform(5.0, 50.0, 50), 2.0, n=50)
    crawls = 0
    for k in range(1, 2000):
        found = engine.pick(0.1 * k * HOUR, 1)
        assert (engine.scheduler.value(found, engine.now) >= 2.0 * HOUR * (1 - 1e-9)).all()
        engine.record(found, engine.now, changed=np.zeros(len(found), bool))
        crawls += len(found)
    assert 0 < crawls < 1500


def test_pages_without_a_copy_are_worth_any_price():
    engine = Engine(1.0, price=1e9)
    engine.add(["https://a.example/"], 0.0)
    assert engine.pick(1.0, 1).tolist() == [0]


def test_it_says_why_and_until_when():
    engine, _ = priced(24.0, 1.0)
    found = engine.explain(0, HOUR)
    assert "its price is 60 min: it costs more than it saves for another" in str(found)
    engine.pick(HOUR, 1)
    found = engine.explain(0, HOUR)
    assert found.reasons == (Reason.PRICE,)
    assert engine.eligibility.reasons(0, engine.now, engine.price) == (Reason.PRICE,)
    assert engine.eligibility.reasons(0, engine.now) == (Reason.UNLIKELY,), "without a price, for any other cause"
    assert "it costs more than it saves for another" in found.state
    assert found.next_at == pytest.approx(float(refresh_ratio(24.0, 1.0, 1.0)) * 24.0 * HOUR, rel=2e-3)


def test_a_bound_on_very_stale_copies_is_kept():
    bound = {"very_stale": 8.0 * HOUR, "very_stale_share": 0.05}
    engine, _ = priced(24.0, 23.0, **bound)
    due = float(bounded_ratio(0.05, 24.0, 8.0)) * 24.0 * HOUR
    assert engine.next_at(1.0) == pytest.approx(due, rel=1e-3)
    assert engine.pick(1.001 * due, 1).tolist() == [0]
    free, _ = priced(24.0, 23.0)
    assert free.next_at(1.0) > 3 * due


def test_another_price_takes_hold_at_once():
    engine, _ = priced(24.0, 20.0)
    assert engine.pick(10.0 * HOUR, 1).tolist() == []
    engine.set_price(1.0)
    assert engine.pick(10.0 * HOUR, 1).tolist() == [0]


def test_the_forecast_spends_no_more_than_pays():
    engine, _ = priced(np.full(20, 24.0), 1.0, n=20)
    assert engine.forecast(1.0).freshness == pytest.approx(engine.forecast(0.1).freshness, abs=1e-6)
    engine.set_price(0.0)
    assert engine.forecast(1.0).freshness > 0.99


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"price": -1.0}, "price is -1.0: must be finite"),
        ({"price": 1.0, "objective": "age"}, "does not go with the objective age"),
        ({"very_stale": 1.0, "price": 1.0}, "belong together"),
        ({"very_stale": 1.0, "very_stale_share": 0.1}, "needs a price"),
        ({"very_stale": 1.0, "very_stale_share": 1.0, "price": 1.0}, "below 1"),
    ],
)
def test_bad_prices_are_refused(settings, words):
    with pytest.raises(ParameterError, match=words):
        Engine(1.0, **settings)
