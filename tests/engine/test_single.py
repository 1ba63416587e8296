"""One crawl recorded by itself leaves the state that the general way leaves."""

import numpy as np
import pytest

from recrawl import Engine
from recrawl.engine import engine as module

from .snapshot import snapshot


def life(policy, seed):
    """An engine after crawls one by one, and what it picked."""
    rng = np.random.default_rng(seed)
    engine = Engine(0.02, policy=policy, sources=1)
    urls = [f"https://h{k % 3}.example/{'ab'[k % 2]}/{k}" for k in range(30)]
    ids = engine.add(urls, 0.0, importance=rng.integers(1, 4, 30).astype(float))
    engine.request(ids[:5], 1.0)
    picked, now = [], 0.0
    for step in range(150):
        now += float(rng.exponential(2000.0))
        found = engine.pick(now, 1)
        picked.append(found.tolist())
        if len(found) == 0:
            continue
        if step % 7 == 3:
            engine.record(found, now, failed=True)
        elif step % 11 == 5:
            engine.signal(found, now)
            engine.record(found, now - 10.0)
        else:
            given = bool(rng.random() < 0.4)
            engine.record(found, now, changed=[given, np.bool_(given), np.array([given])][step % 3])
    return picked, engine


@pytest.mark.parametrize("policy", ["value", "uniform", "kab2"])
def test_the_state_is_that_of_the_general_way(policy, monkeypatch):
    picked, engine = life(policy, 1)
    monkeypatch.setattr(module, "is_one_flag", lambda changed: False)
    expected, general = life(policy, 1)
    assert picked == expected
    assert snapshot(engine.state()) == snapshot(general.state())
