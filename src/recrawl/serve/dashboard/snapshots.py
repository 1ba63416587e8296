"""Snapshots: figures about all pages, computed from the database in a thread, so that no crawl waits for them.

They are those of ``recrawl status`` and ``recrawl signals``, the forecast at several budgets, and the pages whose
copies are probably stale. A snapshot is made when somebody looks and the last one is old; its age is shown.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from recrawl.crawl.audit.freshness import audited_pages
from recrawl.crawl.audit.history import NOTE as HISTORY
from recrawl.crawl.audit.history import Point, points_of
from recrawl.crawl.audit.open_audit import ENDED, saved_audits
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.assemble import LiveCrawl
from recrawl.crawl.run.opening.partial import Sampled, open_sampled
from recrawl.crawl.views import signals_report, status_figures
from recrawl.engine import Engine
from recrawl.errors import RecrawlError
from recrawl.estimate.audit import Audit
from recrawl.logs import event
from recrawl.schedule.exact import access
from recrawl.store import BlockingStore, open_store

log = logging.getLogger(__name__)

FACTORS = (0.1, 0.15, 0.25, 0.4, 0.6, 0.8, 1.0, 1.3, 1.6, 2.0, 3.0, 5.0, 10.0)  # of the budget, for the curve
_DAY = 86400.0
_FRESH_FOR = 15.0  # seconds until the next snapshot, at least
_REST = 20.0  # times as long as the last one took
_STALEST = 100  # pages


@dataclass(frozen=True)
class Snapshot:
    """Figures of one moment."""

    at: float
    took: float  # seconds
    status: dict[str, Any]
    signals: dict[str, Any]
    history: list[Point]
    audits: list[Audit]
    curve: list[dict[str, float]]  # budget (requests per day), factor, freshness, low, high
    stalest: list[dict[str, Any]]


def take_snapshot(settings: Settings, now: float) -> Snapshot:
    """Read the database, also while a crawl writes it. Takes a while: not for an event loop."""
    began = time.monotonic()
    with BlockingStore(open_store(settings.database, exclusive=False)) as store:
        status = status_figures.figures(store, settings, now)
        sampled = store.run(open_sampled(store.store, settings, now))
        signals = signals_report.figures(store, settings, now, sampled)
        history, audits = points_of(store.notes(HISTORY).get(HISTORY)), saved_audits(store.notes(ENDED))
    known = status["freshness"] is not None
    curve = _curve(sampled, settings) if known else []
    stalest = _stalest(sampled.engine, now)
    return Snapshot(now, time.monotonic() - began, status, signals, history, audits, curve, stalest)


def _curve(sampled: Sampled, settings: Settings) -> list[dict[str, float]]:
    """Freshness in the long run at several budgets."""
    rate = settings.rates(max(sampled.totals.pages, 1))[1]
    found = []
    for factor in FACTORS:
        planned = sampled.engine.forecast(rate * factor)
        point = {"freshness": planned.freshness, "low": planned.low, "high": planned.high}
        found.append({"factor": factor, "budget": rate * factor * _DAY, **point})
    return found


def _stalest(engine: Engine, now: float) -> list[dict[str, Any]]:
    """The pages with the largest importance x probability of being stale."""
    ids = audited_pages(engine)
    if not len(ids):
        return []
    fresh, weight = engine.fresh(ids, now), access.importance(engine.scheduler, ids)
    if engine.stands_for is not None:
        weight = weight / engine.stands_for[ids]
    order = np.argsort(-weight * (1.0 - fresh), kind="stable")[:_STALEST]
    fetched = engine.fetched_at(ids[order])
    columns = zip(engine.url(ids[order]), fresh[order].tolist(), weight[order].tolist(), fetched.tolist(), strict=True)
    return [dict(zip(("url", "fresh", "importance", "fetched_at"), row, strict=True)) for row in columns]


class Snapshots:
    """The last snapshot; a new one is begun when it is asked for and old."""

    def __init__(self, live: LiveCrawl) -> None:
        self._live = live
        self._task: asyncio.Task[None] | None = None
        self._due_at = 0.0  # by the monotonic clock
        self.latest: Snapshot | None = None
        self.error: str | None = None  # why the last one could not be made

    def get(self) -> Snapshot | None:
        """The last snapshot, None before the first; a new one is begun if it is time."""
        if self._task is None and time.monotonic() >= self._due_at:
            self._task = asyncio.create_task(self._take())
        return self.latest

    async def first(self) -> Snapshot | None:
        """The last snapshot; the first one is waited for. None if it could not be made."""
        if self.get() is None and self._task is not None:
            await asyncio.wait([self._task])
        return self.latest

    def expire(self) -> None:
        """Something was changed: the next look begins a new snapshot."""
        self._due_at = 0.0

    @property
    def busy(self) -> bool:
        """Whether a snapshot is being made."""
        return self._task is not None

    async def close(self) -> None:
        """Wait for a snapshot that is being made."""
        if self._task is not None:
            with suppress(Exception):
                await asyncio.wait([self._task])

    async def _take(self) -> None:
        try:
            live = self._live
            self.latest = await asyncio.to_thread(take_snapshot, live.settings, live.crawler.now())
            self.error = None
            self._due_at = time.monotonic() + max(_FRESH_FOR, _REST * self.latest.took)
        except (RecrawlError, OSError) as problem:
            self.error = " ".join(str(problem).split())
            self._due_at = time.monotonic() + _FRESH_FOR
            event(log, logging.ERROR, "dashboard.failed", error=problem)
        finally:
            self._task = None
