"""Lists of pages: in some order or by a search, a part at a time, with what is known of each."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.crawl.run.opening.assemble import LiveCrawl
from recrawl.crawl.run.opening.pages import is_paused
from recrawl.engine import Engine
from recrawl.errors import ParameterError
from recrawl.schedule.exact import access
from recrawl.serve.dashboard.contents import Titles
from recrawl.serve.dashboard.snapshots import Snapshots
from recrawl.store.protocol import Store

Ids = NDArray[np.int64]

ORDERS = {"changed": "last changed", "checked": "last checked", "stale": "stalest, by importance", "added": "newest"}
PART = 50  # pages shown at a time
_ALL = 5000  # up to so many pages every order is computed from all of them when it is asked for
_SEARCHED = 100_000  # up to so many pages any part of a URL is found; beyond it, its beginning
_EVENTS = 2000  # the last events, which show what changed last where there are many pages
_MOST_FOUND = 500


@dataclass(frozen=True)
class Listed:
    """A part of a list: ``total`` pages in all (None: not counted), ``first`` is the number of the first row."""

    rows: list[dict[str, Any]]
    total: int | None
    first: int
    more: bool


class PageLists:
    """Lists the pages of a running crawl."""

    def __init__(self, live: LiveCrawl, snapshots: Snapshots, titles: Titles) -> None:
        self._crawler, self._snapshots, self._titles = live.crawler, snapshots, titles

    @property
    def _engine(self) -> Engine:
        return self._crawler.engine

    @property
    def _store(self) -> Store:
        return self._crawler.components.store

    async def listed(self, order: str, search: str, first: int) -> Listed:
        """The rows from a number on."""
        if order not in ORDERS:
            raise ParameterError(f"order is {order[:40]!r}: must be one of {', '.join(ORDERS)}")
        urls = await self._searched(search) if search else await self._ordered(order)
        total = len(urls) if search or len(self._engine) <= _ALL or order != "changed" else None
        part = urls[first : first + PART]
        return Listed(await self.rows(part), total, first, first + PART < len(urls))

    async def rows(self, urls: Sequence[str]) -> list[dict[str, Any]]:
        """What is known of pages, in their order; those that were removed meanwhile are left out."""
        engine, now = self._engine, self._crawler.now()
        copies = await self._store.copies(urls)
        titles = await self._titles.of([copies[url] for url in urls if url in copies])
        known = engine.addresses.known(urls)
        ids = known[known >= 0]
        fresh, paused = engine.fresh(ids, now).tolist(), is_paused(engine, ids).tolist()
        weight, waiting = access.importance(engine.scheduler, ids).tolist(), engine.eligibility.waiting
        found = []
        for k, (page, url) in enumerate(zip(ids.tolist(), engine.url(ids), strict=True)):
            copy = copies.get(url)
            changed = copy is not None and copy.changed_at > 0 and engine.beliefs.belief.n_changes[page] > 0
            found.append(
                {
                    "url": url,
                    "title": titles.get(url, ""),
                    "importance": weight[k],
                    "fresh": fresh[k] if copy is not None else None,
                    "checked_at": None if copy is None else copy.fetched_at,
                    "changed_at": copy.changed_at if copy is not None and changed else None,
                    "state": _state(paused[k], waiting.failures(page), waiting.times_gone(page), copy is None),
                }
            )
        return found

    async def _ordered(self, order: str) -> list[str]:
        engine, now = self._engine, self._crawler.now()
        ids = engine.ids()
        if order == "changed":
            return await self._last_changed(ids)
        if order == "stale":
            if len(ids) > _ALL:
                snapshot = await self._snapshots.first()
                return [] if snapshot is None else [one["url"] for one in snapshot.stalest]
            by = access.importance(engine.scheduler, ids) * (1.0 - engine.fresh(ids, now)) * ~is_paused(engine, ids)
        else:
            by = access.last_fetched(engine.scheduler, ids) if order == "checked" else ids.astype(np.float64)
        return engine.url(_top(ids, by))

    async def _last_changed(self, ids: Ids) -> list[str]:
        """Pages by the time of their last change; those that were never seen to change come last."""
        if len(ids) > _ALL:
            last = (await self._store.event_counts())["last"]
            events = await self._store.events(max(last - _EVENTS, 0), _EVENTS)
            return list(dict.fromkeys(one.url for one in reversed(events) if one.kind == "changed"))
        urls, n_changes = self._engine.url(ids), self._engine.beliefs.belief.n_changes
        copies = await self._store.copies(urls)

        def key(k: int) -> tuple[bool, float]:
            copy = copies.get(urls[k])
            return copy is None or n_changes[ids[k]] == 0, -math.inf if copy is None else -copy.changed_at

        return [urls[k] for k in sorted(range(len(urls)), key=key)]

    async def _searched(self, search: str) -> list[str]:
        words = search.strip().lower()
        if len(self._engine) <= _SEARCHED:
            urls = self._engine.url(self._engine.ids())
            found = await asyncio.to_thread(lambda: [url for url in urls if words in url.lower()])
            return found[:_MOST_FOUND]
        begins = [words] if "://" in words else [f"{scheme}{words}" for scheme in ("https://", "https://www.")]
        parts = [await self._store.urls(begin, most=_MOST_FOUND) for begin in begins]
        return [url for part in parts for url in part][:_MOST_FOUND]


def _top(ids: Ids, by: NDArray[np.float64], most: int = 20 * PART) -> Ids:
    """The ids with the largest values, largest first."""
    if len(ids) > most:
        some = np.argpartition(-by, most)[:most]
        ids, by = ids[some], by[some]
    return ids[np.argsort(-by, kind="stable")]


def _state(paused: bool, failures: int, gone: int, no_copy: bool) -> str:
    if paused:
        return "paused"
    return "gone" if gone else "failing" if failures else "waiting" if no_copy else "watched"
