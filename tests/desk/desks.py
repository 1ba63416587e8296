"""Desks on a manual clock, for tests."""

import asyncio

from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.http.memory import ManualClock, MemoryWeb
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.run.opening.pages import open_engine
from recrawl.desk import Desk, NewPage
from recrawl.store import MemoryStore

START = 1.7e9


class DeskWorld:
    """A store and a clock that outlive the desks on them."""

    def __init__(self, store=None, *, budget=1000.0, delay=0.0, concurrency=None, rules=None, **options):
        self.clock, self.store = ManualClock(START), store or MemoryStore()
        self.budget, self.delay, self.concurrency = budget, delay, concurrency
        self.rules, self.options = rules or Rules(), options
        self.web = MemoryWeb(lambda url, now: None, self.clock)
        self.desk = self.crawler = None

    async def open(self, urls=()):
        """A new desk, as after a restart; URLs are added to it."""
        settings = {"budget": self.budget, "host_spacing": self.delay, "host_concurrency": self.concurrency}
        settings |= {"min_change_probability": 0.0}
        engine = await open_engine(self.store, self.clock.now(), rules=self.rules, **settings)
        options = CrawlOptions(rules=self.rules, **self.options)
        self.crawler = Crawler(engine, self.store, self.web, options, clock=self.clock)
        self.desk = Desk(self.crawler)
        await self.desk.load()
        self.crawler.budget.begin(self.clock.now())
        if urls:
            await self.desk.add([NewPage(url) for url in urls])
        self.clock._now += 3.0  # what an earlier run may have spent is over
        return self.desk

    async def listed(self):
        """All outcomes that are stored."""
        return [outcome async for outcome in self.store.observations()]


def on_desk(test, urls=(), **options):
    """Run a test with a world that has a desk."""

    async def run():
        world = DeskWorld(**options)
        await world.open(urls)
        return await test(world)

    return asyncio.run(run())
