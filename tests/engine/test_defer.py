"""Pages set aside until a time, floors of their own, rows taken at different times."""

import numpy as np
import pytest

from recrawl import Engine, ParameterError

DAY = 86400.0
URLS = [f"https://{'ab'[k % 2]}.example/{k}" for k in range(40)]


def fresh(**settings):
    engine = Engine(0.01, start=0.0, **settings)
    return engine, engine.add(URLS, 0.0, fetched_at=0.0)


def picked(engine, now, n=40):
    ids = engine.pick(now, n)
    engine.record(ids, now, changed=ids % 3 == 0)
    return set(ids.tolist())


def test_deferred_pages_are_not_picked_before_their_time():
    engine, ids = fresh()
    engine.defer(ids[:5], 2 * DAY)
    engine.defer(ids[5:7], [3 * DAY, 4 * DAY])
    assert picked(engine, DAY) == set(ids[7:].tolist())
    assert engine.next_at(DAY + 1) <= 2 * DAY
    assert picked(engine, 2 * DAY) >= set(ids[:5].tolist())
    assert 5 in picked(engine, 3 * DAY)
    assert 6 in picked(engine, 4 * DAY)
    engine.eligibility._check()


def test_a_deferral_is_said_and_kept():
    engine, ids = fresh()
    engine.defer(ids[:1], 2 * DAY)
    found = engine.explain(0, DAY)
    assert found.state == "set aside, tried again in 24 h"
    assert found.next_at >= 2 * DAY
    other = Engine.restore(engine.rows(), DAY)
    assert 0 not in picked(other, 1.5 * DAY)
    assert 0 in picked(other, 2 * DAY)


def test_a_failure_s_longer_wait_stays_and_a_success_ends_both():
    engine, ids = fresh()
    engine.record(ids[:1], 10.0, gone=True)
    engine.defer(ids[:1], 20.0)
    assert engine.eligibility.waiting.until(0) == 10.0 + 30 * DAY
    engine.record(ids[:1], 30.0, changed=True)
    assert engine.eligibility.waiting.until(0) == -np.inf


def test_a_page_that_is_being_crawled_can_be_deferred():
    engine, _ = fresh(host_spacing=1.0, host_concurrency=1)
    page = engine.pick(DAY, 1)
    engine.release(page, DAY)
    engine.defer(page, 2 * DAY)
    assert engine.stats["leased"] == 0
    for k in range(50):
        assert page[0] not in picked(engine, DAY + 10.0 * (k + 1), 1)


@pytest.mark.parametrize("in_cohort", [True, False])
def test_floors_of_some_pages(in_cohort):
    engine, ids = fresh()
    if not in_cohort:
        engine.record(ids, 1.0, changed=ids % 2 == 0)
    engine.set_floor(ids[:10], 1 / DAY)
    engine.eligibility._check()
    engine.scheduler._check()
    last = engine.rows()["fetched_at"].copy()
    for k in range(1, 200):
        now = 2000.0 * k
        one = engine.pick(now, 1)
        engine.record(one, now, changed=False)
        last[one] = now
        assert (now - last[:10] < DAY + 10 * 2000.0).all()
    assert "older than it may be" in str(engine.explain(3, now + 3 * DAY))


def test_floors_outlive_what_else_is_learned_and_new_pages():
    engine, ids = fresh()
    engine.set_floor(ids[:1], 1 / DAY)
    engine.update(ids[:2], importance=[1e-9, 1e-9])
    engine.add([f"https://c.example/{k}" for k in range(20)], 10.0, fetched_at=10.0)
    engine.record(ids, 20.0, changed=True)
    assert engine.pick(20.0 + DAY, 1).tolist() == [0]
    with pytest.raises(ParameterError, match="floor"):
        engine.set_floor(ids, -1.0)


def test_rows_of_some_pages_have_the_hosts_of_these():
    engine, ids = fresh(host_spacing=1.0)
    assert set(engine.rows(ids[:1])["hosts"]) == {"a.example"}
    assert set(engine.rows()["hosts"]) == set(engine.hosts()) == {"a.example", "b.example"}


def test_what_a_crawl_was_worth_at_the_margin_is_kept():
    engine, _ = fresh()
    picked(engine, DAY, 3)
    assert Engine.restore(engine.rows(), DAY).threshold == engine.threshold > 0
