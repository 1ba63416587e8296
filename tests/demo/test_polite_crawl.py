"""Politeness of the crawler as the server sees it, on sockets and over a restart: the short form of the experiment."""

import asyncio

import pytest

from recrawl.crawl.clock import SystemClock
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.http.fetcher import HttpFetcher
from recrawl.crawl.polite.robots import Robots
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.run.opening.pages import add_pages, open_engine
from recrawl.demo.politeness import manners
from recrawl.demo.resolver import LoopbackResolver
from recrawl.demo.server import DemoServer
from recrawl.demo.web import DemoWeb
from recrawl.demo.world import Site, draw_world
from recrawl.store import SqliteStore

pytestmark = pytest.mark.slow

AGENT, DELAY = "recrawl-test/1", 0.05
SITES = tuple(
    Site(f"h{k}", 10, 5.0, **({}, {"latency": 0.02}, {"crawl_delay": 0.2}, {"failing": 0.1})[k % 4]) for k in range(12)
)
SETTINGS = {"day": 24.0, "sources": 0, "host_spacing": DELAY, "host_concurrency": 1}


async def live(web, clock, path, n):
    """One life of a crawler, until the server has seen n more requests."""
    goal = len(web.log) + n
    store = SqliteStore(path, keep=0)
    fetcher = HttpFetcher(AGENT, allow_private=True, resolver=LoopbackResolver(), clock=clock)
    engine = await open_engine(store, clock.now(), budget=150.0, **SETTINGS)
    if not len(engine):
        add_pages(engine, Rules(), web.urls + web.private_urls, clock.now())
        await store.save(rows=engine.rows())
    crawler = Crawler(engine, store, fetcher, robots=Robots(fetcher, AGENT, clock), clock=clock)
    running = asyncio.create_task(crawler.run())
    while len(web.log) < goal and not running.done():
        await asyncio.sleep(0.02)
    crawler.stop()
    await running
    crawler.close()
    await fetcher.close()
    await store.close()


def test_no_rule_is_broken_over_a_restart(tmp_path):
    async def run():
        clock = SystemClock()
        web = DemoWeb(draw_world(1, 60.0, SITES), clock)
        async with DemoServer(web):
            for _ in range(2):
                await live(web, clock, tmp_path / "crawl.db", 150)
        return web

    web = asyncio.run(run())
    delay = {site.host: max(DELAY, site.crawl_delay or 0.0) for site in SITES}
    found = manners(web.log, delay)
    assert found.requests >= 300
    assert found.hosts == len(SITES)
    assert found.is_polite, found
