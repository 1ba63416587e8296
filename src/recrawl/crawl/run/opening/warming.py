"""Warming up: every part of an engine once, so that no call of a crawl waits until its kernels are compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from recrawl._threads import in_thread
from recrawl.crawl.listings.worth import Worth, poll_value
from recrawl.engine import Engine

_HOUR = 3600.0
_FOLDERS = 260  # more clocks than upkeep publishes at a time
_PAGES = 5  # of a folder; together more than a refit takes at once


def warm_up(**settings: Any) -> None:
    """Use every part of an engine once, so that compilation on first use does not delay a crawl."""
    _crawl_few(**settings)
    _refit_many(**settings)
    poll_value([Worth(), Worth()], np.array([_HOUR, _HOUR]))


async def warm_up_beside(**settings: Any) -> None:
    """The same in a thread: the event loop goes on meanwhile, and a signal ends the program at once."""
    await in_thread(lambda: warm_up(**settings), "recrawl-warming")


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
