"""Pages without a copy: certainly not fresh, worth a crawl before pages that have one, and taught by no first crawl."""

import math

import numpy as np
import pytest

from recrawl import Engine

DAY = 86400.0
URLS = [f"https://a.example/{k}" for k in range(200)]


def run(engine, n, start=60.0, step=60.0, changed=False):
    """Pick one page at a time and record it; the pages in the order of their crawls."""
    seen = []
    for k in range(n):
        ids = engine.pick(start + k * step, 1)
        engine.record(ids, start + k * step, changed=np.full(len(ids), changed))
        seen += ids.tolist()
    return seen


def test_all_pages_are_fetched_before_any_is_fetched_again():
    engine = Engine(1 / 60.0)
    engine.add(URLS, now=0.0)
    assert run(engine, 400)[:200] == list(range(200))
    assert engine.has_copy(engine.ids()).all()


def test_new_pages_come_by_importance_and_then_as_they_were_added():
    engine = Engine(1.0)
    importance = np.tile([1.0, 5.0, 2.0], 10)
    engine.add(URLS[:30], now=0.0, importance=importance)
    order = np.argsort(-importance, kind="stable").tolist()
    assert run(engine, 12) == order[:12]
    assert engine.pick(2000.0, 8).tolist() == order[12:20]
    assert engine.pick(2000.0, 10).tolist() == order[20:]


@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_few_new_pages_come_as_they_were_added(n):
    engine = Engine(1.0)
    engine.add(URLS[:n], now=0.0)
    assert run(engine, n) == list(range(n))


def test_a_new_page_comes_before_an_old_copy_however_rare_changes_are():
    engine = Engine(1.0)
    engine.add(["https://a.example/held"], 0.0, fetched_at=0.0, change_rate=1e-4 / DAY, evidence=5.0)
    engine.add(["https://a.example/new"], 400 * DAY, change_rate=1e-4 / DAY, evidence=5.0)
    assert engine.url(engine.pick(400 * DAY, 2)) == ["https://a.example/new", "https://a.example/held"]


def test_it_is_not_fresh_and_not_in_the_ledger():
    engine = Engine(1.0)
    ids = engine.add(URLS[:3], 0.0, fetched_at=[0.0, -math.inf, 0.0])
    assert engine.has_copy(ids).tolist() == [True, False, True]
    assert engine.fresh(ids, 1.0)[1] == 0.0
    assert engine.fresh(ids, 1.0)[0] > 0.99
    assert engine.ledger(10.0).time == pytest.approx(20.0)
    found = engine.explain(1, 10.0)
    assert (found.fetched_at, found.fresh) == (-math.inf, 0.0)
    assert "no copy" in str(found)
    assert found.as_dict()["fetched_at"] is None
    assert 0 < engine.forecast(1.0).freshness < 1


def test_the_first_crawl_teaches_nothing_but_the_age_of_the_copy():
    engine = Engine(1.0)
    engine.add(URLS[:2], 0.0)
    before = engine.beliefs.belief.gamma.copy()
    ids = engine.pick(5.0, 2)
    engine.record(ids, 5.0, changed=[True, False])
    assert np.array_equal(engine.beliefs.belief.gamma, before)
    assert engine.beliefs.belief.n_crawls[ids].tolist() == [0, 0]
    assert engine.stats["changed"] == 0
    assert engine.fresh(ids, 5.0).tolist() == [1.0, 1.0]
    assert engine.ledger(15.0).time == pytest.approx(20.0)


@pytest.mark.parametrize("how", ["rows", "state"])
def test_it_stays_so_when_saved(how):
    engine = Engine(1.0)
    ids = engine.add(URLS[:20], 0.0, fetched_at=np.where(np.arange(20) < 5, 0.0, -np.inf))
    run(engine, 3)
    rows = engine.rows()
    assert np.isinf(rows["fetched_at"]).sum() == 12
    other = Engine.restore(rows, 400.0) if how == "rows" else Engine.restore(engine.state())
    assert other.has_copy(ids).tolist() == engine.has_copy(ids).tolist()
    assert run(other, 17, start=400.0)[:12] == list(range(8, 20))


def test_siblings_that_change_all_the_time_do_not_keep_a_new_page_waiting():
    engine = Engine(1.0)
    urls = [f"https://a.example/f/{k}" for k in range(12)]
    engine.add(urls, 0.0, fetched_at=0.0)
    for k in range(200):
        ids = engine.pick(10.0 * (k + 1), 1)
        engine.record(ids, 10.0 * (k + 1), changed=np.ones(len(ids), bool))
    new = engine.add(["https://a.example/f/new"], 3000.0)
    assert engine.pick(3000.0, 1).tolist() == new.tolist()
    engine.record(new, 3000.0)
    assert engine.beliefs.belief.n_crawls[new[0]] == 0
    assert engine.scheduler._memory.state.member["group"][new[0]] >= 0
    engine.scheduler._check()
