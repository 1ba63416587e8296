"""Questions about all pages of one database, also while a crawl writes it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from recrawl.crawl.audit.history import NOTE as HISTORY
from recrawl.crawl.audit.history import points_of
from recrawl.crawl.audit.open_audit import ENDED, saved_audits
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.partial import Sampled, open_sampled
from recrawl.crawl.views import signals_report, status_figures
from recrawl.engine.names.addresses import host_of
from recrawl.serve.crawls.engine_pages import stalest_pages
from recrawl.serve.crawls.view import FACTORS, Snapshot
from recrawl.store import BlockingStore, OwnedStore, open_store

_DAY = 86400.0


class DatabaseQuestions:
    """See `Questions`."""

    def __init__(self, settings: Callable[[], Settings]) -> None:
        self._settings = settings

    def _store(self) -> BlockingStore[OwnedStore]:
        return BlockingStore(open_store(self._settings().database, exclusive=False))

    def status(self, now: float, budget: str | None = None) -> dict[str, Any]:
        """See `Questions`."""
        settings = self._settings()
        asked = settings if budget is None else replace(settings, budget=budget)
        with self._store() as store:
            asked.rates(max(store.counts()["pages"], 1))
            return status_figures.figures(store, asked, now)

    def sources(self, now: float) -> dict[str, Any]:
        """See `Questions`."""
        with self._store() as store:
            return signals_report.figures(store, self._settings(), now)

    def hosts(self) -> Counter[str]:
        """See `Questions`."""
        with self._store() as store:
            return Counter(map(host_of, store.urls()))

    def snapshot(self, now: float) -> Snapshot:
        """See `Questions`."""
        began, settings = time.monotonic(), self._settings()
        with self._store() as store:
            status = status_figures.figures(store, settings, now)
            sampled = store.run(open_sampled(store.store, settings, now))
            signals = signals_report.figures(store, settings, now, sampled)
            history, audits = points_of(store.notes(HISTORY).get(HISTORY)), saved_audits(store.notes(ENDED))
        curve = _curve(sampled, settings) if status["freshness"] is not None else []
        stalest = stalest_pages(sampled.engine, now)
        return Snapshot(now, time.monotonic() - began, status, signals, history, audits, curve, stalest)

    def interrupt(self) -> None:
        """See `Questions`."""

    def close(self) -> None:
        """See `Questions`."""


def _curve(sampled: Sampled, settings: Settings) -> list[dict[str, float]]:
    """Freshness in the long run at several budgets."""
    rate = settings.rates(max(sampled.totals.pages, 1))[1]
    found = []
    for factor in FACTORS:
        planned = sampled.engine.forecast(rate * factor)
        point = {"freshness": planned.freshness, "low": planned.low, "high": planned.high}
        found.append({"factor": factor, "budget": rate * factor * _DAY, **point})
    return found
