"""Signals in the engine: gates, floods, refits, fetches under way, saved state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from recrawl._compile.plain import plain
from recrawl.engine import Engine
from recrawl.engine.signals.arrays import is_open, row_of
from recrawl.schedule.exact import access

Array = NDArray[np.float64]


class World:
    """Pages of one host, crawled every other day; source 0 tells of changes as they happen, or at random."""

    def __init__(self, n: int, sources: int = 1, seed: int = 0, **settings: Any) -> None:
        self.rng = np.random.default_rng(seed)
        self.engine = Engine(sources=sources, day=1.0, min_change_probability=0.0, **settings)
        self.pages = self.engine.add([f"https://a.example/{i}" for i in range(n)], 0.0, fetched_at=0.0)
        self.now = 0.0

    @property
    def opened(self) -> bool:
        return bool(plain(is_open)(self.engine.beliefs.belief.signals, 0, 0))

    def by_signals(self, page: int) -> bool:
        return bool(access.components_of(self.engine.scheduler, np.array([page])).any())

    def run(self, rounds: int, truthful: bool, source: int = 0) -> None:
        for _ in range(rounds):
            changed = self.rng.random(len(self.pages)) < 0.45
            signalled = changed if truthful else self.rng.permutation(changed)
            self.engine.signal(self.pages[signalled], self.now + 1.0, source=source)
            self.now += 2.0
            self.engine.record(self.pages, self.now, changed=changed)


@pytest.fixture(scope="module")
def trusted() -> dict[str, Any]:
    """An engine that trusts its source."""
    world = World(30)
    world.run(10, truthful=True)
    return {"state": world.engine.state(), "now": world.now}


def again(trusted: dict[str, Any]) -> World:
    world = World(0)
    world.engine, world.now = Engine.restore(trusted["state"]), trusted["now"]
    world.pages = world.engine.ids()
    return world


def test_a_gate_starts_shut_opens_on_proof_and_shuts_when_the_source_turns(trusted: dict[str, Any]) -> None:
    fresh = World(30)
    fresh.engine.signal([0], 1.0)
    assert not fresh.opened
    assert not fresh.by_signals(0)
    world = again(trusted)
    assert world.opened
    assert world.by_signals(1)
    world.run(14, truthful=False)
    assert not world.opened
    assert not world.by_signals(1)
    world.engine.scheduler._check()


def test_useless_signals_never_count() -> None:
    world = World(12, seed=1)
    world.run(16, truthful=False)
    assert not world.opened


def test_an_unproven_signal_changes_no_value() -> None:
    world = World(12)
    before = world.engine.scheduler.value(world.pages, 3.0)
    world.engine.signal(np.repeat(world.pages, 5), 1.0)
    np.testing.assert_array_equal(world.engine.scheduler.value(world.pages, 3.0), before)


def test_a_trusted_signal_brings_a_crawl_forward(trusted: dict[str, Any]) -> None:
    world = again(trusted)
    world.engine.signal([7], world.now + 0.5)
    assert world.engine.pick(world.now + 0.6, 1).tolist() == [7]
    assert "source 0 (right" in str(world.engine.explain(7, world.now + 0.6))


@pytest.mark.parametrize("spread", [False, True])
def test_a_flood_from_a_trusted_source_does_not_starve_a_page(trusted: dict[str, Any], spread: bool) -> None:
    world = again(trusted)
    engine = world.engine
    before = float(engine.scheduler.value([3], world.now + 4.0)[0])
    fastest = float(engine.pages().change_rate.max())
    for _ in range(4):
        for k in range(10 if spread else 1):
            engine.signal(np.full(1000, 3), world.now + 0.2 * (k + 1))
        world.now += 2.0
        engine.record([3], world.now, changed=False)
    assert float(engine.pages([3]).change_rate[0]) < 10.0 * fastest
    assert float(engine.scheduler.value([3], world.now + 4.0)[0]) > 0.5 * before
    engine.scheduler._check()


def test_a_refit_without_news_moves_little(trusted: dict[str, Any]) -> None:
    engine = again(trusted).engine
    before = engine.pages().change_rate
    for _ in range(3):
        engine.beliefs.refit_at = 0
        engine.refit_if_due()
    np.testing.assert_allclose(engine.pages().change_rate, before, rtol=0.25)


@pytest.mark.parametrize("sources", [1, 3])
def test_signals_during_a_fetch_stand_after_it(sources: int) -> None:
    world = World(30, sources)
    world.run(10, truthful=True, source=sources - 1)
    engine, began = world.engine, world.now + 1.0
    engine.signal([5], began - 0.2, source=sources - 1)
    for _ in range(2):
        engine.signal([5], began + 0.1, source=sources - 1)
    engine.record([5], began + 0.2, changed=True, as_of=began)
    b = engine.beliefs.belief.signals
    expected = np.zeros(sources)
    expected[-1] = 2.0
    assert b.heard[plain(row_of)(b, 5)].tolist() == expected.tolist()
    assert engine.pick(began + 0.3, 1).tolist() == [5]


def test_a_date_means_any_time_of_that_day(trusted: dict[str, Any]) -> None:
    world = again(trusted)
    b = world.engine.beliefs.belief.signals
    day = world.now - 0.5  # the copy was fetched in the middle of that day
    world.engine.signal([4], world.now + 1.0, changed_at=[day])
    assert b.heard[plain(row_of)(b, 4)].sum() == 0.0
    world.engine.signal([4], world.now + 1.0, changed_at=[day], resolution=1.0)
    assert b.heard[plain(row_of)(b, 4)].sum() == 1.0


def test_saved_state_and_rows_go_on_and_open_with_more_sources(trusted: dict[str, Any]) -> None:
    world = again(trusted)
    world.engine.signal([2], world.now + 0.5)
    at = world.now + 3.0
    expected = world.engine.scheduler.value(world.pages, at)
    same = Engine.restore(world.engine.state())
    np.testing.assert_array_equal(same.scheduler.value(world.pages, at), expected)
    for sources in (1, 4):
        saved = world.engine.rows()
        saved["settings"] = {**saved["settings"], "sources": sources}
        engine = Engine.restore(saved, world.now + 0.6)
        # rows have no tables: those are fitted again, from the first ones on
        np.testing.assert_allclose(engine.scheduler.value(world.pages, at), expected, rtol=0.35)
        assert engine.scheduler.value([2], at)[0] == engine.scheduler.value(world.pages, at).max()


def test_rows_of_pages_without_signals_keep_what_was_learned(trusted: dict[str, Any]) -> None:
    world = again(trusted)
    engine, now = world.engine, world.now
    new = engine.add(["https://a.example/new", "https://b.example/new"], now, fetched_at=now)
    engine.beliefs.belief.signals.host_gate[0, 0, 1] = 3.25
    whole, some = engine.rows(), engine.rows(new)
    for partial in (False, True):
        other = Engine.restore({**some, "partial": partial}, now)
        assert other.rows()["signal_tables"] == whole["signal_tables"]
        assert Engine.restore(other.state()).rows()["signal_tables"]["gate"] == whole["signal_tables"]["gate"]
        other.signal(other.id("https://a.example/new"), now + 1.0)
        assert other.beliefs.belief.signals.host_gate[0, 0, 1] == 3.25
        assert other.explain("https://a.example/new", now + 1.0).signals[0].counts


def test_rows_of_more_sources_open_with_fewer(trusted: dict[str, Any]) -> None:
    world = World(30, 3)
    world.run(10, truthful=True, source=0)
    saved = world.engine.rows()
    saved["settings"] = {**saved["settings"], "sources": 1}
    engine = Engine.restore(saved, world.now)
    assert engine.explain(0, world.now).signals[0].counts
    engine.signal([3], world.now + 1.0)
    assert engine.pick(world.now + 1.1, 1).tolist() == [3]


def test_every_page_with_signals_goes_on_from_rows(trusted: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """After a refit only a part of many pages is computed again; from rows, all are."""
    world = again(trusted)
    monkeypatch.setattr("recrawl.engine.signals.signals._REFRESHED", 10)
    engine = Engine.restore(world.engine.rows(), world.now)
    assert np.all(access.components_of(engine.scheduler, world.pages).any(axis=(1, 2)))
    before = engine.beliefs.belief.signals.components.copy()
    engine.beliefs.belief.signals.statistics[:30, 0, 0] += 1.0
    engine.beliefs.refit_at = 0
    engine.refit_if_due()
    moved = (engine.beliefs.belief.signals.components[:30] != before[:30]).any(axis=(1, 2))
    assert moved.sum() == 10
    other = Engine.restore(engine.state())
    for one in (engine, other):
        one.beliefs.refit_at = 0
        one.refit_if_due()
    first, second = (one.beliefs.belief.signals.components for one in (engine, other))
    np.testing.assert_array_equal(first[:30], second[:30])


def test_time_in_which_nobody_listened_says_nothing_of_signals(trusted: dict[str, Any]) -> None:
    world = again(trusted)
    soon, late = (Engine.restore(world.engine.rows(), world.now + days) for days in (0.0, 3000.0))
    for name in ("change_rate", "recall", "false_rate"):
        np.testing.assert_allclose(getattr(late.pages(), name), getattr(soon.pages(), name), rtol=1e-9)
