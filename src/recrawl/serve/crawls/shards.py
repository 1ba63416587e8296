"""ClusterCrawl: a cluster as it is served. It has no shard and crawls nothing: its workers do."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from recrawl.cluster.overview import set_budget
from recrawl.cluster.reading import ShardPages, ShardReader
from recrawl.cluster.routing import TOKENS, routed
from recrawl.cluster.shard_settings import shard_settings
from recrawl.cluster.tables import Cluster
from recrawl.crawl.clock import Clock, SystemClock
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.assemble import engine_of
from recrawl.crawl.run.opening.pages import Part
from recrawl.crawl.run.opening.partial import explain_page
from recrawl.crawl.run.opening.reload import compare
from recrawl.crawl.signals.tokens import PREFIX, Token, Tokens
from recrawl.engine import Engine
from recrawl.engine.views.explain import Explanation
from recrawl.errors import ParameterError, StoreError
from recrawl.logs import event
from recrawl.serve.crawls.engine_pages import page_rows
from recrawl.serve.crawls.recent import crawled
from recrawl.serve.crawls.shard_questions import ShardQuestions
from recrawl.serve.crawls.view import BudgetFacts, Crawled, PageRow, Tallies
from recrawl.store.events import Event
from recrawl.store.protocol import Copy, Store, Totals

log = logging.getLogger(__name__)
T = TypeVar("T")

_LOOK = 1.0  # seconds between two looks at leases, shares and tokens
_COUNT_EVERY = 30.0  # seconds between two counts of all pages, at least
_REST = 50.0  # times as long as the last count took
_SEARCHED = 100_000  # up to so many pages any part of a URL is found; beyond it, its beginning
_LISTED = 500  # pages of an order


class ClusterCrawl:
    """See `CrawlView`. ``look`` is awaited once before the first call."""

    on_cluster = True

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        self._cluster, self._settings = cluster, settings
        self.reader, self.tokens = ShardReader(cluster), Tokens()
        self.clock: Clock = SystemClock()
        self.questions = ShardQuestions(cluster, lambda: self.settings)
        self._seen: dict[str, Any] = {}
        self._pages: list[ShardPages] = []
        self._counted_at = float("-inf")
        self._totals: dict[int, tuple[float, Totals]] = {}
        self._over = asyncio.Event()

    @property
    def settings(self) -> Settings:
        """See `CrawlView`."""
        return replace(self._settings, budget=self._seen.get("budget", self._cluster.budget))

    def why_not_ready(self) -> str | None:
        """See `CrawlView`."""
        return "the service is ending" if self._over.is_set() else None if self._seen else "the cluster is being read"

    def tallies(self) -> Tallies:
        """See `CrawlView`."""
        pages, failing, gone = (sum(getattr(one, name) for one in self._pages) for name in ("pages", "failing", "gone"))
        return Tallies(pages, failing, gone)

    def budget(self) -> BudgetFacts:
        """See `CrawlView`. What workers have used is in the figures of the last day."""
        settings = self.settings
        return BudgetFacts(settings.budget, settings.rates(max(self.tallies().pages, 1))[0], 0, 0.0)

    def host_seconds(self) -> Mapping[str, float]:
        """See `CrawlView`."""
        return {}

    def store_of(self, url: str) -> Store:
        """See `CrawlView`."""
        return self.reader.store_of(url)

    # --- pages --------------------------------------------------------------------------------------------------------

    async def known(self, urls: Sequence[str]) -> list[bool]:
        """See `CrawlView`."""
        there = await self.reader.to_be(urls)
        return [url in there for url in urls]

    async def explain(self, url: str) -> Explanation | None:
        """See `CrawlView`."""
        shard, now = self.reader.shard_of(url), self.clock.now()
        if not await self.reader.known([url]):
            return None
        return await _apart(explain_page(self.reader.store(shard), self._of_shard(shard), url, now))

    async def copies(self, urls: Sequence[str]) -> dict[str, Copy]:
        """See `CrawlView`."""
        return await self.reader.merged(urls, lambda store, mine: store.copies(mine))

    async def rows(self, urls: Sequence[str], copies: Mapping[str, Copy]) -> list[PageRow]:
        """See `CrawlView`."""
        now, found = self.clock.now(), dict[str, PageRow]()
        for shard, mine in self.reader.by_shard(urls).items():
            engine = await self.engine_of(shard, mine)
            found.update({row.url: row for row in page_rows(engine, mine, copies, now)})
        return [found[url] for url in urls if url in found]

    async def engine_of(self, shard: int, urls: Sequence[str]) -> Engine:
        """An engine with some pages of a shard."""
        store, now = self.reader.store(shard), time.monotonic()
        at, totals = self._totals.get(shard, (float("-inf"), None))
        if totals is None or now - at > _COUNT_EVERY:
            totals = await store.totals()
            self._totals[shard] = now, totals
        return await _apart(engine_of(store, self._of_shard(shard), self.clock.now(), Part(urls, totals)))

    async def ordered(self, order: str) -> list[str] | None:
        """See `CrawlView`: pages that changed or were checked lately, and those that were added last."""
        if order == "changed":
            changed = [one.url for one in await self.newest_events(_LISTED, kinds=("changed",))]
            return list(dict.fromkeys([*changed, *await self.reader.newest_pages(_LISTED)]))
        if order == "checked":
            return list(dict.fromkeys(one.url for one in await self.reader.newest_outcomes(_LISTED)))
        return await self.reader.newest_pages(_LISTED) if order == "added" else None

    async def searched(self, words: str, most: int) -> list[str]:
        """See `CrawlView`."""
        if self.tallies().pages <= _SEARCHED:
            return await self.reader.containing(words, most)
        begins = [words] if "://" in words else [f"{scheme}{words}" for scheme in ("https://", "https://www.")]
        return [url for begin in begins for url in await self.urls(begin, most=most)][:most]

    async def some_urls(self, most: int) -> list[str]:
        """See `CrawlView`."""
        return await self.urls(most=most)

    async def urls(self, prefix: str = "", *, most: int | None = None) -> list[str]:
        """See `CrawlView`."""
        found: list[str] = []
        for shard in range(self._cluster.shards):
            left = None if most is None else most - len(found)
            if left == 0:
                break
            found += await self.reader.store(shard).urls(prefix, most=left)
        return found

    # --- crawls -------------------------------------------------------------------------------------------------------

    async def newest_events(self, many: int = 50, *, kinds: Sequence[str] | None = None) -> list[Event]:
        """See `CrawlView`."""
        return await self.reader.newest_events(many, kinds)

    async def host_rules(self, hosts: Sequence[str]) -> list[tuple[float, float | None]]:
        """See `CrawlView`."""
        now, delay = self.clock.now(), self._settings.seconds("delay")
        rules: dict[str, tuple[float, float]] = {}
        for shard, mine in self.reader.by_shard([f"//{host}/" for host in hosts]).items():
            rules |= await self.reader.held_hosts(shard, [one.strip("/") for one in mine])
        found = [rules.get(host, (delay, 0.0)) for host in hosts]
        return [(spacing, until if until > now else None) for spacing, until in found]

    async def recent(self) -> list[Crawled]:
        """See `CrawlView`."""
        return [crawled(round(1e3 * one.began_at), one) for one in await self.reader.newest_outcomes(_LISTED)]

    async def apply(self, commands: Sequence[dict[str, Any]]) -> None:
        """See `CrawlView`: commands wait in the queues of shards until their workers take them, within seconds."""
        for shard, mine in routed(commands, self._cluster.shards).items():
            await self.reader.store(shard).queue(mine)

    async def change(self, new: Settings) -> None:
        """See `CrawlView`: the budget of the cluster; all else is in the settings of its workers."""
        changed = compare(self.settings, new).changed
        if others := [name for name in changed if name != "budget"]:
            raise ParameterError(f"{', '.join(others)}: change it in the settings of the cluster's workers")
        if changed:
            await set_budget(self._cluster, new.budget)
            await self.look()

    def workers(self) -> dict[str, Any]:
        """See `CrawlView`."""
        return self._seen

    def _of_shard(self, shard: int) -> Settings:
        return shard_settings(self.settings, self._seen["shards"][shard]["rate"] if self._seen else None)

    # --- from start to end --------------------------------------------------------------------------------------------

    async def look(self) -> None:
        """Read leases, shares, budget and tokens, and from time to time count the pages."""
        self._seen = await self.reader.overview()
        store = self.reader.store(TOKENS)
        tokens = Tokens.restore(await store.notes(PREFIX))
        for _, command in await store.commands():
            if "token" in command:
                note = command.get("note")
                tokens.set(command["token"], None if note is None else Token.restore(note))
        self.tokens.replace(tokens)
        began = time.monotonic()
        if began >= self._counted_at:
            self._pages = await self.reader.pages()
            now = time.monotonic()
            self._counted_at = now + max(_COUNT_EVERY, _REST * (now - began))

    async def run(self, *, crawl: bool = True) -> None:
        """See `CrawlView`."""
        while not self._over.is_set():
            try:
                await self.look()
            except StoreError as problem:
                event(log, logging.WARNING, "cluster.away", error=str(problem))
            try:
                async with asyncio.timeout(_LOOK):
                    await self._over.wait()
            except TimeoutError:
                pass

    def stop(self) -> None:
        """See `CrawlView`."""
        self._over.set()

    async def close(self) -> None:
        """End the connections."""
        await asyncio.to_thread(self.questions.close)
        await self.reader.close()


async def _apart(work: Coroutine[Any, Any, T]) -> T:
    """What an engine computes, in a thread: others need not wait for it."""
    return await asyncio.to_thread(asyncio.run, work)
