"""Components of a crawler: what it needs beside engine, store and fetcher, each made once from the options."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any

from recrawl.crawl.audit.audits import Audits
from recrawl.crawl.audit.freshness import FreshnessNotes
from recrawl.crawl.audit.history import NOTE as HISTORY
from recrawl.crawl.audit.open_audit import NOTES as AUDITS
from recrawl.crawl.clock import Clock, MonotonicClock, SystemClock
from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.deliver.subscribers import Deliveries
from recrawl.crawl.feeds.cache import FeedCache
from recrawl.crawl.feeds.polling import PREFIX
from recrawl.crawl.http.fetched import Fetcher
from recrawl.crawl.listings.discovery import Discovery
from recrawl.crawl.listings.poll_queue import PollTerms
from recrawl.crawl.listings.polls import PollHooks, Polls
from recrawl.crawl.polite.budget import MARK, Budget
from recrawl.crawl.polite.host_budgets import PREFIX as HOST_PACED
from recrawl.crawl.polite.host_budgets import HostBudgets, RateOf
from recrawl.crawl.polite.host_limiter import DELAY, HostLimiter
from recrawl.crawl.polite.hours import rates
from recrawl.crawl.polite.not_modified import NotModified
from recrawl.crawl.polite.robots import Robots
from recrawl.crawl.polite.robots_gate import RobotsGate
from recrawl.crawl.polite.side_requests import SideRequests
from recrawl.crawl.polite.slots import Slots
from recrawl.crawl.polite.unspent import NOTE as UNSPENT
from recrawl.crawl.polite.unspent import Unspent
from recrawl.crawl.run.commands import add_command
from recrawl.crawl.run.compare import Comparer
from recrawl.crawl.run.page_crawler import PageCrawler
from recrawl.crawl.run.progress import Counters, Reporter
from recrawl.crawl.run.receive.handover import Handover
from recrawl.crawl.run.receive.pushed import PushedCopies
from recrawl.crawl.run.receive.receivers import Receivers
from recrawl.crawl.run.receive.websub import Reach
from recrawl.crawl.run.recorder import Recorder
from recrawl.crawl.run.tasks import TaskPool
from recrawl.crawl.signals.inbox import Inbox, InboxOptions
from recrawl.crawl.signals.sources import WEBHOOK, Source
from recrawl.crawl.signals.tokens import PREFIX as TOKENS
from recrawl.crawl.signals.tokens import Token, Tokens
from recrawl.engine import Engine
from recrawl.errors import ParameterError
from recrawl.store.protocol import Outcome, Store

TRUST = "trust"  # the note of which servers' "not modified" is trusted


class Components:
    """Everything a crawl is made of. Nothing is read from the store before ``load``."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        fetcher: Fetcher,
        options: CrawlOptions,
        robots: Robots | None,
        clock: Clock | None,
    ) -> None:
        self.engine, self.store, self.options, self.robots = engine, store, options, robots
        self.clock = MonotonicClock(clock or SystemClock())
        self.counters = Counters()
        self.report = Reporter(options.on_event)
        self.pool = TaskPool(self.clock, options.concurrency)
        self.slots = Slots(options.concurrency)
        self.feeds = FeedCache(options.feed_interval)
        self.not_modified = NotModified()
        signals = InboxOptions(gather=options.signal_delay, on_new=self.pool.wake)
        self.inbox, self.tokens = Inbox(engine, store, self.clock, signals), Tokens()
        self.recorder = Recorder(engine, store, options, self.feeds, self._saved)
        self.recorder.inbox, self.inbox.copies = self.inbox, self.recorder.copies
        self.budget = options.budget or _budget_of(engine, self.clock.now())
        self.unspent = Unspent()
        self.freshness = FreshnessNotes(
            engine, options.notes_every, lambda: (self.budget.used, *self.counters.judged())
        )
        self.noting: asyncio.Task[None] | None = None  # the last note of how fresh many copies are
        self.budget.attach(self.pool, self._save_mark)
        budgets = HostBudgets(host_rates(options.rules, self.budget), self.recorder.save_notes)
        self.limiter = HostLimiter(engine, self.clock, options.longest_delay, budgets)
        self.limiter.on_held = self.report.host_held
        gate = RobotsGate(robots, self.limiter, self.budget, self.clock, self.recorder.save_notes)
        self.gate = gate
        self.comparer = Comparer(options, self.feeds, self.not_modified, self.clock)
        self.page_crawler = PageCrawler(fetcher, gate, self.comparer, options.rules, self.clock, self._is_page)
        if options.others is not None:
            self.page_crawler.handover = Handover(options.others, self._importance_of, self.clock)
        self.side = SideRequests(fetcher, gate, self.clock, self._count_requests)
        self.polls = self._polls()
        self.audits = Audits(engine, self.limiter, options)
        self.deliveries = Deliveries(options.subscribers, store, self.clock, self.report)
        self.receivers = self._receivers()
        self._loaded, self.stopping = False, False

    def why_not_ready(self) -> str | None:
        """Why no crawl runs, or does no longer start; None while it runs."""
        if not self._loaded:
            return "the engine is being loaded"
        return "the crawl is ending" if self.stopping else None

    def _polls(self) -> Polls:
        hooks = PollHooks(self._add_found, self._poll_terms, self.pool.watch, self._report_poll)
        discovery = Discovery(self.options.rules, self._are_pages)
        polls = Polls(self.engine, self.store, self.clock, self.inbox, discovery, hooks)
        polls.is_on = self.options.listings
        polls.attach(self.side)
        self.gate.on_read, self.page_crawler.on_changed = polls.named, polls.page_fetched
        return polls

    def _receivers(self) -> Receivers:
        recorder, clock, side = self.recorder, self.clock, self.side
        pushed = PushedCopies(self.comparer, recorder, clock, self.counters, self.pool.wake)
        save, feeds = recorder.save_notes, self.feeds
        reach = Reach(side, self.inbox, pushed, clock, save, self._pages_of, feeds.length, self.polls, self.counters)
        reach = reach._replace(others=self.options.others)
        receivers = Receivers(reach, self.options.callback_url)
        self.page_crawler.on_fetched = self.polls.on_fetched = receivers.page_fetched
        return receivers

    async def load(self) -> None:
        """Take up what earlier runs noted in the store; once."""
        if self._loaded:
            return
        mark = (await self.store.notes(MARK)).get(MARK)
        self.budget.resume(mark, self.clock.now())
        self.feeds.restore(await self.store.notes(PREFIX), self.engine)
        if trusted := await self.store.notes(TRUST):
            self.not_modified.restore(trusted[TRUST])
        self.audits.restore(await self.store.notes(AUDITS))
        self.limiter.restore(await self.store.notes(DELAY), resumed=mark is not None)
        self.limiter.restore_budgets(await self.store.notes(HOST_PACED))
        self.unspent.restore(await self.store.notes(UNSPENT))
        self.freshness.history.restore((await self.store.notes(HISTORY)).get(HISTORY))
        await self.inbox.load()
        for note in (await self.store.notes(TOKENS)).values():
            self.set_token(note["name"], note)
        await self.polls.load()
        await self.receivers.load(self.store)
        await self.deliveries.resume()
        self._loaded = True

    def set_token(self, name: str, note: Mapping[str, Any] | None) -> None:
        """Take a new token from its note, or remove one; its limits hold from now on."""
        token = None if note is None else Token.restore(note)
        self.tokens.set(name, token)
        self.inbox.limits.set(Source(WEBHOOK, name), None if token is None else token.limit)

    async def _save_mark(self, notes: Mapping[str, Any]) -> None:
        """Write the mark of the budget, and from time to time what was left of it and how fresh the copies are."""
        now = self.clock.now()
        more = self.unspent.pending_notes(now) | self.freshness.pending_notes(now)
        if self.freshness.are_due(now):
            self.noting = asyncio.create_task(self._note_freshness(now))
            self.pool.watch(self.noting)
        await self.recorder.save_notes({**notes, **more})

    async def _note_freshness(self, now: float) -> None:
        """Write how fresh the copies of many pages are; no request waits for it."""
        await self.recorder.save_notes(await self.freshness.renewed_notes(now))

    def _saved(self, outcomes: list[Outcome]) -> None:
        """A batch is committed."""
        self.counters.acknowledged += len(outcomes)
        self.inbox.saved(outcomes)
        if outcomes:
            self.polls.crawled(outcomes)
            self.report("saved", outcomes=outcomes)
            self.deliveries.notify()

    def _pages_of(self, urls: Sequence[str]) -> list[int]:
        return [int(page) for page in self.engine.addresses.known(urls)]

    async def _add_found(self, pages: Mapping[str, float]) -> None:
        """Queue new pages that listings and links name."""
        await self.store.queue([add_command(list(pages), list(pages.values()))])
        self.counters.discovered += len(pages)

    def _poll_terms(self) -> PollTerms:
        """What decides when listings are polled; signals bring crawls forward for the objective freshness only.

        The margin is not known while pages have no copies: these come first whatever they are worth.
        """
        uses_signals = self.engine.settings.schedule == "freshness"
        threshold = self.recorder.threshold if uses_signals else math.inf
        return PollTerms(threshold, self.budget.rate, self.engine.settings.day)

    def _report_poll(self, name: str, **fields: Any) -> None:
        self.counters.polls += name == "polled"
        self.report(name, **fields)

    def _are_pages(self, urls: Sequence[str]) -> list[bool]:
        return [page >= 0 for page in self._pages_of(urls)]

    def _is_page(self, url: str) -> bool:
        return self._pages_of([url])[0] >= 0

    def _importance_of(self, url: str) -> float:
        page = self._pages_of([url])[0]
        return float(self.engine.rows([page])["importance"][0]) if page >= 0 else 1.0

    def _count_requests(self, n: int) -> None:
        self.counters.requests += n

    def close(self) -> None:
        """End the threads."""
        self.comparer.close()
        self.polls.close()


def host_rates(rules: Rules, budget: Budget) -> RateOf:
    """Requests per second that a host may get by its rule, in the hours of the budget."""

    def rate_of(host: str) -> float | None:
        text = rules.budget_of(host)
        return None if text is None else rates(text, 1, budget.hours)[0]

    return rate_of


def _budget_of(engine: Engine, now: float) -> Budget:
    if engine.budget is None:
        raise ParameterError("there is no budget: give one in the options, or an engine with a budget")
    return Budget(engine.budget, now)
