"""Pages that left their sitemaps and are gone at the server are reported, each once."""

import asyncio

import pytest

from crawl.driving import DAY, START
from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.http.memory import Answer, ManualClock
from recrawl.crawl.listings import dropped
from recrawl.crawl.listings.dropped import DroppedPages
from recrawl.crawl.listings.listing import Listing
from recrawl.crawl.listings.reading import Listed
from recrawl.crawl.listings.registry import Registry
from recrawl.crawl.listings.still_named import StillNamed
from recrawl.crawl.listings.table import Table, fingerprints
from recrawl.crawl.offload import Offload
from recrawl.store.protocol import Outcome

from .listing_site import HOST, MAP, World, urlset

TWO = f"{HOST}/two.xml"
PARTS = (f"{HOST}/part1.xml", f"{HOST}/part2.xml")
PAGES = [f"{HOST}/{k}" for k in range(12)]
GONE = PAGES[7]
GONE_AT = START + 0.8 * DAY


def page_leaves(robots, files):
    """A web in which one page leaves the server and all files at the same time; an index names parts."""

    def page(url, now):
        if url.endswith("/robots.txt"):
            return "User-agent: *\n" + "".join(f"Sitemap: {one}\n" for one in robots)
        if url in files:
            return urlset([(one, START) for one in PAGES if now < GONE_AT or one != GONE])
        if url == MAP:
            rows = "".join(f"<sitemap><loc>{one}</loc></sitemap>" for one in files)
            return Answer(f"<sitemapindex>{rows}</sitemapindex>", headers={"content-type": "application/xml"})
        return None if url == GONE and now >= GONE_AT else f"<p>{url}</p>"

    return page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("robots", "files"), [((MAP,), (MAP,)), ((MAP, TWO), (MAP, TWO)), ((MAP,), PARTS)], ids=["one", "two", "parts"]
)
def test_a_page_that_left_and_is_gone_is_reported_once(robots, files):
    world = World(page_leaves(robots, files), PAGES, budget=0.0004, delay=0.0)
    world.run(4 * DAY)
    assert [fields["url"] for name, fields in world.events if name == "dropped page gone"] == [GONE]
    note = world.store.notes("dropped")["dropped"]
    assert (note["n_gone"], note["gone"], note["waiting"]) == (1, [GONE], [])
    assert [event.url for event in world.store.events() if event.kind == "gone"] == [GONE]


# --- by hand ---------------------------------------------------------------------------------------------------------


class ByHand:
    """The listings of a crawl that does not run: polls and crawls end as a test says."""

    def __init__(self, *sitemaps):
        self.world = World(lambda url, now: None, PAGES, robots=False)
        self.crawler = self.world.crawler()
        self.polls, self.engine = self.crawler.components.polls, self.crawler.components.engine
        for url in sitemaps:
            self.polls.add(url, "sitemap")

    async def poll(self, url, names):
        """A sitemap is read that names these pages."""
        self.world.clock._now += 3600.0
        listing, body = self.polls.registry.get(url), urlset([(one, None) for one in names]).body
        headers = {"content-type": "application/xml"}
        await self.polls._take_in(listing, Fetched(url, url, 200, 0.0, 0.0, headers, body.encode()))
        self.polls._still_named.ended(listing)

    def crawl(self, *, gone):
        """The page is crawled."""
        self.world.clock._now += 3600.0
        now = self.world.clock.now()
        self.engine.record(self.engine.id([GONE]), now, changed=[False], gone=[gone])
        self.polls.crawled([Outcome(GONE, now, changed=None if gone else False, gone=gone)])

    @property
    def reported(self):
        """How often the page was reported."""
        found = [fields["url"] for name, fields in self.world.events if name == "dropped page gone"]
        assert found == [GONE] * self.polls.dropped.n_gone
        return len(found)


def by_hand(test, *sitemaps):
    crawl = ByHand(*sitemaps)
    asyncio.run(test(crawl))
    crawl.crawler.close()


OTHERS = [url for url in PAGES if url != GONE]


@pytest.mark.parametrize("known_gone", [False, True])
def test_sitemaps_that_a_page_leaves_one_after_the_other(known_gone):
    async def test(crawl):
        for url in (MAP, TWO):
            await crawl.poll(url, PAGES)
        await crawl.poll(MAP, OTHERS)
        crawl.crawl(gone=known_gone)
        assert crawl.reported == 0, "the other one names it"
        await crawl.poll(TWO, OTHERS)
        crawl.crawl(gone=True)
        assert crawl.reported == 1

    by_hand(test, MAP, TWO)


def test_a_page_is_reported_again_only_if_it_was_there_meanwhile():
    async def test(crawl):
        await crawl.poll(MAP, PAGES)
        for _ in range(3):
            await crawl.poll(MAP, OTHERS)
            crawl.crawl(gone=True)
            await crawl.poll(MAP, PAGES)
        assert crawl.reported == 1, "it was listed again, but not there"
        crawl.crawl(gone=False)
        await crawl.poll(MAP, OTHERS)
        crawl.crawl(gone=True)
        assert crawl.reported == 2

    by_hand(test, MAP)


# --- tables ----------------------------------------------------------------------------------------------------------


def test_what_is_remembered_is_bounded_and_survives_a_restart(monkeypatch):
    monkeypatch.setattr(dropped, "_MOST", 10)
    pages, urls = DroppedPages(), [f"{HOST}/{k}" for k in range(30)]
    pages.add(urls)
    assert [pages.settled(url, gone=True) for url in urls] == [False] * 20 + [True] * 10
    pages.add(urls[:25])
    pages.settled(urls[25], gone=False)
    (note,) = pages.pending_notes().values()
    assert [len(note[name]) for name in ("waiting", "reported")] == [10, 9]
    after = DroppedPages()
    after.restore({DroppedPages.NOTE: note})
    after.add(urls[24:26])
    assert [after.settled(url, gone=True) for url in urls[24:26]] == [False, True]
    assert after.n_gone == 11


def test_sitemaps_that_are_polled_at_the_same_time_know_what_the_other_left_out():
    registry, url = Registry(), f"{HOST}/7"
    one, two = (registry.add(Listing(name, n_entries=1)) for name in (MAP, TWO))
    packed, gone = Table.of([Listed(url)]).pack(), fingerprints([url])

    async def entries(name):
        return packed

    async def main():
        named = StillNamed(registry, entries, Offload(ManualClock(START)))
        assert await named.left_out(one, gone, [url]) == []
        assert await named.left_out(two, gone, [url]) == [url], "the table of the first is not stored yet"
        named.ended(one)
        assert await named.left_out(two, gone, [url]) == []
        one.failed("http-404", START)
        assert await named.left_out(two, gone, [url]) == [url], "what it named is not known any more"

    asyncio.run(main())
