"""Kernels let go of the arrays that they were given: an engine that is no longer used leaves no memory behind."""

import sys

import numpy as np

from recrawl import Engine


def test_calls_keep_no_array_of_the_beliefs():
    engine = Engine(1.0, day=1.0, sources=0)
    engine.add([f"https://a.example/{k}" for k in range(30)], 0.0, fetched_at=0.0)
    belief = engine.beliefs.belief
    arrays = [one for one in (*belief, *belief.signals, *engine.calibration, *engine.clocks.arrays) if _is_array(one)]
    counted = []
    for k in range(1, 5):
        ids = engine.pick(10.0 * k, 3)
        engine.record(ids[:1], 10.0 * k)  # without a comparison
        engine.record(ids[1:], 10.0 * k, changed=np.array([True, False]))
        engine.forecast(10.0)
        engine.beliefs.fit(engine.ids())
        counted.append([sys.getrefcount(one) for one in arrays])
    assert len(arrays) > 40
    assert counted[1:] == counted[:-1]


def _is_array(one):
    return isinstance(one, np.ndarray)
