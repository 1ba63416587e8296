"""Happenings: what a trace does to a running crawl: pages come with their copies and go, signals arrive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from recrawl.crawl.http.memory import MemoryWeb
from recrawl.crawl.run.compare import Hop
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.run.opening.pages import add_pages, save_pages
from recrawl.crawl.signals.sorting import Signal
from recrawl.crawl.signals.sources import Source
from recrawl.demo.replay.listings import sitemap_of
from recrawl.demo.replay.web import TraceWeb
from recrawl.engine import Engine
from recrawl.engine.names.addresses import host_of
from recrawl.simulate.run.run import membership
from recrawl.simulate.trace import Trace
from recrawl.store.protocol import Outcome, Store

Ids = NDArray[np.int64]

DAY = 86400.0


@dataclass(frozen=True)
class ReplayOptions:
    """How a trace is replayed.

    ``signals`` is the way of the trace's signals: through the ``inbox`` of the crawl, as from the sitemaps of their
    hosts; to the ``engine`` itself, as in the simulator; by ``polls`` of the sitemaps, which are requests of the
    budget; ``none``: they do not come. ``find_deleted``: pages that are deleted are not removed; crawls find that they
    are gone. ``settings`` are settings of the crawl that replace those of a replay: no delay between requests of a
    host, no robots.txt, and every crawl of the budget is made, however unlikely a change is, as in the simulator.
    ``engine`` makes the engine from the budget and the start, instead of the one that learns. Staleness is counted from
    ``count_from`` on (default: the start), also in ``bins`` equal parts of that time. ``progress`` gets the share of
    the time that is done.
    """

    signals: Literal["inbox", "engine", "polls", "none"] = "inbox"
    find_deleted: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    engine: Callable[[float, float], Engine] | None = None
    count_from: float | None = None
    bins: int = 0
    progress: Callable[[float], None] | None = None


class Happenings:
    """The changes of a trace's pages and its signals, given to a crawler when they come."""

    def __init__(self, trace: Trace, web: TraceWeb, store: Store, crawler: Crawler, options: ReplayOptions) -> None:
        self._trace, self._web, self._store = trace, web, store
        self._crawler, self._engine, self._options = crawler, crawler.engine, options
        self._clock = crawler.components.clock
        self._changes = membership(trace, trace.start, trace.end)
        self._passed = 0  # signals

    async def begin(self) -> None:
        """Add the pages that exist at the start."""
        _, come, gone = next(self._changes)
        await self._add(come)
        await self._remove(gone)
        if self._options.signals == "polls":
            for host in dict.fromkeys(host_of(url) for url in self._web.urls):
                self._crawler.components.polls.add(sitemap_of(host), "sitemap")

    async def follow(self) -> None:
        """Add and remove pages, and pass signals, each at its time."""
        for at, come, gone in self._changes:
            await self._pass_signals(at)
            await self._clock.sleep(at - self._clock.now())
            await self._add(come)
            await self._remove(gone)
        await self._pass_signals(self._trace.end)

    async def _add(self, pages: Ids) -> None:
        """Add pages with fresh copies."""
        if not len(pages):
            return
        now, urls = self._clock.now(), [self._web.urls[page] for page in pages.tolist()]
        weight, rules = self._trace.importance[pages], self._crawler.components.options.rules
        new = add_pages(self._engine, rules, urls, now, importance=weight, fetched_at=now)
        copies = [await self._copy(url) for url in urls]
        await save_pages(self._engine, self._store, new)
        await self._store.save(copies)

    async def _copy(self, url: str) -> Outcome:
        """A copy of a page as it is now, for which no request was made."""
        fetched = await MemoryWeb(self._web.answer, self._clock).fetch(url)
        outcome = await self._crawler.components.comparer.outcome(Hop(url, url, self._clock.now()), fetched, None)
        return replace(outcome, requests=0)

    async def _remove(self, pages: Ids) -> None:
        """Remove pages, unless crawls are to find that they are gone."""
        if not len(pages) or self._options.find_deleted:
            return
        urls = [self._web.urls[page] for page in pages.tolist()]
        ids = self._engine.id(urls)
        self._engine.remove(ids)
        self._crawler.components.inbox.forget(ids.tolist())
        await self._store.save(removed=urls, at=self._clock.now())

    async def _pass_signals(self, until: float) -> None:
        """Pass the signals before a time, each when it comes."""
        if self._trace.signals is None or self._options.signals in ("none", "polls"):
            return
        at, page, source, about = self._trace.signals
        while self._passed < len(at) and at[self._passed] < until:
            k = self._passed
            await self._clock.sleep(float(at[k]) - self._clock.now())
            url, stated = self._web.urls[page[k]], None if np.isinf(about[k]) else float(about[k])
            if self._options.signals == "inbox":
                await self._signal(url, stated)
            else:
                known = self._engine.addresses.known([url])
                self._engine.signal(known[known >= 0], float(at[k]), source=int(source[k]), changed_at=stated)
            self._passed += 1

    async def _signal(self, url: str, stated: float | None) -> None:
        """Pass a signal to the inbox; a date without a time means any time of that day."""
        resolution = DAY if stated is not None and stated % DAY == 0.0 else 0.0
        await self._crawler.components.inbox.take([Signal(url, Source("sitemap", host_of(url)), stated, resolution)])
