"""Listings over real sockets, by a clock that stands still while a fetch is on its way; truth is the server's log."""

import asyncio
import gzip
import tracemalloc

import numpy as np
import pytest
from aiohttp import web

from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.config.rules import Rules
from recrawl.crawl.http.memory import ManualClock
from recrawl.crawl.listings.reading import read_listing
from recrawl.crawl.listings.streaming import HEAD, ListingBody
from recrawl.crawl.polite.robots import Robots
from recrawl.crawl.run.commands import listing_command
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.run.opening.pages import add_pages, open_engine, save_pages
from recrawl.store import BlockingStore, MemoryStore

from .driving import DAY, START
from .listing_site import stamp
from .servers import AGENT, Held, fetching, serving

pytestmark = pytest.mark.slow


class Server:
    """Ten pages, robots.txt, and a packed sitemap with an ETag whose date of page 3 moves after two days."""

    def __init__(self, clock):
        self.clock, self.log, self.origin = clock, [], ""

    async def answer(self, request):
        now = self.clock.now()
        late = now > START + 2 * DAY
        if request.path == "/sitemap.xml.gz":
            tag = f'"{late}"'
            same = request.headers.get("If-None-Match") == tag
            self.log.append((now - START, request.path, 304 if same else 200))
            dates = [START + (2 * DAY if late and k == 3 else 0.0) for k in range(10)]
            rows = "".join(
                f"<url><loc>{self.origin}/{k}</loc><lastmod>{stamp(at)}</lastmod></url>" for k, at in enumerate(dates)
            )
            body = gzip.compress(f"<urlset>{rows}</urlset>".encode())
            return web.Response(status=304 if same else 200, body=b"" if same else body, headers={"ETag": tag})
        self.log.append((now - START, request.path, 200))
        if request.path == "/robots.txt":
            return web.Response(text=f"User-agent: *\nSitemap: {self.origin}/sitemap.xml.gz\n")
        return web.Response(text=f"<p>{request.path} {late and request.path == '/3'}", content_type="text/html")

    def asked(self, path):
        return [(at, status) for at, asked, status in self.log if asked == path]


class FeedServer(Server):
    """Pages that change every two days, one after the other, and a feed whose `updated` says when."""

    def changed_at(self, page, now):
        phase = START - 2 * DAY + page * DAY / 5
        return phase + (now - phase) // (2 * DAY) * 2 * DAY

    async def answer(self, request):
        now = self.clock.now()
        self.log.append((now - START, request.path, 200))
        if request.path == "/robots.txt":
            return web.Response(text="User-agent: *\n")
        if request.path == "/feed":
            entries = "".join(
                f"<entry><link href='{self.origin}/{k}'/><updated>{stamp(self.changed_at(k, now))}</updated></entry>"
                for k in range(10)
            )
            return web.Response(text=f"<feed>{entries}</feed>", content_type="application/atom+xml")
        return web.Response(text=f"<p>{self.changed_at(int(request.path[1:]), now)}", content_type="text/html")

    def delays(self):
        """Seconds from each change of days 4 to 8 to the next request of its page."""
        found = []
        for page in range(10):
            asked = np.array([START + at for at, _ in self.asked(f"/{page}")])
            times = np.unique([self.changed_at(page, START + at) for at in np.arange(4 * DAY, 8 * DAY, DAY / 2)])
            found += [asked[asked >= at].min() - at for at in times]
        return np.array(found)


async def crawl(days, *, listings=(), private=True, kind="sitemap", serves=Server):
    store, clock = MemoryStore(), ManualClock(START)
    server = serves(clock)
    async with serving(server.answer) as origin, fetching(clock=clock, allow_private=private) as fetcher:
        server.origin = origin
        held = Held(fetcher, clock)
        engine = await open_engine(store, clock.now(), budget=0.0006, host_spacing=0.0, host_concurrency=8)
        urls = [f"{origin}/{k}" for k in range(10)] if private else ["https://nowhere.invalid/"]
        await save_pages(engine, store, add_pages(engine, Rules(), urls, clock.now()))
        await store.queue([listing_command(url.replace("ORIGIN", origin), kind) for url in listings])
        options = CrawlOptions(commands_every=7200.0, notes_every=DAY, longest_sleep=7200.0, commit_delay=60.0)
        robots = Robots(held, AGENT, clock) if private else None
        crawler = Crawler(engine, store, held, options, robots=robots, clock=clock)
        try:
            counts = await clock.drive(crawler.run(clock.now() + days * DAY))
        finally:
            crawler.close()
    return server, counts, BlockingStore(store)


