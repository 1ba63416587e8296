"""What the engine says of pages by their signals: freshness, rates, explanations, forecasts, once a source counts."""

import numpy as np
import pytest

from recrawl.engine import Engine

from .snapshot import READS, assert_reading_changes_nothing
from .test_signal_gates import World


@pytest.fixture(scope="module")
def saved():
    """An engine that trusts source 1 of two; source 0 signals at random."""
    world = World(30, sources=2, budget=8.0)
    for _ in range(14):
        world.engine.signal(world.rng.integers(0, 30, 6), world.now + 0.5, source=0)
        world.run(1, truthful=True, source=1)
    return world.engine.state(), world.now


@pytest.fixture
def trusting(saved):
    return Engine.restore(saved[0]), saved[1]


def test_after_a_signal_that_counts_a_copy_is_believed_to_be_stale(trusting):
    engine, now = trusting
    before = engine.fresh([7], now + 1.0)[0]
    engine.signal([7], now + 0.9, source=0)
    assert engine.fresh([7], now + 1.0)[0] > 0.9 * before
    engine.signal([7], now + 0.9, source=1)
    assert engine.fresh([7], now + 1.0)[0] < 0.4 * before
    doubt = engine.explain(7, now + 1.0).doubt
    assert doubt["signals"] > 2.0 * (doubt["own rate"] + doubt["its folder"])


def test_an_explanation_says_how_often_the_source_was_right(trusting):
    engine, now = trusting
    engine.signal([7, 7], now + 0.5, source=1)
    engine.signal([7], now + 0.5, source=0)
    found = engine.explain(7, now + 1.0)
    by_chance, right = found.signals
    assert (by_chance.source, by_chance.counts, by_chance.heard) == (0, False, 1)
    assert (right.source, right.counts, right.heard) == (1, True, 2)
    assert right.host_precision > 0.85
    assert right.host_pages == 30
    percent = f"{100 * right.host_precision:.0f}"
    assert f"2 signals of source 1 (right {percent}% of the time on this host)" in str(found)
    assert "of source 0 (right" in str(found)
    assert "but not proven: not counted" in str(found)
    assert found.as_dict()["signals"][1]["host_precision"] == right.host_precision
    assert "% signals" in str(found)
    low, high = found.change_rate_interval
    assert 0.0 < low < found.change_rate < high < 20.0 * found.change_rate


def test_pages_have_the_qualities_of_sources_that_count(trusting):
    engine, _ = trusting
    pages = engine.pages()
    assert pages.recall.shape == (30, 2)
    assert not pages.recall[:, 0].any()
    assert not pages.false_rate[:, 0].any()
    assert pages.recall[:, 1].mean() > 0.6
    assert pages.change_rate.mean() == pytest.approx(-np.log1p(-0.45) / 2.0, rel=0.35)
    assert np.isinf(pages.evidence).all()


def test_a_forecast_with_signals_is_above_one_without(trusting):
    engine, now = trusting
    without = Engine.restore({**engine.rows(), "settings": {**engine.settings.as_dict(), "policy": "no-signals"}}, now)
    long_run, deaf = (one.forecast(8.0) for one in (engine, without))
    assert 0.0 < deaf.freshness < long_run.freshness < 1.0
    window = engine.forecast(8.0, start=now, duration=20.0)
    assert 0.0 < window.low < window.freshness < window.high < 1.0
    assert abs(window.freshness - long_run.freshness) < 0.15


def test_a_given_rate_counts_at_once_for_a_page_with_signals(trusting):
    engine, now = trusting
    before, fresh = engine.pages([7]).change_rate[0], engine.fresh([7], now + 1.0)[0]
    engine.update([7], change_rate=40.0 * before, evidence=50.0)
    assert engine.pages([7]).change_rate[0] > 5.0 * before
    assert engine.fresh([7], now + 1.0)[0] < 0.5 * fresh
    engine.scheduler._check()


@pytest.mark.parametrize("name", READS)
def test_reading_changes_nothing_with_open_sources(trusting, name):
    engine, now = trusting
    engine.signal([3, 3, 5], now + 0.5, source=1)
    assert_reading_changes_nothing(engine, engine.ids(), now + 1.0, [name])
