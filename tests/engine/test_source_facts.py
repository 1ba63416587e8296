"""What is known of each source on each host: intervals hold the truth, counts are right, lost trust is named."""

import numpy as np
import pytest

from recrawl.engine import Engine
from recrawl.engine.signals.arrays import OPEN, OPENED
from recrawl.engine.views.sources import lost_trust, source_facts

from .test_signal_gates import World

QUALITIES = ((0.9, 0.8), (0.5, 0.5), (0.2, 0.9), (0.7, 0.3))  # precision and recall, by host


def crawled(seed, days=40, pages=20, step=0.125):
    """Four hosts whose sources have these qualities, crawled by the engine."""
    rng = np.random.default_rng(seed)
    n = pages * len(QUALITIES)
    engine = Engine(n / 3, sources=1, day=1.0, min_change_probability=0.0)
    ids = engine.add([f"https://{k // pages}.example/{k}" for k in range(n)], 0.0, fetched_at=0.0)
    precision, recall = np.repeat(QUALITIES, pages, axis=0).T
    rate = rng.gamma(2.0, 0.1, n)
    false, stale = rate * recall * (1 - precision) / precision, np.zeros(n, bool)
    for now in np.arange(step, days, step):
        changed = rng.random(n) < rate * step
        signalled = changed & (rng.random(n) < recall)
        stale |= changed
        engine.signal(ids[signalled | (rng.random(n) < false * step)], now)
        picked = engine.pick(now, int(n / 3 * step))
        engine.record(picked, now, changed=stale[picked])
        stale[picked] = False
    return engine


@pytest.mark.slow
def test_intervals_hold_the_truth():
    held, wide = [], []
    for seed in range(3):
        for one in source_facts(crawled(seed)):
            truth = QUALITIES[int(one.host[0])]
            for share, true in zip((one.precision, one.recall), truth, strict=True):
                held.append(share.low <= true <= share.high)
                wide.append(share.high - share.low)
    assert len(held) == 24
    assert sum(held) >= 21
    assert np.mean(wide) < 0.4


def test_counts_are_those_of_the_pages():
    world = World(6, sources=2)
    assert source_facts(world.engine) == lost_trust(world.engine) == ()
    world.engine.signal(world.pages[:4], 1.0, source=1)
    world.engine.signal(world.pages[:1], 1.5, source=1)
    (first,) = source_facts(world.engine)
    assert (first.source, first.host, first.pages, first.waiting, first.signals) == (1, "a.example", 4, 4, 5.0)
    assert (first.crawls, first.counts, first.trust, first.precision) == (0.0, False, "not proven", None)
    world.engine.record(world.pages[:3], 2.0, changed=[True, True, False])
    (then,) = source_facts(world.engine)
    assert (then.pages, then.waiting) == (4, 1)
    assert (then.crawls, then.changes) == pytest.approx((3.0, 2.0), rel=0.02)
    assert 0.0 <= then.precision.low < then.precision.mean < then.precision.high <= 1.0
    world.engine.remove(world.pages[:4])
    assert source_facts(world.engine) == ()


def test_a_source_that_turns_is_named_until_it_is_proven_again():
    world = World(30)
    world.run(10, truthful=True)
    assert lost_trust(world.engine) == ()
    (trusted,) = source_facts(world.engine)
    assert trusted.trust.startswith("counts")
    world.run(14, truthful=False)
    lost = lost_trust(world.engine)
    assert {one.host for one in lost} <= {None, "a.example"}
    assert "a.example" in {one.host for one in lost}
    assert all(20.0 < one.at <= world.now for one in lost)
    restored = Engine.restore(world.engine.rows(), world.now)
    assert lost_trust(restored) == lost
    signals = world.engine.beliefs.belief.signals
    signals.gate[0, OPEN] = signals.host_gate[0, 0, OPEN] = OPENED
    assert lost_trust(world.engine) == ()
