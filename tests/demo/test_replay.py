"""Recorded traces through the real crawler: it crawls what the simulator crawls, when the simulator crawls it."""

from dataclasses import replace

import numpy as np
import pytest

from recrawl.crawl.formats.feed_items import read_feed
from recrawl.crawl.formats.sitemaps import read_sitemap
from recrawl.demo.replay import listings
from recrawl.demo.replay.happenings import DAY, ReplayOptions
from recrawl.demo.replay.live import even_budget, replay_trace
from recrawl.demo.replay.protocol import by_protocol
from recrawl.demo.replay.web import TraceWeb
from recrawl.engine import upkeep
from recrawl.errors import ParameterError
from recrawl.simulate.run.policies import contender
from recrawl.simulate.run.run import simulate
from recrawl.simulate.trace import Signals, Trace
from recrawl.simulate.worlds.events import Events

START, DAYS = 1.7e9, 25.0


def drawn_trace(seed=1, n=30, signalled=False):
    """Pages in folders of four hosts that change at different rates; a quarter come later, some are deleted."""
    rng = np.random.default_rng(seed)
    end = START + DAYS * DAY
    created = np.sort(np.where(rng.random(n) < 0.75, START, rng.uniform(START, end, n)))
    deleted = np.where(rng.random(n) < 0.15, rng.uniform(created, end), end)
    rate = rng.lognormal(np.log(0.2), 1.5, n) / DAY
    counts = rng.poisson(rate * (deleted - created))
    page = np.repeat(np.arange(n), counts)
    at = rng.uniform(created[page], deleted[page])
    signals = None
    if signalled:
        heard = rng.random(len(at)) < 0.7
        signals = Signals.of(at[heard], page[heard], changed_at=np.floor(at[heard] / DAY) * DAY)
    changes = Events.of(page, at, n)
    return Trace(
        START,
        end,
        offset=changes.offset,
        changed_at=changes.at,
        importance=rng.lognormal(0.0, 0.5, n),
        created_at=created,
        deleted_at=deleted,
        url=np.array([f"https://h{k % 4}.example/{k % 12}/{k}" for k in range(n)]),
        signals=signals,
        name="drawn",
        day=DAY,
    )


def budget_of(trace, share=0.2):
    return even_budget(share * trace.n_live / DAY)


# --- the crawler -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_live_crawler_crawls_what_the_simulator_crawls():
    trace = drawn_trace()
    simulated = simulate(contender("learned"), trace, budget_of(trace))
    live = replay_trace(trace, budget_of(trace))
    assert live.run.crawls.tolist() == simulated.crawls.tolist()
    assert live.run.staleness == simulated.staleness
    assert live.requests == simulated.requests == int(live.allowed)
    assert live.wrong == live.failed == live.gone == 0
    assert live.not_modified > 0
    assert live.run.changes_found > 40


@pytest.mark.slow
@pytest.mark.parametrize("signalled", [False, True])
def test_the_engine_driven_by_its_protocol_is_the_live_crawler(monkeypatch, signalled):
    """Bit for bit, also where pages are equal and refits are in pieces: what is found by protocol is found live."""
    for name in ("_COUNTED", "_PLACED", "_SAMPLED", "_CLOCKS", "_COHORTS"):
        monkeypatch.setattr(upkeep, name, 3)
    trace = replace(drawn_trace(seed=5, n=40, signalled=signalled), importance=np.ones(40))
    simulated = simulate(by_protocol(), trace, budget_of(trace))
    live = replay_trace(trace, budget_of(trace), ReplayOptions(signals="engine"))
    assert live.run.crawls.tolist() == simulated.crawls.tolist()
    assert live.run.staleness == simulated.staleness


@pytest.mark.slow
def test_signals_reach_the_engine_when_they_come():
    trace = drawn_trace(seed=3, signalled=True)
    simulated = simulate(contender("learned"), trace, budget_of(trace))
    engine, inbox, none = (
        replay_trace(trace, budget_of(trace), ReplayOptions(signals=way)).run.staleness
        for way in ("engine", "inbox", "none")
    )
    assert engine == pytest.approx(simulated.staleness, rel=0.03)
    assert max(engine, inbox) < none


def test_robots_txt_is_read_where_settings_say_so():
    trace = drawn_trace()
    live = replay_trace(trace, budget_of(trace), ReplayOptions(settings={"robots": True}))
    hosts = len({url.split("/")[2] for url in trace.url.tolist()})
    assert live.requests - live.run.requests >= hosts
    assert live.requests <= live.allowed


def test_deleted_pages_are_found_by_crawls_where_nobody_removes_them():
    trace = drawn_trace()
    live = replay_trace(trace, budget_of(trace), ReplayOptions(find_deleted=True))
    deleted = int((trace.deleted_at < trace.end).sum())
    assert 0 < live.gone <= live.requests <= live.allowed
    assert live.events >= deleted // 2
    assert live.wrong == 0


