"""Importance from readers' requests, and what is given beforehand of pages."""

import math

import numpy as np
import pytest

from recrawl import Engine

DAY = 86400.0


@pytest.mark.slow
def test_importance_is_what_was_given_plus_requests_a_day():
    engine = Engine(1.0)
    engine.add(["a.example/", "b.example/"], 0.0, fetched_at=0.0, importance=[1.0, 2.0])
    for hour in range(24 * 200):
        engine.request([0], hour * 3600.0)
    assert engine.pages().importance.tolist() == pytest.approx([25.0, 2.0], rel=0.01)
    assert engine.explain(0, 200 * DAY).request_rate == pytest.approx(24.0, rel=0.01)
    assert "reader requests a day" in str(engine.explain(0, 200 * DAY))


def test_one_request_does_not_make_a_page_important_at_once():
    engine = Engine(1.0)
    engine.add([f"a.example/{k}" for k in range(20)], 0.0, fetched_at=0.0)
    for second in (5.0, 6.0, 7.0):
        engine.request([3], second)
    engine.add("b.example/", 8.0, fetched_at=8.0)
    engine.request([20], 9.0)
    assert engine.pages([3, 20]).importance.tolist() == pytest.approx([4.0, 2.0], rel=0.02)


def test_old_requests_fade_when_the_page_is_crawled():
    engine = Engine(1.0)
    engine.add("a.example/", 0.0, fetched_at=0.0, importance=0.5)
    engine.request(np.zeros(50, int), 10.0)
    engine.record([0], 90 * DAY, changed=[False])
    expected = 50 * math.log(2) / 30 / 8 / (1 - 2 ** (-91 / 30))
    assert engine.pages().importance[0] == pytest.approx(0.5 + expected, rel=1e-3)


def test_requests_for_many_pages_at_once():
    engine = Engine(1.0)
    engine.add([f"a.example/{k}" for k in range(1000)], 0.0, fetched_at=0.0)
    engine.request(np.repeat(np.arange(1000), 3), 50.0)
    assert np.ptp(engine.pages().importance) == 0
    assert engine.stats["requests"] == 3000
    engine.eligibility._check()


def test_what_is_said_of_a_page_is_believed():
    engine = Engine(1.0, day=1.0)
    ids = engine.add(["a.example/", "b.example/"], 0.0, fetched_at=0.0, change_rate=[0.5, 0.0], evidence=[8.0, 2.0])
    assert engine.pages(ids[:1]).change_rate[0] == pytest.approx(0.5, rel=0.1)  # it is evidence beside all pages
    assert engine.pages(ids[1:]).change_rate[0] < 3e-4  # the lowest rates that a page with few crawls may have
    engine.update(ids, change_rate=3.0, evidence=50.0)
    assert engine.pages(ids).change_rate.tolist() == pytest.approx([3.0, 3.0], rel=0.03)


def test_explanations_say_it_in_words():
    engine = Engine(1.0)
    engine.add([f"a.example/{k}" for k in range(200)], 0.0, fetched_at=0.0, importance=np.arange(1.0, 201.0))
    for day in range(1, 40):
        engine.record(np.arange(200), day * DAY, changed=np.arange(200) % 4 == 0)
    text = str(engine.explain(0, 40 * DAY))
    assert "39 changes seen in 39 comparisons" in text
    assert "importance 1, top 100%" in text
    assert "last crawl 24 h ago" in text
    assert "top 0.5%" in str(engine.explain(199, 40 * DAY))
    found = engine.explain(1, 40 * DAY)
    low, high = found.change_rate_interval
    assert low < found.change_rate < high
    assert found.as_dict()["n_changes"] == 0
    assert found.n_crawls == 39


def test_every_state_has_its_words():
    engine = Engine(1.0)
    engine.add([f"a.example/{k}" for k in range(8)], 0.0, fetched_at=0.0)
    engine.host("b.example", concurrency=1)
    engine.add(["https://b.example/1", "https://b.example/2"], 0.0, fetched_at=0.0)
    engine.pause([1])
    engine.record([2], 10.0, failed=True)
    engine.record([3], 10.0, gone=True)
    engine.pick(20.0, 30)
    states = [engine.explain(i, 20.0).state for i in range(10)]
    assert states[0] == "being crawled"
    assert states[1] == "paused"
    assert states[2].startswith("failed 1 time in a row, tried again in")
    assert states[3].startswith("gone, tried again in 30 days")
    assert sorted(states[8:]) == ["being crawled", "waiting for its host"]
    assert engine.explain(2, 1000.0).state == "waiting its turn"
    held = next(i for i in (8, 9) if states[i].startswith("waiting"))
    assert str(engine.explain(held, 20.0)).endswith(": waiting for its host"), "it would be picked"
    engine.record([held], 20.0, changed=False)
    engine.pick(20.5, 1)
    assert engine.explain(held, 21.0).state == "waiting for its host"
    assert ": next crawl in about" in str(engine.explain(held, 21.0)), "it is not its turn, whatever its host does"


def test_what_is_said_of_a_page_outlives_a_fit_of_the_prior():
    engine, rng = Engine(1.0, day=1.0, sources=0), np.random.default_rng(0)
    engine.add([f"a.example/{k}" for k in range(100)], 0.0, fetched_at=0.0)
    found = engine.add("b.example/", 0.0, fetched_at=0.0, change_rate=24.0, evidence=20.0)
    for day in range(10, 60, 10):
        engine.record(np.arange(100), float(day), changed=rng.random(100) < 0.2)
    assert engine.stats["refits"] > 0
    assert engine.pages(found).change_rate[0] == pytest.approx(24.0, rel=0.5)
