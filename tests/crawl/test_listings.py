"""Listings polled by a crawl of the web in memory: signals, discovery, politeness, restarts."""

import asyncio
from datetime import UTC, datetime

import numpy as np
import pytest

from crawl.driving import DAY, START
from recrawl.crawl.audit.open_audit import OpenAudit
from recrawl.crawl.http.memory import Answer
from recrawl.crawl.run.commands import listing_command

from .listing_site import HOST, MAP, Site1, World, listing, polls, stamp, urlset


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_the_first_poll_signals_the_pages_whose_dates_are_newer_than_their_copies():
    site = Site1(40)
    world = World(site, site.urls, budget=0.0006, delay=0.0, listings=False)
    world.run(DAY)
    for k in range(6):
        site.changes_at(k, 1.5 * DAY)
    world.clock._now, world.options["listings"] = START + 2 * DAY, True
    signalled = {url for url, _ in taken_in(world, 0.1 * DAY)}
    crawled = {url for at, url in world.web.requests if at > START + 2 * DAY}
    assert signalled
    assert set(site.urls[:6]) - crawled <= signalled <= set(site.urls[:6])


def test_an_entry_that_is_new_and_has_no_date_is_no_news_of_a_copy_fetched_since_the_last_poll():
    site = Site1(3)
    site.other[MAP] = lambda url, now: urlset([(one, None) for one in site.urls[: 1 if now < START + 1.2 * DAY else 3]])
    world = World(site, site.urls, budget=0.0006, delay=0.0)
    assert taken_in(world, 3 * DAY) == []
    assert listing(world).n_entries == 3


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_listings_are_in_no_event_observation_or_audit():
    feed = f"{HOST}/feed"
    site = Site1(5)
    site.changes_at(2, 0.5 * DAY)
    site.other[feed] = lambda url, now: Answer(
        f"<feed><entry><link href='{site.urls[0]}'/><updated>{stamp(now)}</updated></entry></feed>",
        headers={"content-type": "application/atom+xml"},
    )
    world = World(site, site.urls, budget=0.0006, delay=0.0)
    world.store.queue([listing_command(feed, "feed")])
    world.run(2 * DAY)
    assert {one.url for one in world.store.listings()} == {MAP, feed}
    asked, drawn = len(world.web.requests), []
    crawler = world.crawler(audit_rng=np.random.default_rng(1), listings=False)
    draw = OpenAudit.draw

    def noted(audit, url):
        drawn.append(url)
        return draw(audit, url)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(OpenAudit, "draw", noted)
        asyncio.run(world.clock.drive(crawler.run(audit=(100, 0.9))))
    crawler.close()
    assert set(drawn) == set(site.urls)
    assert {url for _, url in world.web.requests[asked:]} <= {*site.urls, f"{HOST}/robots.txt"}
    assert {event.url for event in world.store.events()} == set(site.urls)
    assert {one.url for one in world.store.observations()} == set(site.urls)


@pytest.mark.slow
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


@pytest.mark.slow
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