def test_settings_of_the_crawl_can_be_replaced():
    trace = drawn_trace()
    settings = {"min_change_probability": "80%"}
    live = replay_trace(trace, budget_of(trace, 0.5), ReplayOptions(settings=settings))
    assert live.requests < 0.8 * live.allowed


def test_a_trace_must_be_in_seconds_and_have_urls():
    trace = Trace(0.0, 10.0, offset=[0, 1], changed_at=[1.0])
    with pytest.raises(ParameterError, match="not in seconds"):
        replay_trace(trace, 1.0)
    with pytest.raises(ParameterError, match="no URLs"):
        TraceWeb(trace)
    with pytest.raises(ParameterError, match="budget is 0"):
        replay_trace(drawn_trace(), 0.0)
    with pytest.raises(ParameterError, match="same URL"):
        TraceWeb(Trace(0.0, 1.0, offset=[0, 0, 0], changed_at=[], url=["http://a.example", "http://a.example/"]))


# --- the web ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def web():
    """Two pages on one host: one changes and is deleted, the other comes later; signals state days and a time."""
    at = START + DAY * np.array([2.0, 5.0, 7.0])
    stated = np.array([np.floor(at[0] / DAY) * DAY, np.inf, at[2] - 60.0])
    trace = Trace(
        START,
        START + 10 * DAY,
        offset=[0, 2, 3],
        changed_at=START + DAY * np.array([2.0, 5.0, 7.0]),
        created_at=[START, START + 4 * DAY],
        deleted_at=[START + 6 * DAY, START + 10 * DAY],
        url=["https://a.example/x", "https://a.example/y"],
        signals=Signals.of(at, [0, 0, 1], changed_at=stated),
        day=DAY,
    )
    return TraceWeb(trace)


def listed(web, days, path="/sitemap.xml"):
    answer = web.answer(f"https://a.example{path}", START + days * DAY)
    return {entry.url[-1]: entry.lastmod for entry in read_sitemap(answer.body.encode())}


def test_pages_show_their_versions_while_they_exist(web):
    def tag(path, days):
        answer = web.answer(f"https://a.example/{path}", START + days * DAY)
        return None if answer is None else answer.headers["ETag"]

    assert [tag("x", days) for days in (0.0, 1.9, 2.0, 5.5, 6.0)] == ['"0-0"', '"0-0"', '"0-1"', '"0-2"', None]
    assert [tag("y", days) for days in (3.9, 4.0, 10.0)] == [None, '"1-0"', '"1-1"']
    first, second = (web.answer("https://a.example/x", START + days * DAY).body for days in (0.0, 2.0))
    assert first != second


def test_sitemaps_state_the_dates_of_signals(web):
    day = DAY * np.floor((START + 2 * DAY) / DAY)
    assert listed(web, 1.0) == {"x": None}
    assert listed(web, 4.0) == {"x": day, "y": None}
    assert "<lastmod>2023-11-16</lastmod>" in web.answer("https://a.example/sitemap.xml", START + 4 * DAY).body
    assert listed(web, 5.0) == {"x": START + 5 * DAY, "y": None}
    assert listed(web, 8.0) == {"y": START + 7 * DAY - 60.0}


def test_large_hosts_have_an_index_whose_dates_move_with_their_parts(web, monkeypatch):
    monkeypatch.setattr(listings, "PART", 1)
    answer = web.answer("https://a.example/sitemap.xml", START + 4.5 * DAY)
    found = list(read_sitemap(answer.body.encode()))
    assert [(entry.url[-5], entry.lastmod, entry.is_index) for entry in found] == [
        ("0", START + 2 * DAY, True),
        ("1", START + 4 * DAY, True),
    ]
    assert listed(web, 4.5, "/sitemap-1.xml") == {"y": None}
    assert web.answer("https://a.example/sitemap-2.xml", START) is None


def test_feeds_hold_what_was_created_or_signalled_last(web):
    answer = web.answer("https://a.example/feed.xml", START + 5.5 * DAY)
    assert answer.body.index("/x</id>") < answer.body.index("/y</id>")
    assert len(read_feed(answer.body.encode())) == 2
    tags = [web.answer("https://a.example/feed.xml", START + days * DAY).headers["ETag"] for days in (0, 1, 2, 6)]
    assert tags[0] == tags[1]
    assert len(set(tags)) == 3


def test_other_paths_and_hosts_have_nothing(web):
    assert "Sitemap: https://a.example/sitemap.xml" in web.answer("https://a.example/robots.txt", START).body
    assert web.answer("https://a.example/z", START) is None
    assert web.answer("https://b.example/sitemap.xml", START) is None
