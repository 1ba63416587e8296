"""Requests that are almost surely useless are not made, and what is left of the budget is counted with the reason."""

import asyncio

import numpy as np
import pytest

from recrawl.crawl.polite.unspent import HOSTS, NOTE, UNLIKELY, Unspent, figures_of

from .driving import START, World, largest_share

STATIC = "https://static.example/page"
BUSY = [f"https://busy.example/{k}" for k in range(20)]


def page(url, now):
    """The pages of one host change every half minute, that of the other never."""
    if url.endswith("/robots.txt"):
        return None
    return "<p>always the same</p>" if url == STATIC else f"<p>{url} {int(now / 30.0)}</p>"


def crawled(least, seconds=240.0):
    """A host of changing pages with a delay of two seconds, beside a static page alone on its host, at 1/s."""
    world = World(page, [*BUSY, STATIC], budget=1.0, delay=2.0, robots=False, least=least)
    world.run(seconds)
    return world


@pytest.fixture(scope="module")
def limited():
    return crawled(0.01)


@pytest.mark.slow
def test_a_static_page_does_not_get_what_hosts_in_their_delay_leave():
    before, limited = (crawled(least, 600.0) for least in (0.0, 0.01))
    assert (len(before.asked()), len(before.asked("/page"))) == (600, 300)
    others = len(limited.asked()) - len(limited.asked("/page"))
    assert others >= 0.97 * 300, "the other pages are crawled as before"
    late = limited.asked("/page") > START + 480.0
    assert late.sum() <= 15, "of 60, once it is known that the page is not like the twenty others"


@pytest.mark.slow
def test_what_was_left_is_counted_and_stored_with_its_reason(limited):
    note = limited.store.notes(NOTE)[NOTE]
    found = figures_of(note, limited.clock.now())
    assert found["requests"] == len(limited.asked())
    assert found["unspent"] + found["requests"] == pytest.approx(240.0, abs=2.0)
    assert set(found["why"]) == {HOSTS}
    assert figures_of(note, limited.clock.now() + 2 * 86400.0) == {"requests": 0, "unspent": 0, "why": {}}


@pytest.mark.slow
def test_no_page_is_likely_enough():
    world = World(
        lambda url, now: "<p>same</p>", [f"https://h{k}.example/" for k in range(30)], robots=False, least=0.01
    )
    world.run(1.5 * 3600.0)
    found = world.store.notes(NOTE)[NOTE]
    why = figures_of(found, world.clock.now())["why"]
    assert why[UNLIKELY] > 0.5 * sum(why.values())
    seen, quiet = len(world.asked()), world.asked()
    world.run(1.5 * 3600.0)
    assert len(world.asked()) - seen < seen, "fewer and fewer, the longer nothing changes"
    total = figures_of(world.store.notes(NOTE)[NOTE], world.clock.now())
    assert total["requests"] == len(world.asked()), "the figures go on after a restart"
    assert quiet.min() >= START


@pytest.mark.slow
@pytest.mark.parametrize("budget", [1.0, 3.0])
def test_what_was_saved_is_spent_only_as_the_promise_allows(budget):
    """Pages that change together after hours of silence: at most budget·(W + 1) requests in any window."""
    hosts = [f"https://h{k}.example/" for k in range(40)]
    world = World(
        lambda url, now: f"<p>{int((now - START) / 7000.0)}</p>", hosts, budget=budget, robots=False, least=0.01
    )
    world.run(2.2 * 3600.0)
    times = np.array(world.asked())
    assert largest_share(times, budget, [START]) <= 1.0 + 1e-9


def test_hours_that_are_over_are_forgotten():
    unspent = Unspent()
    for hour in range(40):
        unspent.why = HOSTS if hour < 30 else UNLIKELY
        unspent.count(3600.0 * hour, hour, 2.0 * hour)
    assert unspent.figures(3600.0 * 39) == {"requests": 25, "unspent": 50.0, "why": {UNLIKELY: 20.0, HOSTS: 30.0}}
    later = unspent.figures(3600.0 * 39.25)
    assert later == {"requests": 25, "unspent": 49.5, "why": {UNLIKELY: 20.0, HOSTS: 29.5}}, "a part of the first hour"
    assert unspent.figures(3600.0 * 40)["requests"] == 24
    other = Unspent()
    other.restore(unspent.pending_notes(1e6))
    assert other.figures(3600.0 * 39) == unspent.figures(3600.0 * 39)
    assert unspent.pending_notes(1e6 + 1.0) == {}


def test_status_says_what_was_left_and_why():
    from recrawl.cli.views.status_report import _unspent

    text = _unspent({"requests": 120, "unspent": 80.4, "why": {HOSTS: 20.1, UNLIKELY: 60.3}})
    assert text == "80 of 200 requests: 60 no page likely enough to have changed, 20 hosts waiting for their delay"


@pytest.mark.slow
def test_time_before_a_run_begins_is_not_unspent():
    world = World(page, BUSY, budget=1.0, delay=0.1, robots=False, least=0.0)
    crawler = world.crawler()
    world.clock._now += 60.0  # kernels are compiled
    asyncio.run(world.clock.drive(crawler.run(world.clock.now() + 30.0)))
    crawler.close()
    found = figures_of(world.store.notes(NOTE)[NOTE], world.clock.now())
    assert found["requests"] == len(world.asked())
    assert found["unspent"] + found["requests"] == pytest.approx(30.0, abs=2.0)
