"""A crawl of a web in memory that listens on a real socket, by a clock moved by hand."""

import asyncio
from contextlib import asynccontextmanager

from crawl.servers import AGENT
from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.http.fetcher import HttpFetcher, Limits
from recrawl.crawl.http.memory import MemoryWeb
from recrawl.crawl.polite.robots import Robots
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.run.opening.pages import add_pages, open_engine, save_pages
from recrawl.serve.app import Context, build_app
from recrawl.serve.server import HttpServer

SETTINGS = {"host_spacing": 1.0, "host_concurrency": 1, "sources": 4, "min_change_probability": 0.0}
RESTING = {"commands_every": 3600.0, "notes_every": 86400.0, "longest_sleep": 3600.0}


class Mixed:
    """Pages of a web in memory, forms by real HTTP."""

    def __init__(self, pages, http, clock):
        self._pages, self._http, self._clock = pages, http, clock

    async def fetch(self, url, **options):
        return await self._pages.fetch(url, **options)

    async def post(self, url, form):
        with self._clock.hold():
            return await self._http.post(url, form)

    async def close(self):
        await self._http.close()


class ListeningCrawl:
    """A crawl that listens; the clock moves by `after`."""

    def __init__(self, site, clock, store, budget=1 / 600):
        self.site, self.clock, self.store, self.budget = site, clock, store, budget
        self.memory = MemoryWeb(site, clock, max_redirects=0)

    async def after(self, seconds):
        """Let time pass, and let others do what they were asked for."""
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            await self.clock.advance(min(3600.0, end - self.clock.now()))
            await self.settled()
        await self.clock.advance(1.0)

    async def settled(self):
        """Others have done what they were asked for."""

    @property
    def components(self):
        return self.crawler.components

    def requests(self, url):
        """When a page was asked for."""
        return [at for at, asked in self.memory.requests if asked == url]

    async def copy(self, url):
        return (await self.store.copies([url]))[url]

    @asynccontextmanager
    async def running(self, urls=(), port=0, robots=False, private=True):
        """The crawl runs, and listens."""
        http = HttpFetcher(AGENT, allow_private=private, limits=Limits(total=60.0, redirects=0))
        engine = await open_engine(self.store, self.clock.now(), budget=self.budget, **SETTINGS)
        if urls:
            await save_pages(engine, self.store, add_pages(engine, Rules(), list(urls), self.clock.now()))
        options = CrawlOptions(callback_url=f"http://127.0.0.1:{port or 1}", **RESTING)
        rules = Robots(self.memory, AGENT, self.clock) if robots else None
        web = Mixed(self.memory, http, self.clock)
        self.crawler = Crawler(engine, self.store, web, options, robots=rules, clock=self.clock)
        parts = self.crawler.components
        await parts.load()
        context = Context(self.store, parts.inbox, parts.tokens, receivers=parts.receivers)
        server = HttpServer(build_app(context), f"127.0.0.1:{port}")
        self.port = int(server.url.rpartition(":")[2])
        self.url = self.crawler.components.receivers.websub.table.public_url = server.url
        await server.start()
        task = asyncio.ensure_future(self.crawler.run())
        try:
            yield self
        finally:
            self.crawler.stop()
            await self.clock.advance(10.0)
            await task
            await server.close()
            await http.close()
            self.crawler.close()
