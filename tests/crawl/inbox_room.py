"""An inbox of signals with its engine, store and clock, for tests."""

import asyncio

import numpy as np

from recrawl import Engine
from recrawl.crawl.http.memory import ManualClock
from recrawl.crawl.signals.inbox import Inbox, InboxOptions
from recrawl.crawl.signals.sorting import Signal
from recrawl.crawl.signals.sources import Source
from recrawl.errors import StoreError
from recrawl.store import MemoryStore

from .driving import START

URLS = [f"https://a.example/{k}" for k in range(20)]
CMS, FEED = Source("webhook", "cms"), Source("feed", "a.example")


class Counting(MemoryStore):
    """Counts the transactions that write signals; with ``broken`` it refuses them."""

    def __init__(self):
        super().__init__()
        self.writes, self.broken = 0, False

    async def save(self, outcomes=(), rows=None, **more):
        self.writes += bool(more.get("signals"))
        if self.broken and more.get("signals"):
            raise StoreError("broken")
        await asyncio.sleep(0)
        await super().save(outcomes, rows, **more)


class Room:
    """An inbox with its engine, store and clock; ``heard`` are the calls of the engine."""

    def __init__(self, store=None, *, sources=1, **options):
        self.clock, self.store = ManualClock(START), store or Counting()
        self.engine, self.heard, self.unknown = Engine(1.0, sources=sources, start=START), [], []
        ids = self.engine.add(URLS, START - 1000.0, fetched_at=START - 100.0)
        asyncio.run(self.store.save(rows=self.engine.rows(ids)))
        signal = self.engine.signal

        def hear(ids, now, *, source=0, changed_at=None):
            self.heard.append((source, np.atleast_1d(ids).tolist()))
            signal(ids, now, source=source, changed_at=changed_at)

        self.engine.signal = hear
        options.setdefault("on_unknown", lambda source, urls: self.unknown.append((source, urls)))
        self.inbox = Inbox(self.engine, self.store, self.clock, InboxOptions(**options))

    def take(self, *signals, whole=False):
        return asyncio.run(self.inbox.take(signals, whole=whole))

    def say(self, page=0, changed_at=None, resolution=0.0, source=CMS):
        return self.take(Signal(URLS[page], source, changed_at, resolution))

    def stored(self):
        return asyncio.run(self.store.signals())
