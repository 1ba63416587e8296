"""The loop of a crawl: record what ended, start what may start, save, sleep."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from recrawl.crawl.run.bookkeeping import Bookkeeper
from recrawl.crawl.run.opening.components import Components
from recrawl.crawl.run.start import Starter
from recrawl.crawl.run.tasks import GATHER

_BETWEEN = 0.001  # seconds between two pieces of a refit, at least; at least as long as a piece takes


class CrawlLoop:
    """Runs until a time, until n crawls have started, or until it is stopped."""

    def __init__(self, components: Components) -> None:
        self.components, self.starter, self.books = components, Starter(components), Bookkeeper(components)
        self._longest = components.options.longest_sleep
        self.stopped = False
        self.crawling = True  # False: pages are crawled by others
        self.others_wait: Callable[[], bool] = lambda: False  # whether crawlers of others wait for pages
        self._theirs = False  # whether the next requests are for others
        self.own_turn = False  # others had pages: whether this loop comes first now
        self.on_settle: list[Callable[[float], None]] = []  # called with the time, again and again
        self._piece_at = -math.inf  # when the next piece of what the engine has left to do may be done
        components.engine.refits_in_pieces = True

    async def run(self, until: float, n: int | None) -> None:
        """Crawl the pages that are worth most, again and again."""
        left = math.inf if n is None else n
        self.books.begin(self.components.clock.now())
        while True:
            now = self.settle()
            idle = self.crawling and not (self.starter.picking or self.components.audits.busy)
            if self.stopped or now >= until or left <= 0 or idle:
                return
            commands_at = self.books.apply_commands(now)
            started = (
                await self._start(now, left) if self.crawling else self.starter.count_others(now, self.others_wait())
            )
            left -= started
            self.books.save_if_due(now)
            await self.rest(now, min(until, commands_at), started > 0)

    async def _start(self, now: float, most: float) -> int:
        """Start polls and crawls; how many crawls."""
        await self.cover(now)
        if self.starter.picking:
            self.components.polls.start(now)
        self._theirs = not (self._theirs or self.own_turn) and self.others_wait()
        if self._theirs:
            return 0
        ready = self.components.budget.ready(now) > 0
        started = await self.starter.start(now, most)
        self.own_turn = self.own_turn and not ready
        return started

    def settle(self) -> float:
        """Record in the engine all crawls that ended, and raise what went wrong; the time."""
        now = self.components.clock.now()
        self.components.recorder.settle(now)
        for call in self.on_settle:
            call(now)
        self._maintain(now)
        self.books.check()
        return now

    def _maintain(self, now: float) -> None:
        """Do a piece of what the engine has left to do, at most half of the time."""
        if self.components.engine.upkeep.due and now >= self._piece_at:
            self.components.engine.maintain()
            after = self.components.clock.now()
            self._piece_at = after + max(after - now, _BETWEEN)

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
        at = min(until, recorder.due_at(now), now + (GATHER if unsettled else self._longest))
        if self.components.engine.upkeep.due:
            at = min(at, self._piece_at)
        if self.crawling:
            at = min(at, self.starter.next_at(now))
            at = min(at, self.components.polls.next_at(now)) if self.starter.picking else at
        if budget.n_waiting:
            at = min(at, budget.next_at(now))
        await (asyncio.sleep(0) if busy and at <= now else pool.sleep(at - now))
