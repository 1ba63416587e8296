"""The loop of a crawl: record what ended, start what may start, save, sleep."""

from __future__ import annotations

import asyncio
import math

from recrawl.crawl.run.bookkeeping import Bookkeeper
from recrawl.crawl.run.opening.components import Components
from recrawl.crawl.run.start import Starter
from recrawl.crawl.run.tasks import GATHER


class CrawlLoop:
    """Runs until a time, until n crawls have started, or until it is stopped."""

    def __init__(self, components: Components) -> None:
        self.components, self.starter, self.books = components, Starter(components), Bookkeeper(components)
        self._longest = components.options.longest_sleep
        self.stopped = False

    async def run(self, until: float, n: int | None) -> None:
        """Crawl the pages that are worth most, again and again."""
        left = math.inf if n is None else n
        self.books.begin(self.components.clock.now())
        while True:
            now = self.settle()
            idle = not (self.starter.picking or self.components.audits.busy)
            if self.stopped or now >= until or left <= 0 or idle:
                return
            commands_at = self.books.apply_commands(now)
            await self.cover(now)
            if self.starter.picking:
                self.components.polls.start(now)
            started = await self.starter.start(now, left)
            left -= started
            self.books.save_if_due(now)
            await self.rest(now, min(until, commands_at), started > 0)

    def settle(self) -> float:
        """Record in the engine all crawls that ended, and raise what went wrong; the time."""
        now = self.components.clock.now()
        self.components.recorder.settle(now)
        self.books.check()
        return now

    async def cover(self, now: float) -> None:
        """Write up to when the budget counts as spent, before it is."""
        await self.components.budget.cover(now)
        self.books.check()

    async def rest(self, now: float, until: float, busy: bool) -> None:
        """Sleep until something can be done, or a crawl ends."""
        recorder, pool, budget = self.components.recorder, self.components.pool, self.components.budget
        unsettled = recorder.unsettled
        if unsettled and (not busy or pool.free > 0):
            return
        at = min(until, recorder.due_at(now), now + (GATHER if unsettled else self._longest), self.starter.next_at(now))
        at = min(at, self.components.polls.next_at(now)) if self.starter.picking else at
        if budget.n_waiting:
            at = min(at, budget.next_at(now))
        await (asyncio.sleep(0) if busy and at <= now else pool.sleep(at - now))