def test_a_packed_sitemap_is_polled_with_its_validator_and_its_dates_are_signals():
    server, counts, store = asyncio.run(crawl(5))
    polls = server.asked("/sitemap.xml.gz")
    assert len(polls) == counts.polls >= 4
    assert polls[0][1] == 200
    changed = [at for at, status in polls if status == 200][1:]
    assert len(changed) == 1, "all other polls are answered by 304"
    assert changed[0] > 2 * DAY
    (listing,) = store.listings()
    assert (listing.state["n_entries"], listing.state["n_signals"]) in ((10, 1), (10, 0))
    found = [outcome for outcome in store.observations() if outcome.changed]
    assert [outcome.url.rsplit("/", 1)[1] for outcome in found] == ["3"]
    assert listing.state["n_signals"] == (found[0].began_at - START > changed[0]), "unless a crawl came before"
    assert counts.requests == len(server.log)


def test_a_feed_whose_dates_move_brings_crawls_forward():
    runs = [asyncio.run(crawl(9, listings=some, kind="feed", serves=FeedServer)) for some in (["ORIGIN/feed"], [])]
    (feed, counts, store), (alone, without, _) = runs
    assert len(feed.asked("/feed")) == counts.polls > 10
    assert counts.requests == len(feed.log) <= without.requests + 2, "polls are part of the budget"
    (listing,) = store.listings()
    assert (listing.state["kind"], listing.state["n_entries"]) == ("feed", 10)
    assert listing.state["n_signals"] > 10
    assert feed.delays().mean() < 0.75 * alone.delays().mean()


def test_listings_at_private_addresses_are_refused():
    listings = ["ORIGIN/sitemap.xml.gz", "http://10.0.0.1/sitemap.xml", "http://[::1]/sitemap.xml"]
    server, counts, store = asyncio.run(crawl(2, listings=listings, private=False))
    assert server.log == []
    assert counts.polls >= 3
    assert {one.state["failure"] for one in store.listings()} == {"forbidden-address"}


# --- bodies parsed while they are read -------------------------------------------------------------------------------


def rows(n, width):
    """A sitemap of n pages in pieces, each entry as wide as asked for."""
    yield b"<?xml version='1.0'?><urlset>"
    for k in range(n):
        yield f"<url><loc>https://a.example/{k}</loc><!--{'x' * width}--></url>".encode()
    yield b"</urlset>"


async def streamed(pieces, kind="sitemap", headers=None, limit=1 << 20):
    """What a listing that a server sends in pieces comes to."""

    async def answer(request):
        response = web.StreamResponse(headers={"content-type": "application/xml", **(headers or {})})
        await response.prepare(request)
        try:
            for piece in pieces():
                await response.write(piece)
        except ConnectionError:
            pass
        return response

    body = ListingBody(kind, limit)
    async with serving(answer) as origin, fetching(allow_private=True) as fetcher:
        fetched = await fetcher.stream(f"{origin}/sitemap.xml", body)
    return fetched, body


def test_a_sitemap_beyond_the_limit_of_pages_is_parsed_while_it_is_read():
    """24 MB; what is kept are its 2,000 entries and its beginning."""
    tracemalloc.start()
    fetched, body = asyncio.run(streamed(lambda: rows(2000, 12_000)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert fetched.failure is None
    assert body.size > 24e6
    assert len(fetched.body) == HEAD
    found = body.reading()
    assert (len(found.pages), found.pages[-1].url, found.is_whole) == (2000, "https://a.example/1999", True)
    assert peak < 12e6


def test_what_is_no_sitemap_is_kept_whole_up_to_the_limit():
    page = [b"<html><title>t</title>" + b"<a href=/x>x</a>" * 1000]
    fetched, body = asyncio.run(streamed(lambda: page, headers={"content-type": "text/html"}))
    assert (fetched.body, body.reading()) == (page[0], None)
    assert read_listing(fetched, "listing").pages[0].url.endswith("/x")
    fetched, _ = asyncio.run(streamed(lambda: page * 100))
    assert fetched.failure == "too-large"


def test_packed_texts_are_parsed_and_a_sitemap_without_end_is_cut_off():
    packed = gzip.compress(b"".join(rows(1000, 50)))
    fetched, body = asyncio.run(streamed(lambda: [packed[:5000], packed[5000:]], headers={"content-encoding": "gzip"}))
    assert (fetched.failure, len(body.reading().pages)) == (None, 1000)
    lines = b"".join(b"https://a.example/%d\n" % k for k in range(500))
    fetched, body = asyncio.run(streamed(lambda: [gzip.compress(lines)]))
    reading = body.reading() or read_listing(fetched, "sitemap")
    assert len(reading.pages) == 500

    def endless():
        yield b"<urlset>" + b" " * 3000
        while True:
            yield b"<!--" + b"x" * 900_000 + b"-->"

    fetched, body = asyncio.run(streamed(endless))
    assert fetched.failure == "too-large"
    assert body.size <= body.limit
