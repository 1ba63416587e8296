"""A story of an engine, run by a process without compiled kernels; test_first_use.py compares it with compiled ones.

python tests/first_use_story.py FILE
"""

import pickle
import sys

import numpy as np

HOUR, DAY = 3600.0, 86400.0
SEEDS = range(2)


def story(seed):
    """Picks, explanations and states of an engine that meets all that an engine can meet."""
    from recrawl import Engine

    rng = np.random.default_rng(seed)
    engine = Engine(1 / HOUR, host_spacing=30.0 * (seed % 2), sources=1 + seed)
    urls = [f"https://h{k % 4}.example/{'abc'[k % 3]}/{k}" for k in range(40)]
    fetched_at = np.where(rng.random(25) < 0.5, 0.0, -np.inf)
    engine.add(urls[:25], 0.0, importance=rng.uniform(0.5, 3.0, 25), fetched_at=fetched_at)
    found = []
    for k in range(30):
        now = k * HOUR
        picked = engine.pick(now, 1 + k % 3)
        found.append(picked.tolist())
        engine.record(picked, now + 5.0, changed=rng.random(len(picked)) < 0.3)
        if k % 7 == 3:
            engine.signal(rng.integers(6, 25, 3), now + 60.0, source=int(rng.integers(0, 1 + seed)))
        if k == 10:
            engine.add(urls[25:], now, importance=2.0)
            engine.update([3], importance=[9.0])
            engine.set_floor([7], 1 / DAY)
        if k == 16:
            engine.remove([1, 5])
            engine.defer([8], now + DAY)
            engine.pause([9])
        if k == 22:
            engine.resume([9])
            engine.budget = 3 / HOUR
    last = 30 * HOUR
    found.append([str(engine.explain(int(page), last)) for page in engine.ids()[:10]])
    found.append(engine.fresh(engine.ids(), last).round(9).tolist())
    restored = Engine.restore(engine.rows(), last)
    found.append(restored.pick(last + HOUR, 5).tolist())
    return found, engine.state()


if __name__ == "__main__":
    from recrawl._compile.first_use import first_use
    from recrawl._compile.jit import KERNELS

    first_use._calls = -(10**9)  # no other process compiles meanwhile
    plain = [story(seed) for seed in SEEDS]
    compiled = [kernel.py_func.__name__ for kernel in KERNELS if kernel.overloads]
    with open(sys.argv[1], "wb") as file:
        pickle.dump((plain, compiled), file)
