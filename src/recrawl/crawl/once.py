"""Once: the pages of every host in the order of their value, for one pass over all of them."""

from __future__ import annotations

from collections import deque

import numpy as np

from recrawl.engine import Engine
from recrawl.engine.addresses import host_of


def hosts_in_order(engine: Engine, now: float) -> list[deque[tuple[int, str]]]:
    """Per host its pages with their URLs, most valuable first; pages that the user paused are left out."""
    ids = np.array([page for page in engine.ids().tolist() if page not in engine._paused], np.int64)
    if not len(ids):
        return []
    order = ids[np.argsort(-engine.scheduler.value(ids, now), kind="stable")].tolist()
    queues: dict[str, deque[tuple[int, str]]] = {}
    for page, url in zip(order, engine.url(order), strict=True):
        queues.setdefault(host_of(url), deque()).append((page, url))
    return list(queues.values())
