"""Feeds as pages: items are read, those that rolled off are noticed, and polls come in time from then on."""

import asyncio
import math

import numpy as np
import pytest
from aiohttp import web

from recrawl.crawl.config.options import CrawlOptions
from recrawl.crawl.config.rules import Rule, Rules
from recrawl.crawl.feeds.polling import HOPELESS, PREFIX, Feed, dated_rate, longest_interval, polled
from recrawl.crawl.formats.feed_items import read_feed
from recrawl.crawl.http.memory import Answer, ManualClock
from recrawl.crawl.run.crawler import Crawler
from recrawl.crawl.run.opening.pages import add_pages, open_engine, save_pages
from recrawl.store import BlockingStore, MemoryStore, SqliteStore

from .driving import START, World
from .servers import Held, fetching, serving

HOUR, DAY = 3600.0, 86400.0


def rss(ids, dates=None):
    dates = dates or {}
    items = "".join(
        f"<item><guid>{k}</guid><title>item {k}</title>{f'<pubDate>{dates[k]}</pubDate>' if k in dates else ''}</item>"
        for k in ids
    )
    return f"<rss version='2.0'><channel><title>f</title>{items}</channel></rss>".encode()


def items(*ids):
    return read_feed(rss(ids))


# --- reading -------------------------------------------------------------------------------------------------------


def test_rss_atom_and_rdf_are_read():
    atom = (
        b"<feed xmlns='http://www.w3.org/2005/Atom'><id>f</id><entry><id>1</id><title>a</title>"
        b"<published>1970-01-02T00:00:00Z</published><updated>1980-01-01</updated>"
        b"<content type='xhtml'><div>b <b>c</b></div></content></entry></feed>"
    )
    (item,) = read_feed(atom)
    assert (item.text, item.published) == ("a\nb c", DAY)
    rdf = (
        b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'><channel/>"
        b"<item rdf:about='u1'><title>a</title></item><item rdf:about='u2'><title>a</title></item></rdf:RDF>"
    )
    assert len({item.id for item in read_feed(rdf)}) == 2
    assert [item.published for item in read_feed(rss([1], {1: "Fri, 02 Jan 1970 00:00:00 GMT"}))] == [DAY]


def test_items_without_an_id_are_known_by_link_or_title():
    one, other = read_feed(
        b"<rss><item><link>a</link><title>t</title></item><item><link>b</link><title>t</title></item></rss>"
    )
    assert one.id != other.id
    assert (
        len({item.id for item in read_feed(b"<rss><item><title>t</title></item><item><title>u</title></item></rss>")})
        == 2
    )


@pytest.mark.parametrize(
    "body", [b"", b"<html></html>", b"{}", b"\x00", b"<a>" * 10_000, b"<!DOCTYPE rss [<!ENTITY x 'y'>"]
)
def test_what_is_no_feed(body):
    assert read_feed(body) is None


def test_a_feed_that_breaks_off_has_the_items_before():
    assert len(read_feed(rss(range(10))[:-60])) >= 7
    assert read_feed(b"<rss><channel>") == []


def test_entities_are_not_resolved():
    bomb = b"<!DOCTYPE rss [<!ENTITY a 'xxxxxxxxxx'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'>]>"
    bomb += b"<rss><item><title>&b;&b;</title></item></rss>"
    assert all("xxxxxxxxxx" not in item.text for item in read_feed(bomb) or [])


# --- what follows --------------------------------------------------------------------------------------------------


def test_the_longest_interval_keeps_overlap_as_often_as_it_says():
    """By drawing: of feeds polled at that interval, one in a hundred has nothing left of the poll before."""
    rng = np.random.default_rng(0)
    for length, rate in ((1, 2.0), (10, 0.3), (50, 7.0)):
        arrivals = rng.poisson(rate * longest_interval(length, rate), 200_000)
        assert (arrivals >= length).mean() == pytest.approx(0.01, abs=0.0015)


