"""Refits in pieces: the same as at once, with anything in between; no call does more than a piece."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from recrawl import Engine
from recrawl.engine import upkeep
from recrawl.schedule.exact import access

from .test_signal_gates import World

PIECES = ("_COUNTED", "_PLACED", "_SAMPLED", "_REFRESHED", "_CLOCKS", "_UNLIKELY")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces so small that engines of tests have many."""
    for name in PIECES:
        monkeypatch.setattr(upkeep, name, 7)


def learned(n: int = 120, seed: int = 0, **settings: object) -> Engine:
    """An engine that was never fitted, with crawls of three quarters of its pages."""
    rng = np.random.default_rng(seed)
    engine = Engine(n / 2.0, day=1.0, **settings)
    engine.beliefs.refit_at = 10**9
    ids = engine.add([f"https://{k % 3}.example/{k % 10}/{k}" for k in range(n)], 0.0, fetched_at=rng.random(n))
    some = ids[ids % 4 < 3]
    for now in range(2, 9):
        engine.record(some, float(now), changed=rng.random(len(some)) < 0.02 + 0.5 * (some % 2))
    return engine


def finish(engine: Engine) -> int:
    """Do all pieces; how many there were."""
    n = 0
    while engine.upkeep.due:
        engine.maintain()
        n += 1
    return n


def make_due(engine: Engine) -> None:
    engine.refits_in_pieces = True
    engine.beliefs.refit_at = engine.beliefs.crawls
    assert not engine.refit_if_due()
    assert engine.upkeep.due


def assert_sums(engine: Engine) -> None:
    b, left = engine.beliefs.belief, engine.ids()
    assert b.tables[0].tolist() == b.share[left].sum(axis=0, dtype=float).tolist()


def test_pieces_without_calls_in_between_are_a_whole_refit() -> None:
    whole = learned()
    parts = Engine.restore(copy.deepcopy(whole.state()))
    whole.beliefs.refit_at = 0
    assert whole.refit_if_due()
    make_due(parts)
    assert finish(parts) > 40
    one, two = whole.beliefs.belief, parts.beliefs.belief
    for name in ("tables", "sizes", "strength", "prior", "gamma", "share"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert whole.clocks.arrays.weight.tolist() == parts.clocks.arrays.weight.tolist()
    assert whole.stats["refits"] == parts.stats["refits"] == 1
    assert (whole.beliefs.refit_at, whole.beliefs.fits) == (parts.beliefs.refit_at, parts.beliefs.fits)
    ids = whole.ids()
    assert parts.scheduler.value(ids, 9.0).tolist() == whole.scheduler.value(ids, 9.0).tolist()
    assert parts.pick(9.0, 50).tolist() == whole.pick(9.0, 50).tolist()
    parts.scheduler._check()
    parts.eligibility._check()


def test_pages_that_come_and_go_and_crawls_in_between_are_counted_once() -> None:
    rng, engine = np.random.default_rng(1), learned(seed=1)
    make_due(engine)
    now, pieces = 9.0, 0
    while engine.upkeep.due:
        now += 0.01
        ids = engine.pick(now, 3)
        engine.record(ids, now, changed=rng.random(len(ids)) < 0.5)
        engine.remove(engine.ids()[rng.integers(0, len(engine), 1)])
        engine.add([f"https://{pieces % 4}.example/new/{pieces}"], now, fetched_at=now)
        engine.maintain()
        if pieces % 10 == 0:
            engine.scheduler._check()
            assert_sums(engine)
        pieces += 1
        assert pieces < 1000
    engine.eligibility._check()
    assert engine.stats["refits"] == 1
    assert engine.beliefs.refit_at > engine.beliefs.crawls


def test_a_refit_goes_on_where_the_state_was_saved() -> None:
    engine = learned(seed=2)
    make_due(engine)
    for _ in range(30):
        engine.maintain()
        again = Engine.restore(copy.deepcopy(engine.state()))
    assert finish(again) == finish(engine)
    assert np.array_equal(again.beliefs.belief.gamma, engine.beliefs.belief.gamma)
    assert again.pick(9.0, 50).tolist() == engine.pick(9.0, 50).tolist()


def test_records_leave_the_refit_to_maintain_or_make_it_at_once() -> None:
    engine = learned(seed=3)
    engine.beliefs.refit_at, engine.refits_in_pieces = 0, True
    engine.record([1], 9.0, changed=True)
    assert engine.stats["refits"] == 0
    assert engine.maintain()
    engine.refits_in_pieces = False
    assert engine.stats["refits"] == 1
    assert not engine.maintain()
    engine.beliefs.refit_at = 0
    engine.record([2], 9.5, changed=True)
    assert engine.stats["refits"] == 2


def test_pages_with_signals_are_computed_again_in_pieces() -> None:
    world = World(60)
    world.run(10, truthful=True)
    engine = world.engine
    make_due(engine)
    finish(engine)
    engine.scheduler._check()
    assert engine.beliefs.signals.n_rows > 0
    assert_sums(engine)


def test_unlikely_pages_are_examined_in_pieces() -> None:
    """After crawls that changed what is believed, pages wait no longer than they would at once."""
    engine = Engine(100.0, day=1.0, min_change_probability=0.2)
    ids = engine.add([f"https://a.example/{k}" for k in range(60)], 0.0, fetched_at=0.0, change_rate=0.01, evidence=50)
    assert len(engine.pick(1.0, 60)) == 0
    assert engine.stats["unlikely"] > 10
    engine.beliefs.set_rate(ids, engine.beliefs.prior.from_mean(np.full(60, 5.0), 50.0))
    engine._believe(ids, 1.0)
    engine.refits_in_pieces, engine.crawls_since = True, 10**6
    engine.record([0], 1.0, changed=True)
    assert len(engine.pick(1.5, 60)) <= 1
    finish(engine)
    assert len(engine.pick(1.5, 60)) > 40


def test_clocks_are_published_in_pieces_when_a_bin_has_ended() -> None:
    engine = learned(seed=4)
    engine.refits_in_pieces = True
    later = 9.0 + 3.0 * access.bin_width(engine.scheduler)
    engine.record([1], later, changed=False)
    assert engine.upkeep.due
    assert finish(engine) == -(-len(engine.clocks) // 7)
    assert not engine.clocks.due(later)
    engine.scheduler._check()
