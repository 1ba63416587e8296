"""Pages that are too unlikely to have changed are not picked, until they are likely enough, or something is heard."""

import copy
import math

import numpy as np
import pytest

from recrawl import Engine
from recrawl.engine.eligibility.eligibility import Reason

from .test_signal_gates import World

DAY = 86400.0


def known(rate, n=1, evidence=1e9, **settings):
    """An engine whose pages change with a given rate per day, fetched at 0."""
    engine = Engine(1.0, **settings)
    urls, rates = [f"https://a{k}.example/" for k in range(n)], np.asarray(rate) / DAY
    ids = engine.add(urls, 0.0, fetched_at=0.0, change_rate=rates, evidence=evidence)
    return engine, ids


def reached(rate, least=0.01):
    """When the chance of a change of a page whose rate is known reaches a limit: −ln(1 − p)/rate."""
    return -math.log1p(-least) / (rate / DAY)


@pytest.mark.parametrize("least", [0.01, 0.2])
def test_a_page_is_not_picked_before_its_chance_reaches_the_limit(least):
    engine, _ = known(0.1, min_change_probability=least)
    at = reached(0.1, least=least)
    assert engine.pick(0.999 * at, 5).tolist() == []
    assert engine.next_at(0.999 * at) == pytest.approx(at, rel=1e-6)
    due = engine.next_at(0.999 * at)
    assert 1 - engine.fresh([0], due)[0] == pytest.approx(least, rel=1e-6)
    assert engine.pick(due, 5).tolist() == [0]


def test_next_at_is_right_without_a_pick_before():
    engine, _ = known(0.1)
    assert engine.next_at(1.0) == pytest.approx(reached(0.1), rel=1e-6)
    assert engine.next_at(1.01 * reached(0.1)) == 1.01 * reached(0.1)


def test_0_picks_any_page():
    engine, _ = known(1e-6, min_change_probability=0.0)
    assert engine.pick(1.0, 1).tolist() == [0]


def test_it_says_why_and_when():
    engine, _ = known(0.1)
    engine.pick(1.0, 1)
    found = engine.explain(0, 1.0)
    assert engine.eligibility.reasons(0, 1.0) == (Reason.UNLIKELY,)
    assert found.next_at == pytest.approx(reached(0.1), rel=1e-6)
    assert "less than 1%" in found.state
    assert engine.stats["unlikely"] == 1


def test_a_limit_of_nearly_1_is_written_without_an_exponent():
    engine, _ = known(0.1, min_change_probability=0.999)
    engine.pick(1.0, 1)
    assert "less than 100%" in engine.explain(0, 1.0).state


def test_a_floor_overrides_it():
    engine, ids = known(1e-6)
    assert engine.pick(100.0, 1).tolist() == []
    engine.set_floor(ids, 1 / 500.0)
    assert engine.pick(499.0, 1).tolist() == []
    assert engine.next_at(499.0) == 500.0
    assert engine.pick(500.0, 1).tolist() == [0]


def trusting():
    """An engine that trusts its source, in days, and the time."""
    world = World(30, budget=1.0, siblings=False)
    world.run(10, truthful=True)
    assert world.opened
    world.engine.min_change_probability = 0.01
    return world.engine, world.now


def test_a_signal_that_counts_overrides_it():
    engine, now = trusting()
    assert engine.pick(now + 1e-3, 1).tolist() == []
    engine.signal([7], now + 2e-3)
    assert engine.pick(now + 2e-3, 2).tolist() == [7]
    engine.eligibility._check()


def test_a_signal_that_is_not_proven_does_not():
    engine, ids = known(1e-6)
    assert engine.pick(100.0, 1).tolist() == []
    engine.signal(ids, 101.0)
    assert engine.pick(101.0, 1).tolist() == []
    engine.eligibility._check()


def test_another_rate_ends_it():
    engine, ids = known(1e-6)
    assert engine.pick(100.0, 1).tolist() == []
    engine.update(ids, change_rate=1.0 / 60.0)
    assert engine.pick(101.0, 1).tolist() == [0]


def test_a_page_without_a_copy_is_never_held_back():
    engine = Engine(1.0)
    engine.add(["https://a.example/"], 0.0, change_rate=1e-12, evidence=100.0)
    assert engine.pick(0.0, 1).tolist() == [0]


def test_no_page_is_held_back_before_anything_is_known():
    engine = Engine(1.0)
    engine.add(["https://a.example/", "https://b.example/"], 0.0)
    for k in range(30):
        ids = engine.pick(k, 1)
        engine.record(ids, k, changed=np.zeros(len(ids), bool))
    assert engine.beliefs.belief.n_crawls[:2].tolist() == [10, 10]


