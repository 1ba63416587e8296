"""What the demo's sites say of their changes, by the world's truth."""

import math

import numpy as np
import pytest

from recrawl.crawl.http.fetched import Fetched
from recrawl.crawl.http.memory import ManualClock
from recrawl.crawl.listings.reading import read_listing
from recrawl.demo.announcements import FEED_ITEMS, SHARE, Announcements
from recrawl.demo.web import FEED, SITEMAP, DemoWeb
from recrawl.demo.world import SITES, draw_world

WORLD = draw_world(1, 60.0)
SITE = {site.name: site for site in SITES}
START = 1e9


def web_at(now):
    clock = ManualClock(START)
    web = DemoWeb(WORLD, clock)
    web.skip(now)
    return web


def listed(web, name, path):
    """The dates that a listing of a site states, by page, in seconds of the world."""
    answer = web.answer(SITE[name].host, path, web.now())
    url = web.url(SITE[name], path)
    reading = read_listing(Fetched(url, url, 200, 0.0, 0.0, answer.headers, answer.body.encode()), None)
    number = {url: k for k, url in enumerate(web.urls)}
    found = {number.get(one.url, -1): one.at for one in reading.pages}
    return {page: None if at is None else at - web.started_at for page, at in found.items()}, answer.headers["ETag"]


def changes(page, now):
    trace = WORLD.trace
    at = trace.changed_at[trace.offset[page] : trace.offset[page + 1]]
    return at[at <= now]


@pytest.mark.parametrize("name", ["docs", "wiki"])
def test_dates_of_honest_sitemaps_are_times_of_changes(name):
    dates, _ = listed(web_at(200.0), name, SITEMAP)
    del dates[-1]  # what robots.txt forbids
    moved = {page: at for page, at in dates.items() if at > 1e-3}
    assert len(dates) == SITE[name].n_pages
    assert len(moved) > 0.5 * len(dates)
    assert all(np.abs(changes(page, 200.0) - at).min() < 1e-5 for page, at in moved.items())


@pytest.mark.parametrize("name", ["blog", "archive"])
def test_stamped_dates_all_move_every_hour(name):
    first, tag = listed(web_at(7.2), name, SITEMAP)
    same, same_tag = listed(web_at(7.9), name, SITEMAP)
    later, later_tag = listed(web_at(8.1), name, SITEMAP)
    del first[-1], same[-1], later[-1]
    assert {round(at, 5) for at in first.values()} == {7.0}
    assert {round(at, 5) for at in later.values()} == {8.0}
    assert tag == same_tag != later_tag


@pytest.mark.parametrize("name", ["news", "shop", "slow"])
def test_other_sitemaps_have_no_dates_and_do_not_move(name):
    first, tag = listed(web_at(1.0), name, SITEMAP)
    later, later_tag = listed(web_at(50.0), name, SITEMAP)
    assert set(first.values()) == {None}
    assert (first, tag) == (later, later_tag)


def test_the_feed_holds_what_changed_last():
    items, _ = listed(web_at(100.0), "news", FEED)
    assert len(items) == FEED_ITEMS
    assert list(items.values()) == sorted(items.values(), reverse=True)
    assert all(np.abs(changes(page, 100.0) - at).min() < 1e-5 for page, at in items.items())
    assert web_at(1.0).answer(SITE["shop"].host, FEED, 0.0).status == 404


def test_pings_are_a_share_of_the_changes_each_once():
    web = web_at(0.0)
    whole = web.pings(-math.inf, 300.0)
    parts = [web.pings(at, at + 0.5) for at in np.arange(0.0, 300.0, 0.5)]
    assert set(whole) == {"shop"}
    assert [one for part in parts for one in part.get("shop", [])] == whole["shop"]
    number = {url: k for k, url in enumerate(web.urls)}
    shop = [k for k, page in enumerate(WORLD.pages) if page.site.name == "shop"]
    assert len(whole["shop"]) / sum(len(changes(page, 300.0)) for page in shop) == pytest.approx(SHARE, abs=0.02)
    assert all(at in changes(number[url], 300.0) for url, at in whole["shop"])


def test_announcements_follow_from_the_seed():
    site = WORLD.sites[0]
    again = Announcements(draw_world(1, 60.0))
    assert again.between(again._world.sites[0], 0.0, 60.0) == Announcements(WORLD).between(site, 0.0, 60.0)
