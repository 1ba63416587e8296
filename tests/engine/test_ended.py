"""Crawls recorded one by one leave the same state however their outcomes are said."""

import numpy as np
import pytest

from recrawl import Engine

from .snapshot import snapshot


def life(policy, seed, *, in_columns):
    """An engine after crawls one by one, and what it picked; in columns, what is not the case is said, too."""
    rng = np.random.default_rng(seed)
    engine = Engine(0.02, policy=policy, sources=1)
    urls = [f"https://h{k % 3}.example/{'ab'[k % 2]}/{k}" for k in range(30)]
    ids = engine.add(urls, 0.0, importance=rng.integers(1, 4, 30).astype(float))
    engine.request(ids[:5], 1.0)

    def record(found, now, **outcome):
        if in_columns:
            outcome = {"failed": [False], "gone": [False], "as_of": [max(now, engine.now)], **outcome}
        engine.record(found, now, **outcome)

    picked, now = [], 0.0
    for step in range(150):
        now += float(rng.exponential(2000.0))
        found = engine.pick(now, 1)
        picked.append(found.tolist())
        if len(found) == 0:
            continue
        if step % 7 == 3:
            record(found, now, failed=[True])
        elif step % 11 == 5:
            engine.signal(found, now)
            record(found, now - 10.0)
        else:
            given = bool(rng.random() < 0.4)
            record(found, now, changed=[given, np.bool_(given), np.array([given])][step % 3])
    return picked, engine


@pytest.mark.parametrize("policy", ["value", "uniform", "kab2"])
def test_what_is_not_said_is_not_the_case(policy):
    picked, engine = life(policy, 1, in_columns=False)
    expected, general = life(policy, 1, in_columns=True)
    assert picked == expected
    assert snapshot(engine.state()) == snapshot(general.state())


@pytest.mark.parametrize("policy", ["value", "kab2"])
def test_crawls_of_one_page_are_recorded_in_the_order_in_which_they_began(policy):
    def ended(*calls):
        engine = Engine(0.02, policy=policy)
        ids = engine.add([f"https://a.example/{k}" for k in range(4)], 0.0, fetched_at=0.0)
        assert engine.pick(100.0, 2).tolist() == ids[:2].tolist()
        for rows, outcome in calls:
            engine.record(ids[rows], 200.0, **outcome)
        return snapshot(engine.state()), engine.stats

    together = ended(([0, 1, 0], {"changed": [True, False, False], "as_of": [180.0, 170.0, 160.0]}))
    alone = [(0, False, 160.0), (1, False, 170.0), (0, True, 180.0)]
    apart = ended(*(([k], {"changed": [changed], "as_of": [at]}) for k, changed, at in alone))
    assert together == apart
    assert together[1]["recorded"] == 3
