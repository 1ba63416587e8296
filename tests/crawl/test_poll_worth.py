"""The poll rule: its formula against the loss that polls prevent, and what credits teach."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.crawl.listings.credits import MOST, Credits
from recrawl.crawl.listings.listing import Listing
from recrawl.crawl.listings.poll_queue import PollTerms, due_times
from recrawl.crawl.listings.registry import Registry
from recrawl.crawl.listings.worth import DAY, Worth, anyway, poll_interval, poll_value
from recrawl.crawl.listings.worths import Worths
from recrawl.crawl.signals.sorting import Signal
from recrawl.crawl.signals.sources import Source
from recrawl.engine import Engine
from recrawl.model import Pages, crawl_value


def worth(gain=3.0, lead=5 * DAY, watched=60 * DAY):
    return Worth(gain=gain, lead=gain * lead, watched=watched, polls=9)


def cost(one, interval, threshold):
    """Naive: what polls at an interval and the news that wait for them cost per second."""
    t = (np.arange(2000) + 0.5) * interval / 2000
    lost = one.rate * one.mean_lead * (1.0 - np.exp(-t / one.mean_lead))
    return (threshold + lost.sum() * interval / 2000) / interval


@pytest.mark.parametrize("gain", [0.5, 3.0, 100.0])
@pytest.mark.parametrize("threshold", [0.01 * DAY, 0.1 * DAY])
def test_the_rule_polls_where_polls_and_waiting_news_cost_least(gain, threshold):
    one = worth(gain=gain)
    best = poll_interval(one, threshold)
    assert np.isfinite(best)
    for factor in (0.5, 0.8, 1.25, 2.0):
        assert cost(one, best * factor, threshold) > cost(one, best, threshold)
    assert poll_value([one], np.array([best]))[0] == pytest.approx(threshold, rel=1e-6)


@given(st.floats(0.01, 100.0), st.floats(60.0, 30 * DAY), st.floats(1.0, 100 * DAY))
def test_the_value_of_a_poll_is_that_of_a_page(gain, lead, elapsed):
    one = worth(gain=gain, lead=lead)
    x = elapsed / one.mean_lead
    expected = one.rate * one.mean_lead**2 * (1.0 - np.exp(-x) * (1.0 + x))
    assert poll_value([one], np.array([elapsed]))[0] == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_short_intervals_go_with_the_root():
    """For news that are seldom found anyway: sqrt(2·threshold/gain)."""
    one = replace(worth(lead=80 * DAY), watched=1e12, gain=1e12 / DAY)
    one = replace(one, lead=one.gain * 80 * DAY)
    assert poll_interval(one, 1e-4 * DAY) == pytest.approx(np.sqrt(2e-4 * DAY / one.rate), rel=0.01)


def test_polls_that_cost_more_requests_are_rarer_and_worthless_ones_never_come():
    assert poll_interval(worth(), 100.0, requests=9.0) > 2 * poll_interval(worth(), 100.0)
    assert poll_interval(worth(gain=0.0), 100.0) == np.inf
    assert poll_interval(worth(gain=-3.0), 100.0) == np.inf
    assert poll_interval(worth(), 1e12) == np.inf
    assert poll_interval(worth(), 0.0) == poll_interval(worth(), np.inf) == np.inf


def test_a_shorter_day_changes_only_the_unit_of_time():
    """A listing in a world that is 3600 times as fast is polled at intervals that are as many times shorter."""
    fast = 3600.0

    def learned(unit, day):
        rate, now = 1.0 / (unit * 2 * DAY), 0.0
        pages, margin = Pages([rate, 2 * rate]), unit * DAY * 0.2
        found = replace(Worth(), day=day, expected_lead=day).with_prior(pages, anyway(pages, margin))
        for _ in range(5):
            now += unit * DAY
            found = found.polled(now).credited(0.5, unit * 300 * DAY)
        listing = Listing("https://a.example/s.xml", polled_at=now, worth=found)
        due = due_times([listing], PollTerms(margin, 1.0, day))[0]
        intervals = [at - now for at in (due["worth"], due["age"])]
        return np.array([poll_interval(found, margin), found.mean_lead, found.longest, *intervals])

    assert np.allclose(learned(1.0 / fast, DAY / fast) * fast, learned(1.0, DAY), rtol=1e-6)


def test_what_was_learned_long_ago_counts_less():
    before = worth(watched=10 * DAY).polled(DAY)
    after = before.polled(31 * DAY)
    assert (after.gain, after.watched) == pytest.approx((before.gain / 2, before.watched / 2 + 30 * DAY))
    assert after.rate < before.rate
    assert [Worth(polls=n).longest / DAY for n in (0, 3, 4, 5, 6, 50)] == [1, 1, 2, 4, 7, 7]


def test_signals_that_were_not_judged_yet_do_not_count_against_a_listing():
    asked = Worth(expected=1e-5, watched=20 * DAY, polls=5)
    waiting = asked.signalled(4)
    assert waiting.rate == pytest.approx(Worth(expected=1e-5).rate), "none was judged: what was expected still is"
    assert waiting.signalled(-1).rate < waiting.rate
    nothing = waiting.signalled(-1).signalled(-1).signalled(-1).signalled(-1)
    assert nothing.rate == pytest.approx(asked.rate), "all were judged, and brought nothing"


def test_an_unknown_listing_is_expected_to_tell_some_of_the_changes():
    pages = Pages([0.1 / DAY, 0.0])
    threshold = float(crawl_value(pages[:1], 10 * DAY)[0])
    forecast = anyway(pages, threshold)
    assert forecast.interval[0] == pytest.approx(10 * DAY)
    assert np.isinf(forecast.interval[1])
    one = Worth().with_prior(pages, forecast)
    assert one.expected == pytest.approx(0.1 / DAY * np.exp(-1.0))
    assert one.mean_lead == pytest.approx(5 * DAY)
    assert Worth().with_prior(pages[1:], anyway(pages[1:], threshold)).rate == 0.0


def engine_of(n, fetched_at):
    engine = Engine(1.0 / DAY, min_change_probability=0.0)
    urls = [f"https://a.example/{k}" for k in range(n)]
    return engine, engine.add(urls, 0.0, fetched_at=fetched_at, change_rate=0.1 / DAY, evidence=1e6)


def test_several_silent_sources_are_as_one():
    several = Pages([0.5], recall=[[0.5, 0.2, 0.0, 0.0]], false_rate=[[0.1, 0.3, 0.0, 0.0]])
    one = Pages([0.5], recall=0.6, false_rate=0.4)
    threshold = float(crawl_value(one, 2.0)[0])
    assert several.missed_rate[0] == pytest.approx(one.missed_rate[0])
    assert anyway(several, threshold).interval[0] == pytest.approx(anyway(one, threshold).interval[0])
    assert anyway(several, threshold).interval[0] == pytest.approx(2.0)


def test_credits_go_to_the_first_signal_by_what_the_crawl_finds():
    engine, ids = engine_of(3, fetched_at=-2 * DAY)
    threshold = float(crawl_value(engine.pages(ids), 10 * DAY)[0])
    credits = Credits(engine)
    credits.signalled("one", ids[:2].tolist(), 0.0, threshold)
    credits.signalled("two", ids.tolist(), 0.0, threshold)
    stale, fresh, late = (
        credits.crawled(int(page), changed=changed) for page, changed in zip(ids, (1, 0, 1), strict=True)
    )
    assert (stale.listing, fresh.listing, late.listing) == ("one", "one", "two")
    assert stale.lead == pytest.approx(8 * DAY, rel=0.01)
    assert stale.gain == pytest.approx(np.exp(-1.0), rel=0.01)
    assert fresh.gain == pytest.approx(np.exp(-1.0) - 1.0, rel=0.01)
    assert credits.crawled(int(ids[0]), changed=True) is None
    assert len(credits) == 0


def test_a_crawl_later_than_foreseen_is_the_one_that_was_made_anyway():
    """The margin rises after a start with fresh copies: liars must not gain by it, nor honest listings lose lead."""
    engine, ids = engine_of(2, fetched_at=-2 * DAY)
    threshold = float(crawl_value(engine.pages(ids), 10 * DAY)[0])
    credits = Credits(engine)
    credits.signalled("one", ids.tolist(), 0.0, threshold)
    right, wrong = (credits.crawled(int(page), changed=page == 0, at=28 * DAY) for page in ids)
    assert right.lead == pytest.approx(28 * DAY)
    assert right.gain == pytest.approx(np.exp(-3.0), rel=0.01)
    assert wrong.gain == pytest.approx(np.exp(-3.0) - 1.0, rel=0.01)


def test_a_learned_lead_follows_the_margin():
    pages = Pages([0.1 / DAY])
    low, high = (anyway(pages, float(crawl_value(pages, days * DAY)[0])) for days in (2.0, 10.0))
    learned = Worth().with_prior(pages, low).credited(100.0, 0.5 * DAY)
    assert learned.mean_lead == pytest.approx(0.5 * DAY, rel=0.01)
    assert learned.with_prior(pages, high).mean_lead == pytest.approx(2.5 * DAY, rel=0.01)
    found = learned.discovered(100.0)
    assert found.with_prior(pages, high).mean_lead == pytest.approx((2.5 + 7.0) / 2 * DAY, rel=0.01)


def test_signals_that_say_nothing_are_worth_nothing():
    """Of crawls that are made anyway, as many find a change as were expected to: gains cancel out."""
    engine, ids = engine_of(2000, fetched_at=-2 * DAY)
    threshold = float(crawl_value(engine.pages(ids[:1]), 10 * DAY)[0])
    credits = Credits(engine)
    credits.signalled("liar", ids.tolist(), 0.0, threshold)
    changed = np.random.default_rng(1).random(len(ids)) < 1.0 - np.exp(-1.0)
    found = [credits.crawled(int(page), changed=bool(one)).gain for page, one in zip(ids, changed, strict=True)]
    assert abs(np.mean(found)) < 0.03


def test_credits_are_bounded_and_need_a_copy_and_a_threshold():
    engine, ids = engine_of(4, fetched_at=[-np.inf, -DAY, -DAY, -DAY])
    credits = Credits(engine)
    credits.signalled("one", ids.tolist(), 0.0, 0.0)
    assert len(credits) == 0
    credits.signalled("one", ids.tolist(), 0.0, 1.0)
    assert len(credits) == 3
    assert MOST <= 100_000


def test_credits_that_wait_survive_a_restart():
    engine = Engine(1.0)
    urls = [f"https://a.example/{k}" for k in range(4)]
    ids = engine.add(urls, 0.0, fetched_at=0.0, change_rate=1.0 / DAY)
    before = Credits(engine)
    before.signalled("https://a.example/sitemap.xml", ids[:3].tolist(), DAY, 0.1 * DAY)
    note = json.loads(json.dumps(before.note(engine.addresses.urls)))
    again = Engine(1.0)
    again.add(urls[2:] + urls[:1], 0.0, fetched_at=0.0, change_rate=1.0 / DAY)  # one is removed, others are renumbered
    after = Credits(again)
    after.restore(note, again.addresses.known)
    assert len(after) == 2
    assert after.crawled(2, changed=True) == before.crawled(0, changed=True)
    assert after.crawled(0, changed=False) == before.crawled(2, changed=False)


def test_polls_by_worth_leave_half_of_the_requests():
    """A margin that is far too low makes every poll seem worth its request: crawls must be able to correct it."""
    mine, terms = Registry(), PollTerms(threshold=1e-9, rate=1.0)
    listings = [mine.add(Listing(f"https://{k}.example/sitemap.xml")) for k in range(400)]
    for one in listings:
        one.polled_at, one.worth = 0.0, replace(worth(), at=0.0)
        mine.changed(one)
    polled = [k for k in range(1000, 1200) if mine.due(float(k), terms) is not None]
    assert len(polled) == 100


def test_a_sitemap_that_names_a_page_without_a_date_says_nothing_of_a_newer_copy():
    engine, urls = Engine(1.0, start=0.0), [f"https://a.example/{k}" for k in range(3)]
    engine.add(urls[:2], 60.0, fetched_at=[10.0, 50.0])
    worths = Worths(engine, Registry(), lambda: PollTerms(1.0, 1.0), lambda _: True)
    old, new, unknown = (Signal(url, Source("sitemap", "a.example")) for url in urls)
    dated = new._replace(changed_at=20.0)
    assert worths.since([old, new, unknown, dated], before=30.0) == [old, unknown, dated]
    assert worths.since([old, new], before=None) == [old, new]
    assert worths.since([dated], before=30.0) == [dated]
