"""Listings polled by a crawl of the web in memory: signals, discovery, politeness, restarts."""

import asyncio
import tracemalloc
from datetime import UTC, datetime

import numpy as np
import pytest

from crawl.driving import DAY, START
from crawl.driving import World as AnyWorld
from recrawl.crawl.config.rules import Rule, Rules
from recrawl.crawl.http.memory import Answer
from recrawl.crawl.listings.discovery import Site
from recrawl.crawl.listings.listing import Listing
from recrawl.crawl.run.commands import follow_command, listing_command
from recrawl.store.listings import StoredListing

HOST = "https://a.example"


class World(AnyWorld):
    """Loops that idle seldom wake, so that days pass quickly."""

    def __init__(self, page, urls=(), **options):
        seldom = {"commands_every": 7200.0, "notes_every": DAY, "longest_sleep": 7200.0, "commit_delay": 60.0}
        super().__init__(page, urls, **{**seldom, **options})


MAP = f"{HOST}/sitemap.xml"


def stamp(at):
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def urlset(entries):
    rows = "".join(
        f"<url><loc>{url}</loc>{'' if at is None else f'<lastmod>{at if isinstance(at, str) else stamp(at)}</lastmod>'}"
        "</url>"
        for url, at in entries
    )
    return Answer(f"<urlset>{rows}</urlset>", headers={"content-type": "application/xml"})


class Site1:
    """A host with pages that change on request, and a sitemap that says so."""

    def __init__(self, n=20, robots=f"User-agent: *\nSitemap: {MAP}\n", other=None):
        self.urls = [f"{HOST}/{k}" for k in range(n)]
        self.changes = {url: [START - DAY] for url in self.urls}
        self.listed = dict.fromkeys(self.urls, START - DAY)
        self.robots, self.other = robots, other or {}

    def __call__(self, url, now):
        if url.endswith("/robots.txt"):
            return self.robots if url.startswith(HOST) else None
        if url in self.other:
            answer = self.other[url]
            return answer(url, now) if callable(answer) else answer
        if url == MAP:
            dates = [(one, max(at for at in self.changes.get(one, [START]) if at <= now)) for one in self.listed]
            return urlset(dates)
        if url in self.changes:
            return f"<p>{url} version {sum(at <= now for at in self.changes[url])}</p>"
        return None

    def changes_at(self, number, at):
        self.changes[self.urls[number]].append(START + at)


def polls(world, url=MAP):
    return [at - START for at, asked in world.web.requests if asked == url]


def listing(world, url=MAP):
    return {one.url: Listing.restore(one) for one in world.store.listings()}.get(url)


@pytest.mark.slow
def test_a_sitemap_that_robots_txt_names_brings_crawls_forward():
    site = Site1(200)
    for k in range(0, 60, 3):
        site.changes_at(k, 6 * 3600.0 + 3600.0 * k)
    world = World(site, site.urls, budget=0.002, delay=0.0)
    counters = world.run(4 * DAY)
    assert counters.polls >= 3
    assert len(polls(world)) == counters.polls
    assert counters.requests == len(world.web.requests), "polls count against the budget"
    assert world.store.counts()["pages"] == 200, "a listing is no page"
    found = listing(world)
    assert (found.kind, found.named_by, found.names, found.n_entries) == ("sitemap", "robots", ["a.example"], 200)
    assert found.n_signals > 0


def test_polls_are_conditional_and_go_on_after_a_restart():
    site = Site1(5)
    sent = []

    def page(url, now):
        return site(url, now) if url != MAP else Answer(site(url, now).body, headers={"ETag": '"1"'})

    world = World(page, site.urls, budget=0.0006, delay=0.0)
    fetch = world.web.fetch

    async def noted(url, **options):
        sent.append((url, options.get("etag")))
        return await fetch(url, **options)

    world.web.fetch = noted
    world.run(2 * DAY)
    world.run(2 * DAY)
    asked = [etag for url, etag in sent if url == MAP]
    assert asked[0] is None
    assert set(asked[1:]) == {'"1"'}
    assert len(asked) >= 3
    assert listing(world).worth.polls == len(asked)


def test_only_dates_that_moved_are_signals_and_a_date_alone_means_any_time_of_its_day():
    site = Site1(4)
    taken = []
    world = World(site, site.urls, budget=0.0006, delay=0.0)
    day = datetime.fromtimestamp(START + DAY, UTC).strftime("%Y-%m-%d")
    site.other[MAP] = lambda url, now: urlset(
        [(one, START - DAY if now < START + 1.2 * DAY or k else day) for k, one in enumerate(site.urls)]
    )
    crawler = world.crawler()
    take = crawler.components.inbox.take

    async def noted(signals, **options):
        taken.extend(signals)
        return await take(signals, **options)

    crawler.components.inbox.take = noted
    asyncio.run(world.clock.drive(crawler.run(START + 3 * DAY)))
    crawler.close()
    assert [(one.page, one.resolution) for one in taken] == [(site.urls[0], DAY)]
    assert str(taken[0].source) == "sitemap of a.example"
    assert taken[0].changed_at % DAY == 0


