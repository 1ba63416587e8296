"""LocalCrawl: the crawl of this process as it is served."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.crawl.clock import Clock
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.assemble import LiveCrawl
from recrawl.crawl.run.opening.pages import is_paused
from recrawl.crawl.signals.tokens import Tokens
from recrawl.engine import Engine
from recrawl.engine.views.explain import Explanation
from recrawl.errors import ParameterError
from recrawl.schedule.exact import access
from recrawl.serve.crawls.engine_pages import page_rows
from recrawl.serve.crawls.local_questions import LocalQuestions
from recrawl.serve.crawls.recent import RecentCrawls
from recrawl.serve.crawls.view import BudgetFacts, Crawled, PageRow, Tallies
from recrawl.store.events import Event
from recrawl.store.protocol import Copy, Store

Ids = NDArray[np.int64]

_ALL = 5000  # up to so many pages every order is computed from all of them when it is asked for
_SEARCHED = 100_000  # up to so many pages any part of a URL is found; beyond it, its beginning
_EVENTS = 2000  # the last events, which show what changed last where there are many pages
_MOST = 1000  # pages of an order


class LocalCrawl:
    """See `CrawlView`."""

    on_cluster = False

    def __init__(self, live: LiveCrawl) -> None:
        self.live, self._components = live, live.crawler.components
        self.questions = LocalQuestions(lambda: live.settings, lambda: len(live.crawler.engine))
        self._recent = RecentCrawls()
        self._components.report.listeners.append(self._recent)

    @property
    def settings(self) -> Settings:
        """See `CrawlView`."""
        return self.live.settings

    @property
    def clock(self) -> Clock:
        """See `CrawlView`."""
        return self._components.clock

    @property
    def tokens(self) -> Tokens:
        """See `CrawlView`."""
        return self._components.tokens

    @property
    def _engine(self) -> Engine:
        return self.live.crawler.engine

    @property
    def _store(self) -> Store:
        return self._components.store

    def why_not_ready(self) -> str | None:
        """See `CrawlView`."""
        return self._components.why_not_ready()

    def tallies(self) -> Tallies:
        """See `CrawlView`."""
        stats, counters, requests = self._engine.stats, self.live.crawler.counters, self._components.budget.used
        return Tallies(len(self._engine), stats["failing"], stats["away"], requests, counters.changed)

    def budget(self) -> BudgetFacts:
        """See `CrawlView`."""
        budget = self._components.budget
        return BudgetFacts(budget.text, budget.rate, budget.used, budget.lapsed)

    def host_seconds(self) -> Mapping[str, float]:
        """See `CrawlView`."""
        return {host: one.took for host, one in self.live.crawler.counters.hosts.items()}

    def store_of(self, url: str) -> Store:
        """See `CrawlView`."""
        return self._store

    # --- pages --------------------------------------------------------------------------------------------------------

    async def known(self, urls: Sequence[str]) -> list[bool]:
        """See `CrawlView`."""
        return [bool(page >= 0) for page in self._engine.addresses.known(urls)]

    async def explain(self, url: str) -> Explanation | None:
        """See `CrawlView`."""
        page = int(self._engine.addresses.known([url])[0])
        if page < 0:
            return None
        return self._engine.explain(page, self.clock.now()).named(self._components.inbox.sources.names)

    async def copies(self, urls: Sequence[str]) -> dict[str, Copy]:
        """See `CrawlView`."""
        return await self._store.copies(urls)

    async def rows(self, urls: Sequence[str], copies: Mapping[str, Copy]) -> list[PageRow]:
        """See `CrawlView`."""
        return page_rows(self._engine, urls, copies, self.clock.now())

    async def ordered(self, order: str) -> list[str] | None:
        """See `CrawlView`."""
        engine, now = self._engine, self.clock.now()
        ids = engine.ids()
        if order == "changed":
            return await self._last_changed(ids)
        if order == "stale":
            if len(ids) > _ALL:
                return None
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

    async def searched(self, words: str, most: int) -> list[str]:
        """See `CrawlView`."""
        if len(self._engine) <= _SEARCHED:
            urls = self._engine.url(self._engine.ids())
            found = await asyncio.to_thread(lambda: [url for url in urls if words in url.lower()])
            return found[:most]
        begins = [words] if "://" in words else [f"{scheme}{words}" for scheme in ("https://", "https://www.")]
        parts = [await self._store.urls(begin, most=most) for begin in begins]
        return [url for part in parts for url in part][:most]

    async def some_urls(self, most: int) -> list[str]:
        """See `CrawlView`."""
        return self._engine.url(self._engine.ids()[:most])

    async def urls(self, prefix: str = "", *, most: int | None = None) -> list[str]:
        """See `CrawlView`."""
        return await self._store.urls(prefix, most=most)

    # --- crawls -------------------------------------------------------------------------------------------------------

    async def newest_events(self, many: int = 50, *, kinds: Sequence[str] | None = None) -> list[Event]:
        """See `CrawlView`."""
        return await self._store.newest_events(many, kinds=kinds)

    async def host_rules(self, hosts: Sequence[str]) -> list[tuple[float, float | None]]:
        """See `CrawlView`."""
        limiter, now = self._components.limiter, self.clock.now()
        until = [self._engine.held_until(host) for host in hosts]
        return [(limiter.delay(host), at if at > now else None) for host, at in zip(hosts, until, strict=True)]

    async def recent(self) -> list[Crawled]:
        """See `CrawlView`."""
        return self._recent.crawls()

    async def apply(self, commands: Sequence[dict[str, Any]]) -> None:
        """See `CrawlView`."""
        if commands:
            await self.live.crawler.apply(commands)

    async def change(self, new: Settings) -> None:
        """See `CrawlView`."""
        done = await self.live.reload(lambda: new)
        if done.error is not None:
            raise ParameterError(done.error)

    async def run(self, *, crawl: bool = True) -> None:
        """See `CrawlView`."""
        await self.live.crawler.run(crawl=crawl)

    def stop(self) -> None:
        """See `CrawlView`."""
        self.live.crawler.stop()

    def workers(self) -> dict[str, Any]:
        """See `CrawlView`."""
        return {}


def _top(ids: Ids, by: NDArray[np.float64], most: int = _MOST) -> Ids:
    """The ids with the largest values, largest first."""
    if len(ids) > most:
        some = np.argpartition(-by, most)[:most]
        ids, by = ids[some], by[some]
    return ids[np.argsort(-by, kind="stable")]
