"""Notices: the notifications of a worker's settings, while the worker has the lease for them."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from recrawl.cluster.notices.book import NoticeBook
from recrawl.cluster.notices.events import AllEvents
from recrawl.cluster.notices.rule import LOOK, RuleNotices
from recrawl.cluster.ownership.gate import Gate
from recrawl.cluster.ownership.leases import Held
from recrawl.cluster.ownership.sessions import Connections
from recrawl.cluster.reading import ShardReader
from recrawl.crawl.clock import Clock
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.notifiers import sender_of
from recrawl.errors import RecrawlError
from recrawl.logs import event

log = logging.getLogger(__name__)

_LAST = 15.0  # seconds that notifications have when a worker ends


class Notices:
    """Started with a lease, renewed with each round of the keeper, ended when the lease is another's."""

    def __init__(self, connections: Connections, settings: Settings, clock: Clock, held: Held) -> None:
        self.gate, self._settings, self._clock = Gate(held), settings, clock
        self._book = NoticeBook(connections.writers[0], self.gate)
        self._events = AllEvents(ShardReader(connections.cluster, connections))
        self._rules: dict[str, RuleNotices] = {}
        self._over = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    def renew(self, held: Held) -> None:
        """The lease goes on."""
        self.gate.held = held
        self.gate.renewed()

    async def _run(self) -> None:
        """Work until the end; a database that is away is asked again."""
        while not self._over.is_set():
            try:
                await self._open()
                await asyncio.gather(*(rule.run(self._over) for rule in self._rules.values()))
                await self._over.wait()
            except RecrawlError as problem:
                event(log, logging.WARNING, "notices.interrupted", error=" ".join(str(problem).split()))
            finally:
                await self._shut()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._over.wait()

    async def _open(self) -> None:
        known = await self._book.read()
        for rule in self._settings.notifications():
            sender = sender_of(rule, self._settings)
            one = RuleNotices(rule, sender, self._events, self._book, self.gate, self._clock)
            self._rules[one.notifier.name] = one
            await one.begin(known.get(one.notifier.name))
        await self._book.keep_only(self._rules)

    async def _shut(self) -> None:
        for rule in self._rules.values():
            await rule.notifier.close()
        self._rules = {}

    async def finish(self) -> None:
        """Send what is left, without retries, for a short time."""
        await self.end()
        with suppress(RecrawlError, TimeoutError):
            async with asyncio.timeout(_LAST):
                await self._open()
                for rule in self._rules.values():
                    while await rule.step() == 0.0:
                        pass
        await self._shut()

    async def end(self, *, lost: bool = False) -> None:
        """Begin no further message; where the lease is ``lost``, break off what is being sent."""
        self._over.set()
        if lost:
            self.gate.lost = True
            self.gate.end_requests()
        await asyncio.wait({self._task}, timeout=0.0 if lost else _LAST)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
