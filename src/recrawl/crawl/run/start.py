"""Starter: which crawls start now, as far as budget, slots, robots.txt and hosts allow."""

from __future__ import annotations

import asyncio
import math

import numpy as np

from recrawl.crawl.polite.unspent import HOSTS, NOTHING, PRICE, SLOTS, UNASKED, UNLIKELY
from recrawl.crawl.run.attempt import Attempts
from recrawl.crawl.run.opening.components import Components
from recrawl.engine.names.addresses import host_of
from recrawl.store.protocol import Outcome

RECALL_WAIT = 0.05  # seconds that a host waits whose robots.txt is being read from the store
SLOT_WAIT = 1.0  # seconds that a host waits for a slot

Pair = tuple[int, str]

_SOON = 1.0  # seconds: a crawl that the budget allows within this time is prepared


class Starter:
    """Starts crawls for audits and the crawls that are worth most; ``picking`` is False while only audits run."""

    def __init__(self, components: Components) -> None:
        self._components, self.attempts = components, Attempts(components)
        self._engine, self._recorder, self._audits = components.engine, components.recorder, components.audits
        self._budget, self._slots, self._unspent = components.budget, components.slots, components.unspent
        self.picking = True

    async def start(self, now: float, most: float) -> int:
        """Start at most ``most`` crawls; how many started."""
        ready = self._budget.ready(now)
        self._unspent.count(now, self._budget.used, self._budget.lapsed)
        if ready > 0:
            self._slots.make_room(now)
        n = int(min(ready, self._components.pool.free, most))
        if ready > 0 and self._components.pool.free <= 0:
            self._unspent.why = SLOTS
        if n <= 0:
            return 0
        started = await self._start_audits(now, n)
        started += await self._start_picked(now, n - started) if self.picking else 0
        self._audits.started(started)
        if started < n:
            self._unspent.why = self._why_idle()
        return started

    def count_others(self, now: float, waiting: bool) -> int:
        """Count what crawlers of others use of the budget, where only they crawl; no crawl starts here."""
        left = self._budget.ready(now)  # what was not used in time has lapsed
        if not waiting:
            self._unspent.why = UNASKED
        elif left > 0:
            self._unspent.why = self._why_idle()
        self._unspent.count(now, self._budget.used, self._budget.lapsed)
        return 0

    def _why_idle(self) -> str:
        """Why no further crawl starts although budget and slots are left."""
        stats = self._engine.stats
        held = PRICE if self._engine.price > 0.0 else UNLIKELY
        return HOSTS if stats["parked"] else held if stats["unlikely"] else NOTHING

    def next_at(self, now: float) -> float:
        """When the next crawl may start, as far as is known now."""
        if self._components.pool.free <= 0:
            return now + SLOT_WAIT  # slow crawls may have to be ended
        paid_at = self._budget.next_at(now)
        if paid_at > now + _SOON:
            return paid_at  # the engine is asked when a crawl could start
        picked_at = self._engine.next_at(now) if self.picking else math.inf
        return max(paid_at, min(picked_at, self._audits.next_at(now)))

    async def allowed(self, page: int, url: str, now: float) -> bool:
        """Whether robots.txt, if it was read, allows a page to be fetched; otherwise the page is deferred."""
        permission = await self._components.gate.check(url)
        if permission is None or permission.allowed:
            return True
        outcome = Outcome(url, now, failure="robots", requests=0)
        self._recorder.ended(page, outcome, None, permission.read_again_at)
        self._components.counters.set_aside += 1
        return False

    async def _start_audits(self, now: float, n: int) -> int:
        drawn = self._audits.next(self._audits.due(n, now), now)
        late = await self._components.gate.recall([url for _, url in drawn])
        for url in late:
            self._audits.retry(url)
        drawn = [pair for pair in drawn if pair[1] not in late]
        allowed = [pair for pair in drawn if await self.allowed(*pair, now)]
        for url in {url for _, url in drawn} - {url for _, url in allowed}:
            self._audits.forbidden(url, now)
        ready = [pair for pair in allowed if self._components.limiter.reserve(pair[1])]
        for url in {url for _, url in allowed} - {url for _, url in ready}:
            self._audits.retry(url)
        return self._begin(ready, now, audit=True)

    async def _start_picked(self, now: float, n: int) -> int:
        for host in self._slots.admitted(now):
            self._components.limiter.resume(host)
        ids = self._engine.pick(now, n).tolist() if n > 0 else []
        if not ids:
            return 0
        if self._engine.copied(np.array(ids)).all():  # a page without a copy is worth a crawl at any price
            self._recorder.picked(self._engine.threshold)
        pairs, waiting = self._slots.share(list(zip(ids, self._engine.url(ids), strict=True)), now)
        self._put_back(waiting, now, SLOT_WAIT)
        late = await self._components.gate.recall([url for _, url in pairs])
        self._put_back([pair for pair in pairs if pair[1] in late], now, RECALL_WAIT)
        pairs = [pair for pair in pairs if pair[1] not in late]
        allowed = [pair for pair in pairs if await self.allowed(*pair, now)]
        ready = [pair for pair in allowed if self._components.limiter.reserve(pair[1])]
        if len(ready) < len(allowed):
            self._engine.release([page for page, url in allowed if (page, url) not in ready], now)
        return self._begin(ready, now)

    def _put_back(self, pairs: list[Pair], now: float, seconds: float) -> None:
        """Release picked pages and pick none of their hosts for some seconds."""
        if pairs:
            self._engine.release([page for page, _ in pairs], now)
        for host in {host_of(url) for _, url in pairs}:
            self._components.limiter.put_off(host, now + seconds)

    def _begin(self, pairs: list[Pair], now: float, *, audit: bool = False) -> int:
        """Start crawls; they wait for their copies themselves, so that the loop does not wait for the store."""
        if not pairs:
            return 0
        self._budget.take(now, len(pairs))
        copies = asyncio.create_task(self._recorder.copies([url for _, url in pairs]))  # noqa: RUF006 (crawls hold it)
        for page, url in pairs:
            self.attempts.begin(page, url, copies, audit=audit)
        return len(pairs)
