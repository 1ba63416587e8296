"""Sitemaps as sources of pages: what is added by rule, what left, and bounds of memory and disk."""

import tracemalloc

import pytest

from crawl.driving import DAY, START
from recrawl.crawl.config.rules import Rule, Rules
from recrawl.crawl.http.memory import Answer
from recrawl.crawl.listings.discovery import Site
from recrawl.crawl.listings.listing import Listing
from recrawl.crawl.listings.parts import take_parts
from recrawl.crawl.listings.reading import Listed
from recrawl.crawl.listings.registry import Registry
from recrawl.crawl.run.commands import follow_command, listing_command
from recrawl.store.listings import StoredListing

from .listing_site import HOST, MAP, Site1, World, listing, polls, urlset

TABLES = ("_listings", "_of_host", "_entries", "_parts", "_named")  # of a registry


def known(world):
    return set(world.store.urls())


@pytest.mark.slow
def test_new_urls_of_a_sitemap_become_pages_by_rule_within_a_limit():
    site = Site1(12)
    site.listed |= {"https://b.example/x": START, f"{HOST}/logo.png": START}
    rules = Rules([Rule(f"{HOST}/*", discover=("sitemap",), discover_limit=4, importance=3.0)])
    world = World(site, site.urls[:1], budget=0.0006, delay=0.0, rules=rules)
    counters = world.run(0.9 * DAY - START % DAY if START % DAY < 0.5 * DAY else 0.4 * DAY)
    assert counters.discovered == 4
    assert known(world) == set(site.urls[:5])
    world.run(3.5 * DAY)
    assert known(world) == set(site.urls), "the others on later days, although the sitemap did not change"
    assert (world.store.load()["importance"] == 3.0).all()
    counts = world.store.notes("discovered")["discovered"]
    assert counts["elsewhere"] == {"sitemap": 1}


def test_without_a_rule_new_urls_are_only_counted():
    site = Site1(6)
    world = World(site, site.urls[:2], budget=0.0006, delay=0.0)
    world.run(2 * DAY)
    assert known(world) == set(site.urls[:2])
    assert world.store.notes("discovered")["discovered"]["elsewhere"] == {"sitemap": 4}


def test_a_site_is_followed_from_its_front_page_alone():
    feed = (
        "<rss><channel><item><link>https://docs.example.org/news</link></item>"
        "<item><link>https://other.example/</link></item></channel></rss>"
    )
    front = (
        "<link rel=alternate type='application/rss+xml' href=/feed.xml><a href=/guide>g</a><a href='https://x.example/'>x"
        "</a><a href=/big.zip>zip</a>"
    )
    pages = {
        "https://docs.example.org/": front,
        "https://docs.example.org/guide": "<a href=/guide/deep>deep</a>",
        "https://docs.example.org/feed.xml": Answer(feed, headers={"content-type": "application/rss+xml"}),
        "https://docs.example.org/sitemap.xml": urlset([("https://docs.example.org/listed", None)]),
    }

    def page(url, now):
        answer = pages.get(url)
        return f"<p>{url}" if answer is None and url.split("/")[-1] in ("deep", "news", "listed") else answer

    world = World(page, ["https://docs.example.org/"], budget=0.0006, delay=0.0)
    world.store.queue([follow_command(Site.of("https://docs.example.org/", 2.0))])
    world.run(3 * DAY)
    expected = {"", "guide", "guide/deep", "news", "listed"}
    assert known(world) == {f"https://docs.example.org/{path}" for path in expected}
    assert world.store.counts()["copies"] == 5
    assert listing(world, "https://docs.example.org/feed.xml").kind == "feed"


@pytest.mark.slow
def test_a_sitemap_that_invents_urls_costs_bounded_memory_and_disk():
    """Every poll names 60,000 URLs that no poll before named."""
    site = Site1(1)

    def invented(url, now):
        lines = "\n".join(f"{HOST}/{int(now)}/{k}" for k in range(60_000))
        return Answer(lines, headers={"content-type": "text/plain"})

    site.other[MAP] = invented
    rules = Rules([Rule("*", discover=("sitemap",), discover_limit=10)])
    world = World(site, site.urls, budget=0.0006, delay=0.0, rules=rules)
    world.run(2.5 * DAY)
    assert len(polls(world)) >= 2
    assert len(known(world)) <= 1 + 10 * 4
    assert len(world.store.listing_entries(MAP)) < 16 * 50_000 + 1000
    assert len(str(world.store.notes("discovered"))) < 10_000