def test_a_sitemap_speaks_only_for_its_own_host_and_those_that_name_it():
    b, c = "https://b.example/1", "https://c.example/1"
    site = Site1(3)
    site.changes |= {b: [START - DAY], c: [START - DAY]}

    def page(url, now):
        if url == MAP:
            return urlset([(one, START + now // DAY) for one in (site.urls[0], b, c)])
        if url == "https://b.example/robots.txt":
            return f"User-agent: *\nSitemap: {MAP}\n"
        return site(url, now)

    world = World(page, [*site.urls, b, c], budget=0.0006, delay=0.0)
    assert {url for url, _ in taken_in(world, 5 * DAY)} == {site.urls[0], b}
    assert sorted(listing(world).names) == ["a.example", "b.example"]


def test_the_dates_of_an_index_decide_which_parts_are_read():
    parts = [f"{HOST}/part{k}.xml" for k in range(3)]
    site = Site1(3)

    def page(url, now):
        if url == MAP:
            dates = [START if k or now < START + 2.5 * DAY else START + 2 * DAY for k in range(3)]
            rows = "".join(
                f"<sitemap><loc>{one}</loc><lastmod>{stamp(at)}</lastmod></sitemap>"
                for one, at in zip(parts, dates, strict=True)
            )
            return Answer(f"<sitemapindex>{rows}</sitemapindex>", headers={"content-type": "text/xml"})
        if url in parts:
            return urlset([(site.urls[parts.index(url)], START)])
        return site(url, now)

    world = World(page, site.urls, budget=0.0006, delay=0.0)
    world.run(6 * DAY)
    assert len(polls(world)) >= 4
    assert [len(polls(world, one)) for one in parts] == [2, 1, 1], "once each, and the one whose date moved"
    assert polls(world, parts[0])[1] > 2.5 * DAY
    assert listing(world, parts[1]).parent == MAP


@pytest.mark.slow
def test_a_listing_that_fails_is_asked_more_and_more_rarely_and_robots_txt_is_obeyed():
    site = Site1(3, other={MAP: Answer(status=500)})
    world = World(site, site.urls, budget=0.0002, delay=0.0)
    world.run(25 * DAY)
    waits = np.diff(polls(world))
    assert 4 <= len(waits) <= 12
    assert (waits[1:] >= waits[:-1] - 200.0).all()
    assert waits[-1] >= 2 * DAY
    site = Site1(3, robots=f"User-agent: *\nDisallow: /sitemap\nSitemap: {MAP}\n")
    world = World(site, site.urls, budget=0.0006, delay=0.0)
    world.run(3 * DAY)
    assert polls(world) == []
    assert listing(world).failure == "robots"


@pytest.mark.slow
def test_polls_that_nothing_asks_for_keep_to_their_share():
    """Many sitemaps that never say anything: first polls a fifth of the requests, later ones a hundredth."""
    hosts = [f"https://h{k}.example" for k in range(12)]

    def page(url, now):
        if url.endswith("/robots.txt"):
            return f"User-agent: *\nSitemap: {url.removesuffix('robots.txt')}s.xml\n"
        return urlset([]) if url.endswith("/s.xml") else "<p>never changes</p>"

    world = World(page, [f"{host}/1" for host in hosts], budget=40 / DAY, delay=0.0)
    counters = world.run(20 * DAY)
    assert 12 < counters.polls <= 12 + 0.015 * counters.requests


def test_a_poll_waits_for_a_host_with_a_long_delay():
    site = Site1(3, robots=f"User-agent: *\nCrawl-delay: 3000\nSitemap: {MAP}\n")
    world = World(site, site.urls, budget=0.002, delay=0.0, longest_delay=3000.0)
    world.run(1.5 * DAY)
    assert polls(world)
    assert listing(world).failures == 0
    assert min(np.diff(sorted(at for at, _ in world.web.requests))) >= 3000.0


def test_listings_can_be_switched_off():
    site = Site1(3)
    world = World(site, site.urls, budget=0.0006, delay=0.0, listings=False)
    assert world.run(3 * DAY).polls == 0
    assert polls(world) == []
    assert world.store.listings() == []


def taken_in(world, seconds):
    """The signals that a run takes in, as URLs with their sources."""
    crawler, found = world.crawler(), []
    take = crawler.components.inbox.take

    async def noted(signals, **options):
        found.extend((one.page, str(one.source)) for one in signals)
        return await take(signals, **options)

    crawler.components.inbox.take = noted
    asyncio.run(world.clock.drive(crawler.run(world.clock.now() + seconds)))
    crawler.close()
    return found


def test_a_sitemap_that_breaks_off_drops_no_pages():
    site = Site1(30)
    whole = urlset([(one, START) for one in site.urls]).body

    def page(url, now):
        if url == MAP:
            broken = START + 1.5 * DAY < now < START + 3.5 * DAY
            return Answer(whole[:600] if broken else whole, headers={"content-type": "text/xml"})
        return site(url, now)

    world = World(page, site.urls, budget=0.0006, delay=0.0)
    assert taken_in(world, 6 * DAY) == []
    assert len(polls(world)) >= 4
    assert listing(world).n_entries == 30


def test_an_index_page_and_a_feed_give_signals_for_new_links_and_moved_updates():
    news, feed = f"{HOST}/news/", f"{HOST}/feed"
    site = Site1(4, robots="User-agent: *\n")

    def page(url, now):
        late = now > START + 1.5 * DAY
        if url == news:
            return "".join(f"<a href={one}>x</a>" for one in site.urls[: 3 if late else 2])
        if url == feed:
            dates = [stamp(START + (2 * DAY if late and not k else 0)) for k in range(2)]
            items = "".join(
                f"<entry><link href='{one}'/><updated>{date}</updated></entry>"
                for one, date in zip(site.urls, dates, strict=False)
            )
            return Answer(f"<feed>{items}</feed>", headers={"content-type": "application/atom+xml"})
        return site(url, now)

    world = World(page, site.urls, budget=0.0006, delay=0.0)
    world.store.queue([listing_command(news, "listing"), listing_command(feed, "feed")])
    found = taken_in(world, 9 * DAY)
    assert sorted(found) == [(site.urls[0], "feed of a.example"), (site.urls[2], "listing of a.example")]


def test_a_feed_that_is_a_page_gives_signals_without_a_poll():
    feed = f"{HOST}/feed"
    site = Site1(3, robots="User-agent: *\n")

    def page(url, now):
        if url == feed:
            n = 1 + int((now - START) // DAY)
            items = "".join(f"<item><link>{one}</link><guid>{k}</guid></item>" for k, one in enumerate(site.urls[:n]))
            return Answer(f"<rss><channel>{items}</channel></rss>", headers={"content-type": "application/rss+xml"})
        return site(url, now)

    world = World(page, [*site.urls, feed], budget=0.0006, delay=0.0)
    found = taken_in(world, 4 * DAY)
    assert found == [(one, "feed of a.example") for one in site.urls[1:]]
    assert listing(world, feed).as_page
    assert world.store.counts()["pages"] == 4


def test_a_poll_that_was_killed_says_the_same_again():
    """Signals are stored before the table: a kill in between repeats them, and loses none."""
    site = Site1(10)
    site.changes_at(3, 1.2 * DAY)
    world = World(site, site.urls, budget=0.0006, delay=0.0)
    world.run(DAY)
    save, lost = world.store.store.save, []

    async def failing(*arguments, **options):
        if options.get("listings") and any(one.entries for one in options["listings"]):
            lost.append(options)
            raise asyncio.CancelledError
        return await save(*arguments, **options)

    world.store.store.save = failing
    taken_in(world, DAY)
    assert lost
    world.store.store.save = save
    assert (site.urls[3], "sitemap of a.example") in taken_in(world, 1.5 * DAY)


# --- discovery ------------------------------------------------------------------------------------------------------


def known(world):
    return set(world.store.urls())


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
def test_a_page_that_left_the_sitemap_and_is_gone_is_reported_once():
    site = Site1(30)
    gone_at = START + 2 * DAY

    def page(url, now):
        if url == MAP:
            return urlset([(one, START) for one in site.urls if now < gone_at or one != site.urls[7]])
        return None if url == site.urls[7] and now >= gone_at else site(url, now)

    world = World(page, site.urls, budget=0.0006, delay=0.0)
    world.run(12 * DAY)
    reported = [fields["url"] for name, fields in world.events if name == "dropped page gone"]
    assert reported == [site.urls[7]]
    note = world.store.notes("dropped")["dropped"]
    assert (note["n_gone"], note["gone"], note["waiting"]) == (1, [site.urls[7]], [])
    events = [event.url for event in world.store.events() if event.kind == "gone"]
    assert events == [site.urls[7]]


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
    """20 parts of 50,000 URLs each, which are others at each poll."""
    site = Site1(1)

    def invented(url, now):
        lines = "\n".join(f"{url[:-4]}/{int(now)}/{k}" for k in range(50_000))
        return Answer(lines, headers={"content-type": "text/plain"})

    parts = [f"{HOST}/part-{k}.txt" for k in range(20)]
    rows = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in parts)
    site.other = dict.fromkeys(parts, invented)
    site.other[MAP] = Answer(f"<sitemapindex>{rows}</sitemapindex>", headers={"content-type": "application/xml"})
    world = World(site, site.urls, budget=0.002, delay=0.0)
    tracemalloc.start()
    world.run(3 * DAY)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert all(polls(world, url) for url in parts)
    sizes = [len(world.store.listing_entries(url)) for url in parts]
    assert sum(sizes) <= 20 * (16 * 50_000 + 1000), "16 bytes per entry of the last poll"
    assert peak < 100e6
    assert len(known(world)) == 1


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
