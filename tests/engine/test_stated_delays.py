"""Stated delays of signals: learned by host and source from the times of changes that signals state."""

import numpy as np
import pytest

from recrawl import Engine
from recrawl.engine.signals.stated_delays import StatedDelays


def signalled():
    engine = Engine(10.0, day=1.0, sources=2)
    ids = engine.add([f"https://{host}.example/{k}" for host in "ab" for k in range(3)], 0.0, fetched_at=0.0)
    engine.signal(ids[:3], 5.0, source=0, changed_at=[4.0, 3.0, 2.0])
    engine.signal(ids[3:], 5.0, source=1, changed_at=4.5)
    engine.signal(ids[:3], 6.0, source=1)  # does not say when
    return engine, ids


def test_delays_are_means_by_host_and_source():
    delays = signalled()[0].beliefs.signals.stated_delays
    found = delays.of(["a.example", "b.example", "c.example"])
    assert found[:, 0].tolist() == [2.0, 2.0, 2.0]
    assert found[:, 1].tolist() == [0.5, 0.5, 0.5]
    assert set(delays.saved()) == {"a.example", "b.example"}


def test_signals_after_the_crawl_that_found_their_change_count():
    engine, ids = signalled()
    engine.record(ids[:1], 10.0, changed=True)
    engine.signal(ids[:1], 19.0, source=0, changed_at=9.0)
    assert engine.beliefs.signals.stated_delays.of(["a.example"])[0, 0] == pytest.approx((6.0 + 10.0 + 4.0) / 5.0)


def test_a_date_alone_counts_as_late_as_it_can_be_early():
    engine, ids = signalled()
    engine.signal(ids[3:4], 8.0, source=0, changed_at=2.0, resolution=4.0)
    assert engine.beliefs.signals.stated_delays.saved()["b.example"][0] == [1.0, 2.0]


def test_delays_survive():
    engine = signalled()[0]
    before = engine.beliefs.signals.stated_delays.saved()
    assert Engine.restore(engine.state()).beliefs.signals.stated_delays.saved() == before
    assert Engine.restore(engine.rows(), 7.0).beliefs.signals.stated_delays.saved() == before


def test_old_signals_fade_and_sources_may_become_more_or_fewer():
    delays = StatedDelays(1)
    delays.learn("a", 0, np.full(5000, 10.0))
    for _ in range(50):
        delays.learn("a", 0, np.full(100, 2.0))
    assert delays.of(["a"])[0, 0] == pytest.approx(2.0, abs=0.05)
    for n in (1, 3):
        other = StatedDelays(n)
        other.load(delays.saved())
        assert other.of(["a"]).shape == (1, n)
        assert other.of(["a"])[0, 0] == delays.of(["a"])[0, 0]
    assert StatedDelays(0).of(["a", "b"]).shape == (2, 0)
