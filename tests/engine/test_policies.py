"""Policies by rates and bandits in the engine: rates from beliefs, turns, steps, saved state, words."""

import numpy as np
import pytest

from recrawl import Engine, ParameterError
from recrawl.engine.policies.names import BANDITS, BY_VALUE, POLICIES
from recrawl.solver import solve

DAY = 86400.0
RATES = [policy for policy in POLICIES if policy not in BY_VALUE]


def known(policy, n=30, **settings):
    """Pages whose rates are known; they change every 2 hours to 8 days."""
    rng = np.random.default_rng(2)
    budget = n / DAY
    engine = Engine(budget, policy=policy, min_change_probability=0.0, **settings)
    rate, importance = np.geomspace(12.0, 0.125, n) / DAY, rng.uniform(0.5, 2.0, n)
    urls = [f"https://a{k}.example/" for k in range(n)]
    engine.add(urls, 0.0, fetched_at=0.0, change_rate=rate, evidence=1e9, importance=importance)
    return engine


def crawl(engine, days, start=0.0):
    """Crawl at the budget; how often each page was crawled."""
    count, period = np.zeros(len(engine)), 1.0 / engine.budget
    for k in range(1, round(days * DAY / period) + 1):
        found = engine.pick(start + k * period, 1)
        changed = np.random.default_rng(k).random(len(found)) < 0.5
        engine.record(found, start + k * period, changed=changed)
        count[found] += 1
    return count


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "spacing"), [("deadline", "even"), ("poisson", "random")])
@pytest.mark.parametrize("objective", ["freshness", "harmonic"])
def test_pages_are_crawled_at_the_optimal_rates(policy, spacing, objective):
    engine = known(policy, objective=objective)
    count = crawl(engine, 40)
    wanted = solve(engine.pages().replace(evidence=np.inf), engine.budget, objective=objective, spacing=spacing)
    expected = 40 * DAY * wanted.crawl_rate
    slack = 6.0 + 0.1 * expected if policy == "deadline" else 10.0 + 0.35 * expected
    assert (np.abs(count - expected) <= slack).all()


def test_uniform_crawls_all_pages_alike():
    count = crawl(known("uniform"), 20)
    assert count.max() - count.min() <= 1


def test_click_weighted_goes_by_importance():
    engine = known("click-weighted")
    count = crawl(engine, 40)
    weight = engine.pages().importance
    assert np.abs(count / count.sum() - weight / weight.sum()).max() < 0.004


@pytest.mark.slow
def test_draws_differ_and_deadlines_do_not():
    """The intervals of a page: almost equal by deadline, exponential with draws."""
    spread = {}
    for policy in ("deadline", "poisson"):
        engine, at = known(policy), []
        for k in range(1, 1500):
            found = engine.pick(k / engine.budget, 1)
            engine.record(found, engine.now, changed=np.zeros(len(found), bool))
            at += [engine.now] * (15 in found)
        gaps = np.diff(at)
        spread[policy] = gaps.std() / gaps.mean()
    assert spread["deadline"] < 0.4 < 0.6 < spread["poisson"]


@pytest.mark.slow
def test_a_bandit_prefers_what_finds_changes():
    engine = known("kab2")
    period = 1.0 / engine.budget
    for k in range(1, 3000):
        found = engine.pick(k * period, 1)
        good = engine.choice._last == "change-weighted"
        engine.record(found, k * period, changed=np.full(len(found), good))
    share = dict(zip(engine.choice.arms, engine.choice.exp3.probability(), strict=True))
    assert share["change-weighted"] > 0.8
    assert "change-weighted" in engine.choice.words(engine)


def test_rules_by_impressions_need_requests():
    engine = known("kab5")
    crawl(engine, 3)
    plays = dict(zip(engine.choice.arms, engine.choice.exp3.plays, strict=True))
    assert plays["impression-weighted"] == 0
    assert sum(plays.values()) > 10
    engine.request([0, 0, 1], engine.now)
    crawl(engine, 10, engine.now)
    plays = dict(zip(engine.choice.arms, engine.choice.exp3.plays, strict=True))
    assert plays["impression-weighted"] > 0


@pytest.mark.parametrize("policy", RATES)
def test_state_and_rows_go_on(policy):
    engine = known(policy)
    crawl(engine, 2)
    twin = Engine.restore(engine.state())
    for k in range(1, 40):
        now = 2 * DAY + k / engine.budget
        found = engine.pick(now, 1)
        assert twin.pick(now, 1).tolist() == found.tolist()
        for one in (engine, twin):
            one.record(found, now, changed=np.full(len(found), k % 3 == 0))
    other = Engine.restore(engine.rows(), engine.now)
    assert other.choice.policy == policy
    assert np.allclose(other.choice.crawl_rate, engine.choice.crawl_rate)
    assert np.allclose(other.choice.turn, engine.choice.turn)
    if policy in BANDITS:
        assert np.allclose(other.choice.exp3.probability(), engine.choice.exp3.probability())
    assert crawl(other, 1, other.now).sum() > 0


@pytest.mark.parametrize("policy", RATES)
def test_it_says_how_often_a_page_is_crawled(policy):
    engine = known(policy)
    crawl(engine, 1)
    for page in (0, 29):
        text = str(engine.explain(page, engine.now)).splitlines()[-1]
        assert f"by the policy {policy}" in text
    assert 0 < engine.forecast(engine.budget).freshness < 1


def test_pages_without_a_copy_come_first_and_are_found_by_every_policy():
    for policy in RATES:
        engine = Engine(1e-3, policy=policy)
        engine.add([f"https://a.example/{k}" for k in range(20)], 0.0)
        assert len(engine.pick(1.0, 20)) == 20, policy


def test_budget_and_new_pages_change_the_rates():
    engine = known("deadline")
    engine.pick(1.0, 1)
    before = engine.choice.crawl_rate.sum()
    engine.budget = 2 * engine.budget
    engine.pick(2.0, 1)
    assert engine.choice.crawl_rate.sum() == pytest.approx(2 * before)
    engine.add([f"https://b.example/{k}" for k in range(30)], 3.0)
    engine.pick(4.0, 1)
    assert engine.choice.crawl_rate.sum() == pytest.approx(2 * before)
    assert (engine.choice.crawl_rate[30:] > 0).any()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"policy": "beauty"}, "policy 'beauty' is not one of value, no-signals"),
        ({"policy": "kab5", "objective": "age"}, "the policy kab5 has no objective age"),
        ({"policy": "poisson", "price": 1.0}, "the policy poisson takes no price"),
    ],
)
def test_what_does_not_go_together_is_refused(settings, words):
    with pytest.raises(ParameterError, match=words):
        Engine(1.0, **settings)


def test_signals_can_be_ignored():
    engine = known("no-signals")
    before = engine.scheduler.value(np.arange(30), 1000.0)
    engine.signal(np.repeat(np.arange(30), 5), 900.0)
    assert engine.scheduler.value(np.arange(30), 1000.0).tolist() == before.tolist()
