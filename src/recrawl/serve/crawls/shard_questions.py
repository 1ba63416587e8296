"""Questions about all pages of a cluster: each shard is asked, one after the other, and the answers are merged."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from recrawl.cluster.overview import overview, shares_at
from recrawl.cluster.ownership.stores import ShardStores
from recrawl.cluster.shard_settings import shard_settings
from recrawl.cluster.tables import Cluster
from recrawl.crawl.audit.history import NOTE as HISTORY
from recrawl.crawl.audit.history import Point, points_of
from recrawl.crawl.audit.open_audit import ENDED, audits_of_shards
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.partial import open_sampled
from recrawl.crawl.views import signals_report, status_figures
from recrawl.crawl.views.status_shards import (
    figures_of_shards,
    history_of_shards,
    sources_of_shards,
    weighted,
)
from recrawl.engine.names.addresses import host_of
from recrawl.serve.crawls.engine_pages import stalest_pages
from recrawl.serve.crawls.view import FACTORS, STALEST, Snapshot
from recrawl.store import BlockingStore, OwnedStore

_DAY = 86400.0
Shares = dict[int, float]


@dataclass(frozen=True)
class _Part:
    """What a snapshot needs of one shard."""

    status: dict[str, Any]
    signals: dict[str, Any]
    history: list[Point]
    audits: list[dict[str, Any]]
    curve: list[dict[str, float]]
    stalest: list[dict[str, Any]]


class ShardQuestions:
    """See `Questions`."""

    def __init__(self, cluster: Cluster, settings: Callable[[], Settings]) -> None:
        self._cluster, self._settings = cluster, settings
        self._stores: ShardStores | None = None
        self._opening = threading.Lock()  # questions come from several threads

    def _shards(self) -> Sequence[tuple[int, BlockingStore[OwnedStore]]]:
        with self._opening:
            if self._stores is None:
                self._stores = ShardStores(self._cluster)
            stores = self._stores
        return [(shard, stores.shared(shard)) for shard in range(self._cluster.shards)]

    def _shares(self) -> Shares:
        return {one["shard"]: one["rate"] or 0.0 for one in asyncio.run(overview(self._cluster))["shards"]}

    def status(self, now: float, budget: str | None = None) -> dict[str, Any]:
        """See `Questions`."""
        settings = self._settings()
        if budget is None:
            shares = self._shares()
        else:
            settings = replace(settings, budget=budget)
            settings.rates(1)
            shares = asyncio.run(shares_at(self._cluster, budget, settings.opening()))
        parts, audits = list[dict[str, Any]](), list[list[dict[str, Any]]]()
        for shard, store in self._shards():
            with store:
                parts.append(status_figures.figures(store, shard_settings(settings, shares.get(shard)), now))
                audits.append(store.notes(ENDED).get(ENDED, []))
        return figures_of_shards(parts, settings, audits)

    def sources(self, now: float) -> dict[str, Any]:
        """See `Questions`."""
        parts, settings = list[dict[str, Any]](), self._settings()
        for _, store in self._shards():
            with store:
                parts.append(signals_report.figures(store, settings, now))
        return sources_of_shards(parts, settings)

    def hosts(self) -> Counter[str]:
        """See `Questions`."""
        found: Counter[str] = Counter()
        for _, store in self._shards():
            with store:
                found.update(map(host_of, store.urls()))
        return found

    def snapshot(self, now: float) -> Snapshot:
        """See `Questions`."""
        began, settings = time.monotonic(), self._settings()
        shares, (while_open, on_average) = self._shares(), settings.rates(max(sum(self._pages()), 1))
        at = [asyncio.run(shares_at(self._cluster, f"{while_open * factor:.12g}/s")) for factor in FACTORS]
        parts = []
        for shard, store in self._shards():
            with store:
                planned = [one.get(shard, 0.0) for one in at]
                parts.append(_part(store, shard_settings(settings, shares.get(shard)), now, planned))
        ended = [one.audits for one in parts]
        status = figures_of_shards([one.status for one in parts], settings, ended)
        weights = [one.status["importance"] for one in parts]
        stalest = [row for one in parts for row in one.stalest]
        stalest.sort(key=lambda row: -row["importance"] * (1.0 - row["fresh"]))
        return Snapshot(
            now,
            time.monotonic() - began,
            status,
            sources_of_shards([one.signals for one in parts], settings),
            history_of_shards([(w, one.history) for w, one in zip(weights, parts, strict=True)]),
            audits_of_shards(ended),
            _curve([(w, one.curve) for w, one in zip(weights, parts, strict=True)], on_average),
            stalest[:STALEST],
        )

    def _pages(self) -> list[int]:
        return [one["pages"] or 0 for one in asyncio.run(overview(self._cluster))["shards"]]

    def interrupt(self) -> None:
        """See `Questions`."""

    def close(self) -> None:
        """See `Questions`."""
        if self._stores is not None:
            self._stores.close()
            self._stores = None


def _part(store: BlockingStore[OwnedStore], settings: Settings, now: float, planned: Sequence[float]) -> _Part:
    """One shard of a snapshot; ``planned`` are its shares at the budgets of the curve."""
    sampled = store.run(open_sampled(store.store, settings, now))
    status = status_figures.figures(store, settings, now)
    curve = []
    if status["freshness"] is not None:
        hours = settings.opening()
        for share in planned:
            found = sampled.engine.forecast(max(share, 1e-9) * (1.0 if hours is None else hours.share))
            curve.append({"freshness": found.freshness, "low": found.low, "high": found.high})
    return _Part(
        status,
        signals_report.figures(store, settings, now, sampled),
        points_of(store.notes(HISTORY).get(HISTORY)),
        store.notes(ENDED).get(ENDED, []),
        curve,
        stalest_pages(sampled.engine, now),
    )


def _curve(parts: Sequence[tuple[float, list[dict[str, float]]]], rate: float) -> list[dict[str, float]]:
    """Freshness in the long run at several budgets, of the shards that know it."""
    known = [(weight, curve) for weight, curve in parts if curve]
    if not known:
        return []
    found = []
    for k, factor in enumerate(FACTORS):
        point = weighted([(weight, curve[k]) for weight, curve in known])
        found.append({"factor": factor, "budget": rate * factor * _DAY, **point})
    return found