def test_items_that_rolled_off_are_noticed():
    feed, rolled = polled(None, items(3, 2, 1), 0.0, 300.0)
    assert (rolled, feed.rolled) == (False, 0)
    feed, rolled = polled(feed, items(5, 4, 3), HOUR, 300.0)
    assert not rolled
    feed, rolled = polled(feed, items(8, 7, 6), 2 * HOUR, 300.0)
    assert rolled
    assert (feed.rolled, feed.rolled_in_row) == (1, 1)
    assert feed.interval < HOUR
    feed, rolled = polled(feed, [], 3 * HOUR, 300.0)
    assert not rolled, "an empty feed has lost nothing that it shows"
    feed, rolled = polled(feed, items(8, 7, 6), 4 * HOUR, 300.0)
    assert not rolled


def test_dates_tell_the_rate_at_the_first_poll():
    found = [item._replace(published=START - k * HOUR) for k, item in enumerate(items(*range(20)))]
    assert dated_rate(found, START) == pytest.approx(1 / HOUR)
    feed, _ = polled(None, found, START, 300.0)
    assert feed.interval == pytest.approx(longest_interval(20, 1 / HOUR))
    quick = [item._replace(published=START - k * (60.0 if k < 10 else HOUR)) for k, item in enumerate(found)]
    assert dated_rate(quick, START) > 10 / HOUR, "lately they came faster"
    assert dated_rate([item._replace(published=START + 9 * DAY) for item in found], START) == 0.0
    assert dated_rate(items(1, 2, 3, 4, 5), START) == 0.0


def test_a_feed_that_cannot_be_kept_up_with_is_not_hurried_for_ever():
    feed, now = polled(None, items(0), 0.0, 300.0)[0], 0.0
    for k in range(1, HOPELESS):
        now += 300.0
        feed, _ = polled(feed, items(k), now, 300.0)
        assert feed.interval == 300.0
    feed, _ = polled(feed, items(99), now + 300.0, 300.0)
    assert feed.interval is None
    assert feed.rolled == HOPELESS


def test_a_feed_is_never_hurried_below_the_shortest_or_at_all():
    found = [item._replace(published=START - k) for k, item in enumerate(items(*range(10)))]
    assert polled(None, found, START, 300.0)[0].interval == 300.0
    assert polled(None, found, START, 0.0)[0].interval is None


def test_feeds_go_to_notes_and_back():
    feed, _ = polled(polled(None, items(3, 2, 1), 0.0, 300.0)[0], items(8, 7, 6), HOUR, 300.0)
    assert Feed.of_note(feed.as_note()) == feed


# --- the crawler ---------------------------------------------------------------------------------------------------

FEED, PAGES = "https://f.example/feed", [f"https://p{k}.example/" for k in range(40)]
EACH = 400.0  # seconds between two items


def shown(now, length=10, each=EACH):
    """The newest items of a feed that gets one every few minutes."""
    newest = int((now - START) / each) + 1000
    return range(newest, newest - length, -1)


def world_of_feed(seen, store=None):
    def show(url, now):
        if url != FEED:
            return f"<p>{int((now + len(url)) / 4000.0)}"
        seen.append((now, tuple(shown(now))))
        return Answer(rss(shown(now)), headers={"content-type": "application/rss+xml"})

    return World(show, [FEED, *PAGES], budget=1 / 200.0, robots=False, store=store, commands_every=900.0)


def missed(seen):
    """Items that were in no poll, from the first poll to the last."""
    polled_ids = {k for _, ids in seen for k in ids}
    return len(set(range(min(polled_ids), max(polled_ids) + 1)) - polled_ids)


