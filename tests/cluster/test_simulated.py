"""A small crawl in shards, simulated: about as fresh as one scheduler or engine, and never above the budget."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from recrawl.cluster.simulated import ShardOptions, SimulatedShard, parts_of, rows_of, simulate_shards
from recrawl.errors import ParameterError
from recrawl.schedule import shard_of
from recrawl.simulate import Signals, Trace, contender, simulate

EXPERIMENT = Path(__file__).parents[2] / "experiments/shards"
PER_PAGE, DAYS, SKIP = 0.25, 36.0, 12.0


@pytest.fixture(scope="module")
def world():
    if not EXPERIMENT.exists():
        pytest.skip("experiments are not there")
    sys.path.insert(0, str(EXPERIMENT))
    try:
        from shard_world import draw, skewed_pages
    finally:
        sys.path.remove(str(EXPERIMENT))
    pages = skewed_pages(800, 60, np.random.default_rng(0))
    return pages, draw(pages, DAYS, np.random.default_rng(1))


@pytest.mark.slow
@pytest.mark.parametrize(("known", "lost"), [(True, 0.005), (False, 0.01)])
def test_shards_are_as_fresh_as_one(world, known, lost):
    pages, trace = world
    budget = PER_PAGE * len(pages)
    one = simulate(contender("no-signals" if known else "learned"), trace, budget, count_from=SKIP).freshness
    parts = parts_of(trace, shard_of(pages.host, 8), 8)
    runs = {
        split: simulate_shards(parts, budget, ShardOptions(split, 3.0 if known else 9.0, known, count_from=SKIP))
        for split in ("plan", "equal")
    }
    assert runs["plan"].freshness > one - lost
    assert runs["plan"].freshness > runs["equal"].freshness + 0.01
    assert runs["plan"].requests == pytest.approx(budget * (DAYS - SKIP), rel=0.01)
    assert runs["plan"].most <= 1.0
    assert not known or runs["plan"].spread[2:].max() < 1.05, "thresholds agree after two rounds"


def test_a_shard_goes_on_from_its_state(world):
    pages, trace = world
    part = parts_of(trace, shard_of(pages.host, 8), 8)[1]
    options = ShardOptions(count_from=1.0)
    straight, halted = (SimulatedShard(part, 20.0, options) for _ in range(2))
    straight.run(0.0, 6.0, 20.0)
    halted.run(0.0, 3.0, 20.0)
    again = SimulatedShard(part, 20.0, options)
    again.restore(halted.state())
    again.run(3.0, 6.0, 20.0)
    assert again.stale == straight.stale
    assert np.array_equal(again.judge.tally.crawls, straight.judge.tally.crawls)


def test_parts_keep_the_changes_of_their_pages(world):
    _, trace = world
    rows = np.array([5, 2, 700])
    part = rows_of(trace, rows)
    for k, row in enumerate(rows.tolist()):
        mine = part.changed_at[part.offset[k] : part.offset[k + 1]]
        assert np.array_equal(mine, trace.changed_at[trace.offset[row] : trace.offset[row + 1]])
    with pytest.raises(ParameterError, match="signals"):
        rows_of(Trace(0.0, 1.0, [0, 0], [], signals=Signals.of([0.5], [0])), np.array([0]))


def test_the_committed_results_hold_what_is_claimed():
    path = EXPERIMENT / "controller.json"
    if not path.exists():
        pytest.skip("experiments are not there")
    found = json.loads(path.read_text())
    for known, lost in ((True, 0.002), (False, 0.01)):
        for n in (4, 16):
            rows = [row for row in found["compare"] if row["known"] == known and row["shards"] == n]
            assert np.mean([row["one"] - row["plan"]["freshness"] for row in rows]) <= lost
            assert all(row["plan"]["most_reserved"] <= 1.0 for row in rows)
            assert all(row["plan"]["freshness"] >= row["equal"]["freshness"] for row in rows)
    for row in found["frequent"]:
        assert row["every 0.2 days"] == pytest.approx(row["every 2 days"], abs=0.002)
    assert found["tenfold"]["plan"] >= found["tenfold"]["one"] - 0.01
