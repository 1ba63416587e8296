"""What is saved is what goes on: exactly from a state, and from rows apart from leases."""

import copy
import json

import numpy as np
import pytest

from recrawl import Engine
from recrawl.schedule.testing.trial import same

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize("sources", [0, 1, 2])
def test_rows_go_on_apart_from_leases(sources):
    engine, now = lived(sources, siblings=False)  # what groups did lately is not in rows
    rows = engine.rows()
    other = Engine.restore(copy.deepcopy(rows), now)
    assert same(rows, other.rows())
    urls = engine.url(engine.ids())
    for url in urls[::7]:
        a, b = (e.explain(int(e.id(url)[0]), now).as_dict() for e in (engine, other))
        different = {name for name in a if a[name] != b[name]} - {"threshold", "next_at"}
        assert different <= ({"value"} if sources == 2 else set()), (different, a, b)
    other.scheduler._check()
    other.eligibility._check()
    if sources < 2:  # with two, signals weigh what they weigh now
        assert futures(engine, now) == futures(other, now)


def test_with_siblings_rows_keep_what_was_learned_of_them_and_of_each_page():
    engine, now = lived()
    rows = engine.rows()
    other = Engine.restore(copy.deepcopy(rows), now)
    assert same(rows, other.rows())
    assert other.effects.arrays.used.tolist() == engine.effects.arrays.used.tolist()
    for column in ("sibling_weight", "twin", "changed_at"):  # older rows do not have them
        rows[column] = [None if j % 2 else value for j, value in enumerate(np.asarray(rows[column]).tolist())]
    half = Engine.restore(rows, now)
    n = len(half.ids())
    assert np.array_equal(half.effects.arrays.weight[:n:2], engine.effects.arrays.weight[:n:2])
    assert (half.effects.arrays.weight[1:n:2] == half.effects.arrays.prior).all()
    assert half.effects.arrays.alternative[:n:2] == pytest.approx(engine.effects.arrays.alternative[:n:2])
    alike = half.beliefs.found(np.arange(1, n, 2), half.beliefs.belief.prior[0])
    assert half.effects.arrays.alternative[1:n:2] == pytest.approx(alike)  # the same both ways
    half.pick(now, 3)
    half.scheduler._check()


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