@pytest.mark.slow
def test_polls_come_in_time():
    """The feed has one of 41 pages' share of a small budget; hurried, it is polled before ten items have come."""
    slow, quick = [], []
    world_of_feed(slow).run(DAY, feed_interval=0.0)
    hurried = world_of_feed(quick)
    counts = hurried.run(DAY)
    assert missed(slow) > 5, "without that, items are never seen"
    late = [at for at, _ in quick if at > START + 0.5 * DAY]
    assert missed([one for one in quick if one[0] in late]) == 0
    assert np.diff(late).max() < 10 * EACH
    note = hurried.store.notes(PREFIX)[PREFIX + FEED]
    assert note["interval"] <= longest_interval(10, 0.8 / EACH)
    assert counts.rolled_off == note["rolled"] == hurried.store.recent(0.0)["rolled_off"]


@pytest.mark.slow
def test_a_restart_goes_on_in_time(tmp_path):
    seen = []
    store = BlockingStore(SqliteStore(tmp_path / "a.db"))
    world = world_of_feed(seen, store)
    world.run(DAY)
    interval = store.notes(PREFIX)[PREFIX + FEED]["interval"]
    del seen[:]
    for _ in range(4):
        world.run(DAY / 8)
    assert np.diff([at for at, _ in seen]).max() < 1.5 * interval + 200.0
    assert missed(seen) == 0
    store.close()


def test_notes_of_feeds_go_with_their_pages(tmp_path):
    store = BlockingStore(SqliteStore(tmp_path / "a.db"))
    world = world_of_feed([], store)
    world.run(0.2 * DAY)
    assert store.notes(PREFIX)
    store.save(removed=[FEED])
    world.run(n=1)
    assert store.notes(PREFIX) == {}
    store.close()


@pytest.mark.slow
def test_a_rule_that_says_less_often_holds():
    seen = []
    world = world_of_feed(seen)
    world.rules = Rules([Rule(FEED, min_interval=2 * HOUR)])
    world.run(DAY / 2)
    assert np.diff([at for at, _ in seen]).min() >= 2 * HOUR


# --- over HTTP -----------------------------------------------------------------------------------------------------


class Newsroom:
    """A real server: a feed of eight items that gets a new one every so often, and pages that hardly change."""

    def __init__(self, each, clock):
        self.each, self.clock, self.polls = each, clock, []

    async def answer(self, request):
        if request.path != "/feed":
            return web.Response(text=f"<p>{request.path}", content_type="text/html")
        elapsed = self.clock.now() - START
        newest = int(elapsed / self.each) + 100
        self.polls.append((elapsed, range(newest, newest - 8, -1)))
        return web.Response(body=rss(self.polls[-1][1]), content_type="application/rss+xml")


async def crawl_newsroom(feed_interval, seconds, each=0.15, n_pages=60, budget=20.0):
    store, clock = MemoryStore(), ManualClock(START)
    room = Newsroom(each, clock)
    async with serving(room.answer) as origin, fetching(clock=clock) as fetcher:
        engine = await open_engine(store, clock.now(), budget=budget, host_spacing=0.0, host_concurrency=8)
        urls = [f"{origin}/feed", *(f"{origin}/{k}" for k in range(n_pages))]
        await save_pages(engine, store, add_pages(engine, Rules(), urls, clock.now()))
        options = CrawlOptions(feed_interval=feed_interval)
        crawler = Crawler(engine, store, Held(fetcher, clock), options, clock=clock)
        try:
            counts = await clock.drive(crawler.run(clock.now() + seconds))
        finally:
            crawler.close()
    return room, counts, BlockingStore(store)


@pytest.mark.slow
def test_items_are_no_longer_missed_over_http():
    """On real sockets, by a clock that stands still while a fetch is on its way."""
    before, _, _ = asyncio.run(crawl_newsroom(0.0, 12.0))
    after, counts, store = asyncio.run(crawl_newsroom(0.05, 12.0))
    settled = [poll for poll in after.polls if poll[0] > 5.0]
    assert missed(before.polls) > 0, "polled as its changes alone ask for, it loses items"
    assert missed(settled) == 0
    assert len(settled) > 4
    (note,) = store.notes(PREFIX).values()
    assert 0.05 <= note["interval"] < math.inf
    assert counts.rolled_off == store.recent(0.0)["rolled_off"]
