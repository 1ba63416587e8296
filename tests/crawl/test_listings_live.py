"""A sitemap and a feed polled by a crawl on loopback, by the real clock: truth from the log of the site's server."""

import asyncio
import time
from datetime import UTC, datetime

import pytest
from aiohttp import web

from recrawl.crawl.clock import SystemClock
from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.config.rules import Rule, Rules
from recrawl.crawl.polite.robots import Robots
from recrawl.crawl.run.commands import listing_command
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.run.opening.pages import add_pages, open_engine, save_pages
from recrawl.store import MemoryStore

from .servers import AGENT, fetching, serving
from .test_receivers_live import until

pytestmark = pytest.mark.slow

MAP, FEED = "/map.xml", "/feed.xml"
DAY = 2.0  # seconds that the crawl takes for a day: a listing is polled at least so often at first


class Site:
    """Pages, a sitemap that robots.txt names and a feed; ``log`` has each request with its version and status."""

    def __init__(self):
        self.log, self.origin, self.changed_at = [], "", {}
        self.listed = {MAP: ["/a", "/b"], FEED: ["/a"]}
        for path in ("/a", "/b"):
            self.changes(path)

    def changes(self, path):
        self.changed_at[path] = datetime.now(UTC).isoformat()

    def body(self, path):
        if path == "/robots.txt":
            return f"User-agent: *\nSitemap: {self.origin}{MAP}\n", "text/plain"
        if path not in self.listed:
            return f"<p>{path} as of {self.changed_at[path]}", "text/html"
        urls = [(f"{self.origin}{one}", self.changed_at[one]) for one in self.listed[path]]
        if path == MAP:
            rows = "".join(f"<url><loc>{url}</loc><lastmod>{at}</lastmod></url>" for url, at in urls)
            return f"<urlset>{rows}</urlset>", "application/xml"
        rows = "".join(f"<entry><link href='{url}'/><updated>{at}</updated></entry>" for url, at in urls)
        return f"<feed>{rows}</feed>", "application/atom+xml"

    async def answer(self, request):
        text, kind = self.body(request.path)
        tag = f'"{hash(text)}"'
        same = request.headers.get("If-None-Match") == tag
        self.log.append((request.path, text, 304 if same else 200))
        if same:
            return web.Response(status=304, headers={"ETag": tag})
        return web.Response(text=text, content_type=kind, headers={"ETag": tag})

    def asked(self, path, *, after=0):
        """Places in the log of the requests of a path."""
        return [k for k, (asked, _, _) in enumerate(self.log) if asked == path and k >= after]

    def read(self, path, said, *, after=0):
        """Places in the log of answers of a listing that said something."""
        return [k for k in self.asked(path, after=after) if said in self.log[k][1] and self.log[k][2] == 200]


async def crawl(site, story):
    """Run a crawl that follows the site, and a story beside it."""
    store, clock = MemoryStore(), SystemClock()
    async with serving(site.answer) as origin, fetching(clock=clock) as fetcher:
        site.origin = origin
        engine = await open_engine(store, time.time(), budget=50.0, day=DAY, host_spacing=0.0, host_concurrency=4)
        rules = Rules([Rule(f"{origin}/*", discover=("sitemap", "feed"))])
        await save_pages(engine, store, add_pages(engine, rules, [f"{origin}/a", f"{origin}/b"], time.time()))
        await store.queue([listing_command(f"{origin}{FEED}", "feed")])
        options = CrawlOptions(rules=rules, commands_every=0.05, longest_sleep=0.1, longest_hint=0.0, feed_interval=0.0)
        crawler = Crawler(engine, store, fetcher, options, robots=Robots(fetcher, AGENT, clock), clock=clock)
        running = asyncio.ensure_future(crawler.run())
        try:
            await story()
        finally:
            crawler.stop()
            await running
            crawler.close()


def test_a_sitemap_and_a_feed_are_polled_while_pages_are_crawled():
    site = Site()

    async def story():
        await until(lambda: len(site.asked(MAP)) > 2 and len(site.asked(FEED)) > 2)
        statuses = [site.log[k][2] for path in (MAP, FEED) for k in site.asked(path)]
        assert (statuses.count(200), statuses.count(304)) == (2, len(statuses) - 2), "polls are conditional"
        for path, listing in (("/from-map", MAP), ("/from-feed", FEED)):
            moment = len(site.log)
            site.changes(path)
            site.listed[listing].append(path)
            await until(lambda path=path: site.asked(path))
            named = site.read(listing, path, after=moment)
            assert named, f"nothing but {listing} names it"
            assert named[0] < site.asked(path)[0]
        moment = len(site.log)
        site.changes("/a")
        moved = site.changed_at["/a"]
        await until(lambda: site.read(MAP, moved, after=moment) and site.read(FEED, moved, after=moment))
        polled = max(site.read(MAP, moved)[0], site.read(FEED, moved)[0])
        await until(lambda: site.asked("/a", after=polled))
        assert site.read("/a", moved), "the new version was fetched"

    asyncio.run(crawl(site, story))
    assert {path for path, _, _ in site.log} == {"/robots.txt", MAP, FEED, "/a", "/b", "/from-map", "/from-feed"}
