"""The crawl of one shard in a worker: opened when its lease is taken, closed before it is given back."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from recrawl.cluster.hosts import HostsOfShard, OtherShards
from recrawl.cluster.notices.book import Position
from recrawl.cluster.ownership.gate import Gate, leased
from recrawl.cluster.ownership.keeper import PUBLISH_EVERY, Round, Wanted
from recrawl.cluster.ownership.leases import Held
from recrawl.cluster.ownership.sessions import Connections
from recrawl.cluster.passes import ShardPass
from recrawl.cluster.reading import ShardReader
from recrawl.cluster.shard_settings import callback_of_shard, without_notify
from recrawl.cluster.shares.control_round import differs
from recrawl.cluster.shares.controller import plan_of
from recrawl.cluster.shares.share_tables import Published
from recrawl.cluster.shares.shares import Share
from recrawl.cluster.tables import Cluster
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.deliver.notify.notifier import PREFIX
from recrawl.crawl.polite.budget import Budget
from recrawl.crawl.polite.hours import rates
from recrawl.crawl.run.opening.assemble import LiveCrawl, Web, open_crawl
from recrawl.crawl.run.opening.notifiers import texts_wanted
from recrawl.crawl.run.opening.reload import reload_settings
from recrawl.engine.outcomes.lessons import Lessons
from recrawl.logs import event
from recrawl.store import PostgresStore
from recrawl.store.events import Subscriber

log = logging.getLogger(__name__)

_SHARED_AFTER = 3.0  # leases after which the controller has given shares for other hours


@dataclass
class Surroundings:
    """What the crawls of a worker share."""

    settings: Settings
    cluster: Cluster
    web: Web
    connections: Connections
    may_wait: Callable[[], bool]  # whether transactions wait for a database that is away
    wanted: Wanted
    reader: ShardReader  # of other shards
    options: Callable[[Gate], dict[str, Any]]  # fields of `CrawlOptions` for the crawl of a shard
    pass_number: int | None = None  # of the pass that is made; None: crawls do not end
    lessons: dict[int, Lessons] = field(default_factory=dict)  # what the pages of shards teach about all pages


class ShardCrawl:
    """Store, engine and crawler of a leased shard."""

    def __init__(self, around: Surroundings, gate: Gate, share: Share | None) -> None:
        self.gate, self.stopping = gate, False
        self._around, self._share = around, share or Share()
        self._live: LiveCrawl | None = None
        self._pass: ShardPass | None = None
        self._published_at, self._published_pages = float("-inf"), -1
        self._scale, self._scaled_until = 1.0, float("inf")  # of the share: below 1 after other hours, for a while

    async def run(self) -> None:
        """Open the shard, crawl until it is stopped or lost, and close it."""
        self._live = live = await self._opened()
        shard, epoch, n_pages = self.gate.held.shard, self.gate.held.epoch, len(live.crawler.engine)
        event(log, logging.INFO, "shard.opened", shard=shard, epoch=epoch, pages=n_pages)
        try:
            self._use(self._share)
            await live.crawler.components.load()
            self.learn()
            done = set[str]() if self._pass is None else await self._pass.begin()
            if self.stopping:
                live.crawler.stop()
            await live.crawler.run(once=self._pass is not None, done=done)
            if self._pass is not None and not self.stopping:
                await self._pass.end()
        finally:
            await live.close()
            event(log, logging.INFO, "shard.closed", shard=shard, lost=self.gate.lost)

    def _may_wait(self) -> bool:
        """Whether what is sent to other shards waits for a database that is away."""
        self.gate.check_not_lost()
        return self._around.may_wait()

    async def _opened(self) -> LiveCrawl:
        around, shard = self._around, self.gate.held.shard
        settings, name = around.settings, around.cluster.shard_database(shard)
        access = around.connections.of_gate(self.gate, around.may_wait)
        limits = settings.event_limits()
        store = PostgresStore(name, keep=settings.keep, events=limits, access=access)
        is_own, clock = HostsOfShard(shard, around.cluster.shards), around.web.clock
        pages, robots = (
            None if one is None else leased(one, self.gate, is_own, clock.now)
            for one in (around.web.pages, around.web.robots)
        )
        assert pages is not None
        web = Web(around.web.user_agent, pages, robots, clock)
        budget = Budget(self._share.rate, clock.now(), hours=settings.opening())
        budget.earn_first()  # the last owner may have asked just now
        others = OtherShards(is_own, around.cluster.shards, around.reader.store, self._may_wait)
        chosen = {"budget": budget, "others": others, **around.options(self.gate)}
        if callback := settings.callback_url():
            chosen["callback_url"] = callback_of_shard(callback, shard)
        chosen["texts"] = settings.event_text or texts_wanted(settings)
        live = await open_crawl(without_notify(settings), web=web, store=store, may_be_empty=True, **chosen)
        access.opened()
        if around.pass_number is not None:
            self._pass = ShardPass(access, around.cluster.address.schema, shard, around.pass_number)
        while settings is not around.settings:  # read again meanwhile
            old, settings = settings, around.settings
            await _reload(live, old, settings)
        return live

    def renew(self, held: Held, share: Share | None, found: Round) -> None:
        """The lease goes on, with a share that may have changed; from time to time a plan is published."""
        over = self._scale < 1.0 and time.monotonic() > self._scaled_until
        if over or (share is not None and share.number != self._share.number):
            self._scale = 1.0
            self._use(share or self._share)
        self.gate.held = held
        self.gate.renewed()
        if self._live is None or self.stopping:
            return
        if found.notified is not None:
            self._live.crawler.components.pool.watch(asyncio.create_task(self._mark(self._live, found.notified)))
        now, n_pages = self._live.clock.now(), len(self._live.crawler.engine)
        if now >= self._published_at + PUBLISH_EVERY or differs(self._published_pages, n_pages):
            self._published_at, self._published_pages = now, n_pages
            self._publish(found, now)

    async def _mark(self, live: LiveCrawl, positions: Mapping[str, Position]) -> None:
        """Keep events and their texts until they are notified: in the shard, a notification is a subscriber."""
        shard, store = self.gate.held.shard, live.store
        there = {one.name: one for one in await store.subscribers() if one.name.startswith(PREFIX)}
        for name, position in positions.items():
            before = there.pop(name, None)
            mine = Subscriber(
                name,
                position.cursors[shard],
                failures=position.failures,
                failure=position.failure,
                failed_at=position.failed_at,
                taken_at=position.taken_at,
            )
            if before is None or replace(before, dropped=0) != mine:
                await store.save_subscriber(mine)
        for name in there:
            await store.remove_subscriber(name)

    def _use(self, share: Share) -> None:
        self._share = share
        if self._live is not None:
            crawler = self._live.crawler
            crawler.budget.set_share(share.rate * self._scale, crawler.now())
            if len(crawler.engine) and share.rate > 0:
                crawler.engine.budget = share.rate * self._scale
            crawler.components.pool.wake()
            self.gate.n_waiting = lambda: crawler.components.recorder.n_pending
        self._around.wanted.acknowledge[self.gate.held.shard] = share.number

    def _publish(self, found: Round, now: float) -> None:
        """Say how many pages the shard has, and what a crawl is worth to it at several budgets."""
        assert self._live is not None
        engine, hours = self._live.crawler.engine, self._around.settings.opening()
        while_open, on_average = rates(found.budget, found.pages, hours)
        by_pages = on_average * len(engine) / found.pages if found.pages else 0.0
        share = self._share.rate * (on_average / while_open if while_open > 0 else 1.0)
        plan = plan_of(engine, now, share=share, by_pages=by_pages)
        lessons = engine.lessons(self._source_names()).as_dict() if len(engine) else None
        self._around.wanted.publish[self.gate.held.shard] = Published(len(engine), plan.as_dict(), lessons)

    async def reload(self, old: Settings, new: Settings, found: Round) -> None:
        """Use other settings from now on. Until the share is one for other hours, no more is spent than both allow."""
        if self._live is None or self.stopping:
            return  # it is opened with the settings of the worker
        before, after = (rates(found.budget, found.pages, one.opening())[0] for one in (old, new))
        self._scale = min(self._scale * after / before, 1.0) if before > 0.0 else self._scale
        self._scaled_until = time.monotonic() + _SHARED_AFTER * self._around.cluster.seconds
        await _reload(self._live, old, new)
        self._use(self._share)

    def learn(self) -> None:
        """Let the engine learn from the pages of other shards."""
        if self._live is None or self.stopping:
            return
        crawler, own = self._live.crawler, self.gate.held.shard
        others = [one for shard, one in self._around.lessons.items() if shard != own]
        crawler.engine.learn_from(others, crawler.now(), self._source_names())

    def _source_names(self) -> list[str]:
        assert self._live is not None
        crawler = self._live.crawler
        return [crawler.components.inbox.sources.name(k) for k in range(crawler.engine.settings.sources)]

    def stop(self) -> None:
        """Start no more crawls; ``run`` ends when all is written."""
        self.stopping = True
        if self._live is not None:
            self._live.crawler.stop()

    def lose(self) -> None:
        """Another worker has the shard: ask nothing and write nothing any more."""
        self.gate.lost = self.stopping = True
        self.gate.end_requests()
        if self._live is not None:
            self._live.crawler.stop()

    def counted(self) -> dict[str, Any]:
        """What the crawl has done."""
        return {} if self._live is None else self._live.crawler.counters.as_dict()


async def _reload(live: LiveCrawl, old: Settings, new: Settings) -> None:
    """Give a crawl other settings; notifications are not its own, but need the texts of its pages."""
    components = live.crawler.components
    await reload_settings(components, without_notify(old), without_notify(new))
    components.comparer.texts = new.event_text or texts_wanted(new)
