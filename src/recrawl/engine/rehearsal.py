"""Rehearsal: every part of an engine once, in memory, so that its kernels are loaded or compiled."""

import os
from typing import Any

import numpy as np

from recrawl._system.processes import end_with_input
from recrawl.engine.engine import Engine

_HOUR = 3600.0
_FOLDERS = 260  # more clocks than upkeep publishes at a time
_PAGES = 5  # of a folder; together more than a refit takes at once


def rehearse(**settings: Any) -> None:
    """Use an engine as a crawl does, new pages first; ``settings`` are those of `Engine`."""
    _crawl_new(**settings)
    _crawl_few(**settings)
    _refit_many(**settings)


def _crawl_new(**settings: Any) -> None:
    """Pages without copies, one at a time."""
    engine = Engine(1.0, **settings)
    engine.add([f"https://a.example/{k}" for k in range(20)], 0.0, importance=np.arange(1.0, 21.0))
    for now in range(3):
        found = engine.pick(float(now), 1)
        engine.record(found, now + 0.5, changed=[now % 2 == 0])


def _crawl_few(**settings: Any) -> None:
    """Pages with outcomes, signals, waits and questions."""
    engine = Engine(1.0, host_spacing=1.0, **settings)
    ids = engine.add([f"https://a.example/{k}" for k in range(20)], 0.0, fetched_at=0.0)
    engine.host("a.example", spacing=0.5, concurrency=2)
    engine.set_floor(ids[:1], 1e-9)
    for k in range(12):
        found = engine.pick(_HOUR * k, 2)
        engine.record(found, _HOUR * k, changed=np.arange(len(found)) % 2 == k % 2)
        engine.next_at(_HOUR * k)
    engine.signal(ids[:2], 43300.0)
    engine.record(ids[:2], 43300.0, changed=[True, False])
    engine.signal(ids[:2], 43300.0)
    engine.signal(ids[:2], 43300.0, changed_at=43200.0)
    engine.defer(ids[:1], 43400.0)
    engine.fresh(ids, 43300.0)
    engine.forecast(1.0)
    engine.explain(0, 43360.0)
    engine.pick(47000.0, 1, among=engine.addresses.on_host("a.example"))
    engine.remove(ids[-1:])
    Engine.restore(engine.rows(), 47100.0).pick(47200.0, 3)


def _refit_many(**settings: Any) -> None:
    """Pages without copies in many folders: cohorts, refits at once and in pieces, clocks at the end of a bin."""
    engine = Engine(1.0, **settings)
    urls = [f"https://{k % 4}.example/{k % _FOLDERS}/{k}" for k in range(_FOLDERS * _PAGES)]
    ids = engine.add(urls, 0.0)
    engine.update(ids[:1], importance=2.0)
    for k in range(3):
        now, found = _HOUR * k, engine.pick(_HOUR * k, len(ids))
        engine.record(found, now, changed=found % (k + 2) == 0)
        engine.refits_in_pieces = k > 0
        while engine.maintain():
            pass
    engine.explain(0, engine.now + _HOUR)


if __name__ == "__main__":  # in a process of its own (`recrawl._compile.first_use`)
    end_with_input()
    if hasattr(os, "nice"):
        os.nice(5)
    rehearse()
