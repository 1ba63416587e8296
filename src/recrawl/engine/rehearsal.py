"""Rehearsal: every part of an engine once, in memory, so that its kernels are loaded or compiled."""

import os
from typing import Any

import numpy as np

from recrawl._first_use import compile_first
from recrawl._processes import end_with_input
from recrawl.engine.engine import Engine


def warm_up(**settings: Any) -> None:
    """Use every part of an engine once, so that compilation on first use does not delay a crawl."""
    compile_first()
    _crawl_new_pages(settings)
    _crawl_known_pages(settings)


def _crawl_new_pages(settings: dict[str, Any]) -> None:
    engine = Engine(1.0, **settings)
    engine.add([f"https://a.example/{k}" for k in range(20)], 0.0, importance=np.arange(1.0, 21.0))
    for now in range(3):
        found = engine.pick(float(now), 1)
        engine.record(found, now + 0.5, changed=[now % 2 == 0])


def _crawl_known_pages(settings: dict[str, Any]) -> None:
    engine = Engine(1.0, host_spacing=1.0, **settings)
    ids = engine.add([f"https://a.example/{k}" for k in range(20)], 0.0, fetched_at=0.0)
    engine.host("a.example", spacing=0.5, concurrency=2)
    engine.set_floor(ids[:1], 1e-9)
    for k in range(12):
        found = engine.pick(3600.0 * k, 2)
        engine.record(found, 3600.0 * k, changed=np.arange(len(found)) % 2 == k % 2)
        engine.next_at(3600.0 * k)
    engine.signal(ids[:2], 43300.0)
    engine.record(ids[:2], 43300.0, changed=[True, False])
    engine.signal(ids[:2], 43300.0)
    engine.defer(ids[:1], 43400.0)
    engine.fresh(ids, 43300.0)
    engine.forecast(1.0)
    engine.explain(0, 43300.0)
    Engine.restore(engine.rows(), 43500.0).pick(43600.0, 3)


if __name__ == "__main__":  # in a process of its own (`recrawl._first_use`)
    end_with_input()
    if hasattr(os, "nice"):
        os.nice(5)
    warm_up()
