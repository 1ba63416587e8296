"""What is saved is what goes on: exactly from a state, and from rows apart from leases."""

import copy
import json

import numpy as np
import pytest

from recrawl import Engine
from recrawl.engine.beliefs.beliefs import estimated_seen
from recrawl.schedule.testing.trial import same

pytestmark = pytest.mark.slow


def assert_same_but_tables(one, other):
    """Rows are the same; pages were counted in the tables again, by the same observations."""
    fitted = {"table": 0, "signal_tables": 0}
    assert same({**one, **fitted}, {**other, **fitted})
    mine, theirs = one["signal_tables"], other["signal_tables"]
    assert mine.keys() == theirs.keys()
    assert {k: v for k, v in mine.items() if k != "mean_rate"} == {k: v for k, v in theirs.items() if k != "mean_rate"}
    assert theirs.get("mean_rate", []) == pytest.approx(mine.get("mean_rate", []), rel=0.1)
    table, again = np.array(one["table"]), np.array(other["table"])
    assert again.sum() == pytest.approx(table.sum())
    assert np.abs(again - table).sum() < 0.2 * table.sum()


def lived(sources=1, seed=0, n=120, **settings):
    """An engine after some days of crawls that changed, failed, were gone, signalled and asked for."""
    rng = np.random.default_rng(seed)
    engine = Engine(0.01, start=1.7e9, sources=sources, **settings)
    importance = rng.choice([1.0, 2.0], n)
    engine.add(
        [f"https://{'abc'[k % 3]}.example/{k}" for k in range(n)], 1.7e9, fetched_at=1.7e9, importance=importance
    )
    now = 1.7e9
    for k in range(400):
        now += 500.0
        ids = engine.pick(now, 3)
        kind = rng.random(len(ids))
        engine.record(ids, now, changed=rng.random(len(ids)) < 0.4, failed=kind < 0.1, gone=kind > 0.97)
        if sources:
            engine.signal(rng.integers(0, n, 2), now, source=int(rng.integers(sources)))
        if k % 7 == 0:
            engine.request(rng.integers(0, n, 2), now)
    engine.pause([5, 6])
    engine.update([7], cost=3.0)
    engine.host("b.example", spacing=7.0, concurrency=2)
    engine.add([f"https://d.example/{k}" for k in range(40)], now, fetched_at=now)
    return engine, now


def futures(engine, now, rounds=60):
    rng, found = np.random.default_rng(1), []
    for _ in range(rounds):
        now += 300.0
        ids = engine.pick(now, 2)
        urls = engine.url(ids)
        new = [url.startswith("https://d.") for url in urls]  # those are alike, any of them may come first
        found.append(sorted("new" if alike else url for url, alike in zip(urls, new, strict=True)))
        engine.record(ids, now, changed=(rng.random() < 0.5) & ~np.array(new, bool))
    return found


@pytest.mark.parametrize("sources", [0, 1, 2])
def test_a_state_goes_on_exactly(sources):
    engine, now = lived(sources)
    engine.pick(now, 4)
    other = Engine.restore(copy.deepcopy(engine.state()))
    assert same(engine.state(), other.state())
    assert futures(engine, now) == futures(other, now)
    assert same(engine.state(), other.state())


@pytest.mark.parametrize(("sources", "seed"), [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)])
def test_rows_go_on_apart_from_leases(sources, seed):
    engine, now = lived(sources, seed, siblings=False)  # what groups did lately is not in rows
    rows = engine.rows()
    other = Engine.restore(copy.deepcopy(rows), now)
    assert_same_but_tables(rows, other.rows())
    urls = engine.url(engine.ids())
    for url in urls[::7]:
        a, b = (e.explain(int(e.id(url)[0]), now).as_dict() for e in (engine, other))
        different = {name for name in a if a[name] != b[name]} - {"threshold", "next_at"}
        assert different <= {"signals"}, (different, a, b)  # what they are worth is fitted again
        heard = [[(facts["source"], facts["heard"], facts["counts"]) for facts in one["signals"]] for one in (a, b)]
        assert heard[0] == heard[1]
    other.scheduler._check()
    other.eligibility._check()
    agree = [a == b for a, b in zip(futures(engine, now), futures(other, now), strict=True)]
    assert np.mean(agree) > 0.6  # after each crawl the page's rate follows from tables that were counted again
    assert all(agree[:5])


def test_rows_keep_what_was_learned_of_clocks_and_of_each_page():
    engine, now = lived()
    rows = engine.rows()
    other = Engine.restore(copy.deepcopy(rows), now)
    assert_same_but_tables(rows, other.rows())
    assert other.clocks.fitted() == engine.clocks.fitted()
    belief, n = engine.beliefs.belief, len(engine.ids())
    crawls = belief.n_crawls[:n]
    for column in ("seen", "rate_evidence"):  # older rows do not have them
        rows[column] = [None if j % 2 else value for j, value in enumerate(np.asarray(rows[column]).tolist())]
    half = Engine.restore(rows, now).beliefs.belief
    assert np.array_equal(half.seen[:n:2], belief.seen[:n:2])
    assert np.array_equal(half.gamma[:n], belief.gamma[:n])
    counted = estimated_seen(crawls.astype(float), belief.n_changes[:n].astype(float), belief.watched[:n])
    assert half.seen[1:n:2] == pytest.approx(counted[1::2])
    older = {name: value for name, value in rows.items() if name not in ("table", "strength", "fits", "clocks")}
    third = Engine.restore(older, now)
    assert np.array_equal(third.beliefs.belief.gamma[:n], belief.gamma[:n])
    third.pick(now, 3)
    third.scheduler._check()


def test_a_table_of_more_pages_than_there_are_rows_keeps_the_others():
    engine, now = lived(n=60, siblings=False)
    some = engine.rows(engine.ids()[:10])
    other = Engine.restore(some, now).beliefs.belief
    tables, crawled = engine.beliefs.belief.tables[0], (engine.beliefs.belief.n_crawls[:10] > 0).sum()
    assert other.share[:10].any(axis=1).sum() == crawled
    assert other.tables[0].sum() == pytest.approx(tables.sum(), abs=1.0)
    assert (other.tables[0] >= other.share[:10].sum(axis=0) - 1e-6).all()


def test_pages_crawled_together_form_no_cohort():
    engine = Engine(1.0, sources=0)
    engine.add([f"a.example/{k}" for k in range(40)], 0.0, fetched_at=0.0)
    ids = engine.pick(1e5, 40)
    engine.record(ids, 1e5, changed=ids % 2 == 0)
    other = Engine.restore(engine.rows(), 1e5)
    assert sorted(other.id(engine.url(engine.pick(2e5, 20)))) == sorted(other.pick(2e5, 20))


def test_rows_of_some_pages():
    engine, _ = lived()
    some = engine.rows([3, 9])
    assert some["url"] == engine.url([3, 9])
    assert len(some["gamma"]) == len(some["fetched_at"]) == 2


def test_rows_hold_plain_columns():
    engine, _ = lived()
    rows = engine.rows()
    plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in rows.items()}
    again = json.loads(json.dumps(plain))
    other = Engine.restore(again, engine.now)
    assert other.rows()["gamma"].tolist() == plain["gamma"]


def test_a_url_twice_in_rows_is_refused():
    engine, now = lived(n=9)
    rows = engine.rows()
    rows["url"][1] = rows["url"][0]
    with pytest.raises(ValueError, match="twice"):
        Engine.restore(rows, now)
