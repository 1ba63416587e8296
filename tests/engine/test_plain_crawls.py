"""Crawls that ended as most do, recorded by one kernel, teach and place what the general way does."""

import copy

import numpy as np
import pytest

from recrawl import Engine
from recrawl._compile.packed import pack
from recrawl.errors import ParameterError

DAY = 86400.0


def life(n, seed, **settings):
    """An engine after crawls of n pages at a time, with refits, ends of bins and signals, and what it picked."""
    rng = np.random.default_rng(seed)
    engine = Engine(60 / DAY, **settings)
    urls = [f"https://h{k % 3}.example/{'ab'[k % 2]}/{k}" for k in range(80)]
    ids = engine.add(urls, 0.0, importance=rng.integers(1, 9, 80).astype(float), fetched_at=-DAY * rng.random(80))
    picked, now = [], 0.0
    for step in range(240 // n):
        now += n * DAY / 60
        if settings.get("sources"):
            engine.signal(ids[rng.integers(0, 80, 3)], now)
        found = engine.pick(now, n)
        picked.append(found.tolist())
        engine.record(found, now, changed=rng.random(len(found)) < 0.4)
        if step % 9 == 0:
            engine.scheduler._check()
    return picked, engine


@pytest.mark.parametrize(("n", "settings"), [(1, {}), (12, {}), (6, {"sources": 1}), (12, {"siblings": False})])
def test_picks_and_beliefs_are_those_of_the_general_way(n, settings, monkeypatch):
    picked, engine = life(n, 2, **settings)
    monkeypatch.setattr(Engine, "_recorded_plain", lambda *_: False)
    expected, general = life(n, 2, **settings)
    assert picked == expected
    assert engine.stats["refits"] > 1
    assert {name: engine.stats[name] for name in ("recorded", "changed", "refits", "late_records")} == {
        name: general.stats[name] for name in ("recorded", "changed", "refits", "late_records")
    }
    for mine, other in zip(engine.learned.belief[:-1], general.learned.belief[:-1], strict=True):
        np.testing.assert_array_equal(mine, other)
    for mine, other in zip(engine.learned.clocks[:-1], general.learned.clocks[:-1], strict=True):
        np.testing.assert_array_equal(mine, other)


def test_other_crawls_take_the_general_way():
    _, engine = life(12, 3)
    now = engine.now + DAY
    first = int(engine.add(["https://new.example/"], now)[0])
    two = engine.pick(now, 2)
    assert not engine._recorded_plain(np.array([first]), now, np.array([True])), "it has no copy"
    assert not engine._recorded_plain(two[[0, 0]], now, np.array([True, False])), "one page twice"
    assert not engine._recorded_plain(two, now, [True, False]), "no array of flags"
    other = next(k for k in range(80) if k not in two.tolist())
    assert not engine._recorded_plain(np.array([other]), now, np.array([True])), "it is not leased"
    with pytest.raises(ParameterError, match="id 900 does not exist"):
        engine.record(np.array([900]), now, changed=np.array([True]))
    recorded = engine.stats["recorded"]
    known = two[two != first]
    assert engine._recorded_plain(known, now, np.ones(len(known), np.bool_))
    assert engine.stats["recorded"] == recorded + len(known)


def test_a_copy_of_an_engine_learns_by_itself():
    _, engine = life(12, 4)
    other = copy.deepcopy(engine)
    before, now = engine.beliefs.belief.seen.copy(), engine.now + DAY
    found = other.pick(now, 3)
    other.record(found, now, changed=np.ones(3, np.bool_))
    assert (other.beliefs.belief.n_crawls[found] == engine.beliefs.belief.n_crawls[found] + 1).all()
    np.testing.assert_array_equal(engine.beliefs.belief.seen, before)


def test_packed_numbers_are_addresses_and_shapes():
    _, engine = life(12, 5)
    numbers, belief = pack(engine.learned), engine.learned.belief
    assert numbers[:3].tolist() == [belief.seen.__array_interface__["data"][0], *belief.seen.shape]
    assert engine.packed is engine.packed
    packed = engine.packed
    engine.add(["https://more.example/"], engine.now)
    assert engine.packed is not packed


@pytest.mark.parametrize("n", [3, 11])
def test_single_picks_after_a_batch_are_the_best_pages(n):
    """A batch moves several clocks; near pages that follow them must not be taken for what they were worth before."""
    rng = np.random.default_rng(n)
    engine = Engine(60 / DAY, min_change_probability=0.0)
    ids = engine.add([f"https://a.example/{k % 4}/{k}" for k in range(60)], 0.0, fetched_at=-DAY * rng.random(60))
    now = 0.0
    for _ in range(25):
        now += n * DAY / 60
        found = engine.pick(now, n)
        engine.record(found, now, changed=rng.random(n) < 0.5)
        engine.scheduler._check()
        value = engine.scheduler.value(ids, now)
        one = engine.pick(now, 1)
        assert value[one[0]] == value.max()
        engine.release(one, now)
