"""Pending signals when an engine is opened: how many sources it needs, and the signals that it gets again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from recrawl.crawl.signals.sources import NOTE, Sources, engine_sources
from recrawl.engine import Engine
from recrawl.engine.rows import SIGNALLED
from recrawl.engine.signals.signals import without_latest
from recrawl.store.protocol import Store
from recrawl.store.signals import PendingSignal


async def sources_setting(store: Store, kinds: Collection[str], saved: Mapping[str, Any] | None) -> dict[str, int]:
    """The engine's setting ``sources``, if it is other than the default or the stored one.

    ``kinds`` are the kinds of sources that are switched on.
    """
    stored = 0 if saved is None else int(saved["settings"].get("sources", 0))
    n = engine_sources(Sources.restore(await store.notes(NOTE)).names, kinds, stored)
    return {} if n is None else {"sources": n}


def hear_pending(engine: Engine, pending: Sequence[PendingSignal], now: float) -> None:
    """Give an engine the signals that came since the copies of its pages."""
    known = engine.addresses.known([one.url for one in pending])
    by_source = defaultdict[int, list[tuple[int, PendingSignal]]](list)
    for page, one in zip(known.tolist(), pending, strict=True):
        if page >= 0 and one.source < engine.settings.sources:
            by_source[one.source].append((page, one))
    for source, some in sorted(by_source.items()):
        _hear(engine, source, some, now)


def _hear(engine: Engine, source: int, some: Iterable[tuple[int, PendingSignal]], now: float) -> None:
    pages = [page for page, _ in some]
    about = np.array([one.about() for _, one in some])
    engine.signal(pages, now, source=source, changed_at=about)


def without_heard(saved: dict[str, Any]) -> None:
    """Rows without the signals since the copies: those that are pending are in a table of their own, and come again."""
    if SIGNALLED in saved:
        saved[SIGNALLED] = [None if row is None else without_latest(row) for row in saved[SIGNALLED]]
