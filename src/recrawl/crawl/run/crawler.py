"""Crawler: asks the engine what to crawl, crawls it politely, and records what it found."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from recrawl.crawl.audit.audits import Audits
from recrawl.crawl.clock import Clock
from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.http.fetched import Fetcher
from recrawl.crawl.polite.budget import Budget
from recrawl.crawl.polite.robots import Robots
from recrawl.crawl.run.loop import CrawlLoop
from recrawl.crawl.run.opening.components import Components
from recrawl.crawl.run.progress import Counters
from recrawl.crawl.run.sweep import sweep
from recrawl.engine import Engine
from recrawl.store.protocol import Store

_LOOK = 0.01  # seconds between two looks whether the crawl has had its turn
_TURN = 10  # looks


class Crawler:
    """Crawls the pages of an engine within a budget; each outcome is committed together with the engine's rows.

    ``robots`` is None where robots.txt is not used. ``options.subscribers`` get what became of pages
    (`recrawl.store.Event`): each is called with a list of events and the number of events dropped before them, again
    and again until it does not raise, and continues after a restart where it was.
    """

    def __init__(
        self,
        engine: Engine,
        store: Store,
        fetcher: Fetcher,
        options: CrawlOptions | None = None,
        *,
        robots: Robots | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._components = Components(engine, store, fetcher, options or CrawlOptions(), robots, clock)
        self._loop = CrawlLoop(self._components)
        self._running = False

    async def run(
        self,
        until: float | None = None,
        *,
        once: bool = False,
        done: Collection[str] = (),
        n: int | None = None,
        audit: tuple[int, float] | None = None,
        crawl: bool = True,
    ) -> Counters:
        """Crawl until a time, until n crawls have started, until every page was crawled once, or until ``stop()``.

        With ``once``, the pages ``done`` (URLs) are left out.

        With ``audit`` (draws, level) only an audit is made. Without ``crawl`` nothing is fetched: others
        crawl the pages, and the loop writes what they found and applies commands.
        """
        components, loop = self._components, self._loop
        await components.load()
        components.stopping = loop.stopped  # stop() may come before the run
        loop.crawling = crawl
        self._running = True
        components.budget.begin(components.clock.now())
        components.deliveries.begin(components.pool.watch)
        components.receivers.begin(components.pool.watch)
        loop.starter.picking = audit is None
        if audit is not None:
            components.audits.request(*audit)
        began = components.clock.now()
        progress = loop.books.begin_log(began)
        try:
            at = math.inf if until is None else until
            await (sweep(loop, at, done) if once else loop.run(at, n))
        except Exception as problem:
            components.report.failed(problem, components.counters)
            raise
        finally:
            self._running = loop.own_turn = False
            progress.cancel()
            await components.receivers.close()
            try:
                await self._end()
            finally:
                await components.deliveries.close()
        reason, seconds = "stopped" if loop.stopped else "done", round(components.clock.now() - began, 3)
        components.report.ended(components.counters, seconds=seconds, reason=reason)
        loop.stopped = False
        return components.counters

    async def _end(self) -> None:
        await self._loop.books.end()

    def stop(self) -> None:
        """Start no more crawls; ``run`` returns when running crawls have ended and all is written."""
        self._loop.stopped = self._components.stopping = True
        self._components.pool.wake()

    async def apply(self, commands: Sequence[Mapping[str, Any]]) -> None:
        """Queue commands and apply them; returns when what they change is written."""
        await self._components.store.queue(commands)
        await self._loop.books.apply_queued()

    def share(self, others_wait: Callable[[], bool]) -> None:
        """Take turns with crawlers of others while they wait for pages."""
        self._loop.others_wait = others_wait

    def pass_turn(self) -> None:
        """Others had pages: the crawl comes first now, if it runs."""
        self._loop.own_turn = self._running and self._loop.crawling

    async def take_turn(self) -> None:
        """Wait until the crawl has had its turn, or does not use it."""
        for _ in range(_TURN):
            if not self._loop.own_turn or self.budget.ready(self.now()) <= 0:
                return
            self._components.pool.wake()
            await self._components.clock.sleep(_LOOK)
        self._loop.own_turn = False

    def call_on_settle(self, call: Callable[[float], None]) -> None:
        """Call something with the time whenever the loop has recorded what ended."""
        self._loop.on_settle.append(call)

    async def save_notes(self, notes: Mapping[str, Any]) -> None:
        """Write notes to the store."""
        await self._components.recorder.save_notes(notes)

    def close(self) -> None:
        """End the crawler's own threads; store and fetcher stay open."""
        self._components.close()

    def now(self) -> float:
        """The crawler's time, in seconds; it never goes back."""
        return self._components.clock.now()

    @property
    def components(self) -> Components:
        """What the crawler is made of, for those who change it while it runs."""
        return self._components

    @property
    def engine(self) -> Engine:
        """The engine that decides."""
        return self._components.engine

    @property
    def counters(self) -> Counters:
        """What was done so far."""
        return self._components.counters

    @property
    def budget(self) -> Budget:
        """The budget; its rate can be changed while the crawler runs."""
        return self._components.budget

    @property
    def audits(self) -> Audits:
        """The audits, ended and running."""
        return self._components.audits
