"""Crawls of a web in memory by a clock moved by hand, for tests."""

import asyncio
from copy import deepcopy
from threading import Lock

import numpy as np

from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.http.memory import ManualClock, MemoryWeb
from recrawl.crawl.polite.budget import Budget
from recrawl.crawl.polite.robots import Robots
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.run.opening.pages import add_pages, open_engine, save_pages
from recrawl.store import BlockingStore, MemoryStore

START, DAY = 1.7e9, 86400.0
AGENT = "recrawl/1 (+test)"
SELDOM = {"commands_every": 600.0, "notes_every": 600.0, "longest_sleep": 600.0}  # a crawl that need not wake up
BATCH = 8.0  # crawls that are committed together, unless a test says otherwise
URLS = [f"https://h{k % 10}.example/{k}" for k in range(200)]


def changing(url, now):
    """Page k changes every (k % 50 + 1)·20 minutes, at a phase of its own."""
    if url.endswith("/robots.txt"):
        return None
    k = int(url.rsplit("/", 1)[1])
    return f"<p>page {k}: {int((now + 37 * k) / (1200.0 * (k % 50 + 1)))}</p>"


class World:
    """A web, a clock and a store that outlive the crawls on them."""

    def __init__(
        self,
        page,
        urls=(),
        *,
        store=None,
        budget=1.0,
        delay=1.0,
        rules=None,
        robots=True,
        least=0.0,
        choices=None,
        **options,
    ):
        self.clock = ManualClock(START)
        self.web = MemoryWeb(page, self.clock, max_redirects=0)
        self.store = store if isinstance(store, BlockingStore) else BlockingStore(store or MemoryStore())
        self.budget, self.delay, self.rules, self.options = budget, delay, rules or Rules(), options
        self.least = least  # min_change_probability: by default static pages are fetched again and again
        self.choices = choices or {}  # how pages are chosen: settings of the engine
        self.robots = Robots(self.web, AGENT, self.clock) if robots else None
        self.events, self.engine = [], None
        if len(urls):
            engine = self.opened()
            new = add_pages(engine, self.rules, list(urls), self.clock.now())
            self.store.run(save_pages(engine, self.store.store, new))

    def copied(self):
        """The same world at the same time with a store of its own: many tests share one long crawl."""
        mine = self.store.store
        store = deepcopy(mine, {id(mine._events._mutex): Lock()})  # a lock cannot be copied
        other = World(self.web._page, store=store, budget=self.budget, delay=self.delay, rules=self.rules)
        other.options, other.least, other.choices = self.options, self.least, self.choices
        other.clock._now = self.clock.now()
        return other

    def opened(self):
        settings = {"budget": self.budget, "host_spacing": self.delay, "host_concurrency": 1}
        settings |= {"min_change_probability": self.least, **self.choices}
        return self.store.run(open_engine(self.store.store, self.clock.now(), rules=self.rules, **settings))

    def crawler(self, **options):
        self.engine = self.opened()
        batch = {"commit_delay": BATCH / self.budget} if self.budget else {}
        chosen = {"rules": self.rules, **SELDOM, **batch, **self.options, **options}
        if "hours" in chosen:
            chosen["budget"] = Budget(self.budget, self.clock.now(), hours=chosen.pop("hours"))
        robots = chosen.pop("robots", self.robots)
        hear = lambda name, fields: self.events.append((name, fields))  # noqa: E731
        crawl = CrawlOptions(on_event=hear, **chosen)
        crawler = Crawler(self.engine, self.store.store, self.web, crawl, robots=robots, clock=self.clock)
        crawler.components.not_modified._rng.seed(0)  # which pages are fetched in full
        return crawler

    def run(self, seconds=None, *, once=False, n=None, **options):
        """One run from start to end; its counts."""
        crawler = self.crawler(**options)
        until = None if seconds is None else self.clock.now() + seconds
        try:
            return asyncio.run(self.clock.drive(crawler.run(until, once=once, n=n)))
        finally:
            crawler.close()

    def killed_after(self, seconds, **options):
        """A run that is dropped with everything in flight: what was not committed by then is gone."""
        crawler = self.crawler(**options)

        async def main():
            task = asyncio.ensure_future(crawler.run())
            await self.clock.advance(seconds)
            crawler._end = _nothing
            for one in (task, *crawler._components.pool._crawls):
                one.cancel()
            await asyncio.gather(task, *crawler._components.pool._crawls, return_exceptions=True)

        asyncio.run(main())
        crawler.close()

    def asked(self, path=None):
        """Times of requests, all or those of a path."""
        return np.array([at for at, url in self.web.requests if path is None or url.endswith(path)])


async def _nothing():
    """Instead of a clean end."""


def gaps_by_host(requests):
    """The smallest gap between two requests to each host."""
    from recrawl.engine.names.addresses import host_of

    hosts = {}
    for at, url in requests:
        hosts.setdefault(host_of(url), []).append(at)
    return {host: float(np.diff(sorted(times)).min()) for host, times in hosts.items() if len(times) > 1}


def largest_share(times, budget, restarts=()):
    """The largest share that any window has of what it may see: budget·(W + 1 + restarts in it)."""
    times = np.sort(times)
    starts = np.searchsorted(np.sort(restarts), times)
    worst = 0.0
    for i in range(len(times)):
        allowed = budget * (times[i:] - times[i] + 1.0 + starts[i:] - starts[i])
        worst = max(worst, float((np.arange(1, len(times) - i + 1) / allowed).max()))
    return worst
