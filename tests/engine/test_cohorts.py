"""Tie cohorts: few pages are scheduled, and the picks are those of brute force all the same."""

import numpy as np
import pytest

from recrawl import Engine


def check(engine):
    engine.scheduler._check()
    engine.eligibility._check()


def urls(n, host="a.example"):
    return [f"https://{host}/{k}" for k in range(n)]


@pytest.mark.slow
def test_few_of_many_are_looked_at():
    engine = Engine(10.0)
    engine.add(urls(5000), 0.0, fetched_at=0.0)
    for k in range(200):
        engine.record(engine.pick(60.0 + k, 1), 60.0 + k, changed=[k % 3 == 0])
    check(engine)
    assert engine.scheduler.stats["evaluated"] < 200 * 210


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 3, 50, 4000])
def test_every_page_of_a_cohort_is_picked(n):
    engine = Engine(10.0)
    engine.add(urls(300), 0.0, fetched_at=0.0, importance=np.where(np.arange(300) < 100, 2.0, 1.0))
    seen = []
    for k in range(-(-300 // n)):
        seen.append(engine.pick(1e5 + k, n))
        check(engine)
    assert sorted(np.concatenate(seen).tolist()) == list(range(300))
    assert set(seen[0].tolist()[: min(n, 100)]) <= set(range(100))


def test_a_host_that_is_held_does_not_hold_back_others():
    engine = Engine(10.0, host_spacing=0.0)
    engine.add([*urls(30), *urls(30, "b.example")], 0.0, fetched_at=0.0)
    engine.hold("a.example", 1e9)
    assert sorted(engine.pick(100.0, 60).tolist()) == list(range(30, 60))
    check(engine)


def test_a_rule_that_comes_later_does_not_hold_back_others():
    engine = Engine(10.0, siblings=False)  # so that all of one host are alike
    engine.add([*urls(30), *urls(30, "b.example"), *urls(3, "c.example")], 0.0, fetched_at=0.0)
    before = engine.url(engine.pick(50.0, 2))  # among equals, any is right
    a, b, c = (sum(url.startswith(f"https://{host}") for url in before) for host in "abc")
    engine.hold("a.example", 1e9)
    engine.host("c.example", concurrency=1)
    check(engine)
    picked = engine.url(engine.pick(100.0, 60))
    assert [sum(url.startswith(f"https://{host}") for url in picked) for host in "abc"] == [0, 30 - b, max(1 - c, 0)]
    check(engine)
    engine.hold("a.example", 0.0)
    assert len(engine.pick(101.0, 60)) == 30 - a
    check(engine)


EVENTS = {
    "record": lambda e: e.record([20], 60.0, changed=[True]),
    "failure": lambda e: e.record([20], 60.0, failed=[True]),
    "signal": lambda e: e.signal([20, 20], 60.0),
    "request": lambda e: e.request([20], 60.0),
    "importance": lambda e: e.update([20], importance=7.0),
    "rate": lambda e: e.update([20], change_rate=1.0),
    "pause": lambda e: e.pause([20]),
    "remove": lambda e: e.remove([20]),
    "release": lambda e: e.release([20], 60.0),
    "resume": lambda e: e.resume([20]),
}


@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize("width", [1, 25, 200])
def test_a_page_leaves_the_line_when_it_is_not_alike_any_more(name, width):
    engine = Engine(10.0)
    engine.add(urls(100), 0.0, fetched_at=0.0)
    engine.pick(50.0, width)
    EVENTS[name](engine)
    check(engine)
    free = [i for i in engine.ids().tolist() if engine.explain(i, 70.0).state == "waiting its turn"]
    best = engine.pick(70.0, 1).tolist()
    assert bool(best) == bool(free)
    assert not free or engine.scheduler.value(best, 70.0)[0] == engine.scheduler.value(free, 70.0).max()
    check(engine)


def test_the_prior_moves_under_pages_that_wait_in_a_cohort():
    engine = Engine(10.0)
    engine.add(urls(600), 0.0, fetched_at=0.0)
    rng = np.random.default_rng(0)
    for k in range(400):
        now = 3600.0 * (1 + k)
        ids = engine.pick(now, 1)
        engine.record(ids, now, changed=rng.random(1) < 0.9)
    assert engine.stats["refits"] > 0
    check(engine)
    unseen = [i for i in range(600) if engine.explain(i, 1e6).n_crawls == 0]
    values = engine.scheduler.value(unseen, 2e6)
    assert len(unseen) > 100
    assert np.ptp(values) == 0.0


def test_removed_pages_of_a_cohort_are_skipped():
    engine = Engine(10.0)
    engine.add(urls(100), 0.0, fetched_at=0.0)
    engine.remove(np.arange(0, 100, 2))
    check(engine)
    assert sorted(engine.pick(50.0, 200).tolist()) == list(range(1, 100, 2))