def test_the_next_pages_are_picked_instead_and_hosts_are_not_delayed():
    engine, ids = known([1e-6, 5.0, 1e-6, 1.0], 4, host_spacing=50.0)
    engine.update(ids, importance=[1e9, 1.0, 1e9, 1.0])
    now = 0.1 * DAY
    assert engine.pick(now, 2).tolist() == [1, 3]
    assert engine.held_until("a0.example") <= now
    assert engine.held_until("a1.example") == now + 50.0
    assert engine.stats["decisions"] == 2
    assert engine.threshold == pytest.approx(engine.scheduler.value([3], now)[0])


def test_leases_are_given_back_without_a_trace():
    engine, ids = known(np.where(np.arange(60) % 3, 1e-6, 3.0), 60, host_spacing=50.0, siblings=False)
    engine.update(ids, importance=np.random.default_rng(1).uniform(1.0, 2.0, 60))
    other, now = copy.deepcopy(engine), 0.2 * DAY
    other.pause(ids[np.arange(60) % 3 > 0])
    for k in range(6):
        assert engine.pick(now + 20.0 * k, 4).tolist() == other.pick(now + 20.0 * k, 4).tolist()
        for host in engine.hosts():
            here = now + 20.0 * k
            free = max(engine.held_until(host), here), max(other.held_until(host), here)
            assert free[0] == free[1]
    assert engine.stats["leased"] == other.stats["leased"]


@pytest.mark.slow
def test_many_unlikely_pages_cost_little():
    n = 20_000
    engine, _ = known(np.where(np.arange(n) < 5, 10.0, 1e-9), n, siblings=False)
    engine.update(np.arange(n), importance=np.where(np.arange(n) < 5, 1.0, 1e12))
    before = engine.stats["evaluated"]
    assert sorted(engine.pick(0.1 * DAY, 3000).tolist()) == [0, 1, 2, 3, 4]
    assert engine.stats["evaluated"] - before < 40 * n
    assert engine.pick(0.1 * DAY + 1.0, 3000).tolist() == []
    engine.scheduler._check()


@pytest.mark.slow
def test_a_cohort_waits_as_one():
    engine = Engine(1.0, siblings=False)
    engine.add([f"https://a.example/{k}" for k in range(5000)], 0.0, fetched_at=0.0)
    engine.beliefs.fits = 1  # as if the tables had been fitted
    shape, rate = engine.beliefs.belief.gamma[0]
    at = rate * (0.99 ** (-1 / shape) - 1)
    assert engine.pick(100.0, 3).tolist() == []
    assert engine.stats["unlikely"] == 1
    assert engine.eligibility.reasons(4000, 100.0)[0] is Reason.UNLIKELY
    assert engine.next_at(100.0) == pytest.approx(at, rel=1e-6)
    engine.eligibility._check()
    engine.update([77], change_rate=1.0 / 200.0)
    assert engine.pick(200.0, 3).tolist() == [77]
    other = Engine.restore(engine.state())
    for one in (engine, other):
        assert len(one.pick(1.001 * at, 10)) == 10
        one.eligibility._check()
        one.scheduler._check()


def test_a_signal_that_counts_takes_a_page_out_of_its_cohort():
    engine, now = trusting()
    ids = engine.add([f"https://a.example/new/{k}" for k in range(500)], now, fetched_at=now)
    assert engine.pick(now + 1e-3, 3).tolist() == []
    engine.signal(ids[77:78], now + 2e-3)
    assert engine.pick(now + 2e-3, 3).tolist() == [ids[77]]
    engine.eligibility._check()
    engine.scheduler._check()


def test_siblings_bring_pages_back():
    engine = Engine(12.0 / DAY)
    urls = [f"https://a.example/f/{k}" for k in range(12)]
    engine.add(urls, 0.0, fetched_at=0.0, change_rate=5e-3 / DAY, evidence=50.0)
    assert engine.pick(DAY, 12).tolist() == []
    for page in (0, 1, 2, 3):
        engine.record([page], DAY + page, changed=[True])
    left = set(engine.pick(DAY + 10.0, 12).tolist())
    assert left
    assert not left & {0, 1, 2, 3}
    assert all(1 - engine.fresh([page], DAY + 10.0)[0] >= 0.01 for page in left)


@pytest.mark.parametrize("value", [-0.1, 1.0, 2.0, math.nan])
def test_wrong_limits(value):
    with pytest.raises(ValueError, match="min_change_probability"):
        Engine(1.0, min_change_probability=value)