@pytest.mark.full
def test_an_index_that_invents_a_million_urls_costs_bounded_memory_and_disk():
    """20 parts of 50,000 URLs each, which are others at each poll. Code that is compiled at first costs memory, too."""

    def inventing(n):
        def invented(url, now):
            lines = "\n".join(f"{url[:-4]}/{int(now)}/{k}" for k in range(n))
            return Answer(lines, headers={"content-type": "text/plain"})

        site = Site1(1)
        site.other = dict.fromkeys(parts, invented)
        site.other[MAP] = Answer(f"<sitemapindex>{rows}</sitemapindex>", headers={"content-type": "application/xml"})
        return World(site, site.urls, budget=0.002, delay=0.0)

    parts = [f"{HOST}/part-{k}.txt" for k in range(20)]
    rows = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in parts)
    inventing(5).run(3 * DAY)
    world = inventing(50_000)
    tracemalloc.start()
    world.run(3 * DAY)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert all(polls(world, url) for url in parts)
    sizes = [len(world.store.listing_entries(url)) for url in parts]
    assert sum(sizes) <= 20 * (16 * 50_000 + 1000), "16 bytes per entry of the last poll"
    assert peak < 100e6
    assert len(known(world)) == 1


@pytest.mark.slow
def test_listings_are_added_and_removed_while_a_crawl_runs():
    site = Site1(3, robots="User-agent: *\n")
    world = World(site, site.urls, budget=0.0006, delay=0.0)
    world.store.queue([listing_command(MAP, "sitemap")])
    world.run(DAY)
    assert listing(world).named_by == "add"
    assert len(polls(world)) >= 1
    world.store.queue([{"remove": [MAP]}])
    world.run(3 * DAY)
    assert listing(world) is None
    n = len(polls(world))
    world.run(3 * DAY)
    assert len(polls(world)) == n


def test_what_a_later_version_stored_is_read():
    stored = StoredListing(MAP, {**Listing(MAP).stored().state, "later": 1, "worth": {"gain": 2.0, "later": 3}})
    assert Listing.restore(stored).worth.gain == 2.0


def test_listings_of_a_host_and_in_all_are_bounded(monkeypatch):
    from recrawl.crawl.listings import registry

    monkeypatch.setattr(registry, "MOST_OF_HOST", 3)
    monkeypatch.setattr(registry, "ENTRIES_OF_HOST", 100)
    mine = registry.Registry()
    added = [mine.add(Listing(f"{HOST}/{k}.xml")) for k in range(5)]
    assert [one is not None for one in added] == [True, True, True, False, False]
    mine.counted(added[0], 80)
    assert [mine.room(one) for one in added[:2]] == [100, 20]
    mine.remove(added[0].url)
    assert mine.room(added[1]) == 100
    assert mine.pending[added[0].url] is None
    mine.named("b.example", [f"{HOST}/1.xml", f"{HOST}/new.xml"])
    assert mine.get(f"{HOST}/new.xml").names == ["b.example"]
    mine.named("b.example", [])
    assert mine.get(f"{HOST}/new.xml") is None, "only robots.txt named it"
    assert mine.get(f"{HOST}/1.xml").names == [], "it was added, too"


def test_parts_speak_for_the_hosts_that_their_index_speaks_for():
    part, other = f"{HOST}/part.xml", "https://b.example/x"
    mine = Registry()
    index = mine.add(Listing(MAP))
    take_parts(mine, index, [Listed(part, START)], START)
    assert not mine.get(part).speaks_for(other)
    mine.named("b.example", [MAP])
    assert mine.get(part).speaks_for(other)
    mine = restored(mine)
    mine.named("b.example", [MAP])
    assert mine.get(part).speaks_for(other), "robots.txt is read again"
    mine.named("b.example", [])
    assert (mine.get(MAP).names, mine.get(part).names) == ([], [])
    assert not mine.get(part).speaks_for(other)


def test_a_part_may_be_named_itself():
    part, other = f"{HOST}/part.xml", "https://b.example/x"
    mine = Registry()
    take_parts(mine, mine.add(Listing(MAP)), [Listed(part, START)], START)
    mine.named("b.example", [MAP, part])
    mine.named("b.example", [part])
    assert (mine.get(MAP).speaks_for(other), mine.get(part).speaks_for(other)) == (False, True)
    mine = restored(mine)
    take_parts(mine, mine.get(MAP), [Listed(part, START + 1)], START)
    assert mine.get(part).speaks_for(other)
    mine.named("b.example", [MAP])
    assert mine.get(part).speaks_for(other), "by its index"
    mine.named("b.example", [])
    assert not mine.get(part).speaks_for(other)


def restored(registry):
    """The registry of the next run."""
    after = Registry()
    after.restore(one.stored() for one in registry)
    return after


def test_nothing_is_kept_of_listings_that_were_removed():
    mine = Registry()
    for k in range(3):
        index = mine.add(Listing(f"https://h{k}.example/sitemap.xml"))
        mine.named(f"other{k}.example", [index.url])
        take_parts(mine, index, [Listed(f"https://h{k}.example/{n}.xml", START) for n in range(5)], START)
        for part in mine.parts(index.url):
            mine.counted(part, 10)
    for one in mine:
        mine.remove(one.url)
        mine.counted(one, 7)  # a poll of it ended later
    assert {name: len(table) for name, table in vars(mine).items() if name in TABLES} == dict.fromkeys(TABLES, 0)
    assert set(vars(mine)) == {*TABLES, "_day", "_queue", "pending"}, "no other table"
