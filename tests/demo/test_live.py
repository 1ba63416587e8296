"""The demo as a whole: judged by the truth, also in memory, where a minute takes a second or two."""

import asyncio
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from recrawl.demo.judge import true_freshness
from recrawl.demo.live import LiveDemo
from recrawl.demo.verdict import second_half
from recrawl.demo.web import FEED, SITEMAP
from recrawl.demo.world import draw_world
from recrawl.errors import ParameterError
from recrawl.store import BlockingStore, MemoryStore

pytestmark = pytest.mark.slow

FORECAST = 0.06  # by which the forecast may miss the true freshness of the second half
EXPECTED = 0.2  # and what the engine believes of its copies at the moment, while it still learns
SEEDS = (1,)
ALL_SEEDS = (*SEEDS, *(pytest.param(seed, marks=pytest.mark.full) for seed in (2, 3)))


@cache
def verdict(seed):
    store = MemoryStore()
    demo = LiveDemo(store, seconds=60.0, seed=seed)
    return asyncio.run(demo.run_in_memory()), demo, BlockingStore(store)


@pytest.mark.parametrize("seed", ALL_SEEDS)
def test_the_forecast_agrees_with_the_truth(seed):
    found, _, _ = verdict(seed)
    half = found.half
    assert half.forecast.duration == pytest.approx(30.0, abs=0.3)
    assert half.holds
    assert abs(half.forecast.freshness - half.freshness) < FORECAST
    assert abs(found.expected - half.freshness) < EXPECTED


@pytest.mark.parametrize("seed", ALL_SEEDS)
def test_it_beats_uniform_and_nutch_with_the_same_requests(seed):
    found, _, _ = verdict(seed)
    assert {rival.name for rival in found.rivals} == {"uniform", "nutch"}
    for rival in found.rivals:
        assert rival.run.requests <= found.requests
        assert found.truth.freshness > rival.run.freshness


@pytest.mark.parametrize("seed", ALL_SEEDS)
def test_nothing_forbidden_nothing_imagined_and_the_budget_kept(seed):
    found, _, _ = verdict(seed)
    assert found.forbidden == 0
    assert found.detection.looks > 800
    assert (found.detection.imagined, found.detection.missed) == (0, 0)
    assert 0.9 * 15.0 * 60.0 < found.requests <= 15.0 * 61.0
    assert len(found.trace.changed_at) > 3 * found.requests  # far more changes than requests


@pytest.mark.parametrize("seed", ALL_SEEDS)
def test_polls_are_among_the_requests_and_the_crawl_without_signals_makes_none(seed):
    found, demo, store = verdict(seed)
    without = found.without_signals
    assert abs(found.requests - without.requests) <= 15
    polled = [one for one in demo._web.log if one.path in (SITEMAP, FEED) and found.trace.start < one.at]
    assert 8 < found.polls == len(polled) < 0.15 * found.requests
    assert {one.url for one in store.listings()} >= set(demo._web.feed_urls)
    other = demo._without._web.log
    assert not [one for one in other if one.path in (SITEMAP, FEED)]
    assert "shop" in {one.site for one in found.sources if one.used}
    assert all(one.signals > 0 for one in found.sources)
    right = {one.site: one.precision for one in found.sources}
    assert right["shop"] > right["archive"]


@pytest.mark.parametrize("seeds", [SEEDS, pytest.param((1, 2, 3), marks=pytest.mark.full)])
def test_signals_make_copies_fresher_with_the_same_requests(seeds):
    """On average: which gates open in a minute is chance, and much of the minute is learning."""
    runs = [(found.truth, found.without_signals.run) for found, _, _ in map(verdict, seeds)]
    assert np.mean([found.freshness - without.freshness for found, without in runs]) > 0.0
    assert np.mean([second_half(found) - second_half(without) for found, without in runs]) > 0.0
    shop = [page.number for page in draw_world(1, 60.0).pages if page.site.name == "shop"]  # it pings: no polls needed
    for found, without in runs:
        assert found.page_staleness[shop].mean() < without.page_staleness[shop].mean()


def test_the_truth_is_counted_from_the_copies_in_the_store():
    """By another way: walk through the store's own observations and the world's changes, page by page."""
    found, demo, store = verdict(1)
    begin, end = found.trace.start, found.trace.end
    urls = demo._web.urls
    copied = {url: [] for url in urls}
    for outcome in store.observations():
        if outcome.fetched and outcome.url in copied:
            copied[outcome.url].append(outcome.began_at - demo._web.started_at)
    fresh = []
    for number, url in enumerate(urls):
        changes = demo.world.trace.changed_at[slice(*demo.world.trace.offset[number : number + 2])]
        total = 0.0
        marks = sorted({begin, end, *(t for t in [*copied[url], *changes.tolist()] if begin < t < end)})
        for low, high in pairwise(marks):
            copies = [t for t in copied[url] if t <= low + 1e-6]
            total += (high - low) * bool(copies and not ((changes > copies[-1]) & (changes <= low)).any())
        fresh.append(total / (end - begin))
    assert np.isclose(np.average(fresh, weights=found.trace.importance), found.truth.freshness, atol=1e-4)


def test_a_short_demo_spends_its_budget_and_keeps_most_copies_fresh():
    """The command's short form, which its own test runs by the real clock."""
    found = asyncio.run(LiveDemo(MemoryStore(), seconds=8.0, seed=2).run_in_memory())
    assert found.seconds == pytest.approx(8.0, abs=0.1)
    assert 0.9 * 15.0 * 8.0 <= found.requests <= 15.0 * 9.0
    assert 0.3 < found.truth.freshness < 0.95
    assert found.without_copy == 0


def test_crawling_nothing_would_have_been_worse():
    found, _, _ = verdict(1)
    nothing = true_freshness(found.trace, np.zeros(0, np.int64), np.zeros(0))
    assert found.truth.freshness > nothing.freshness + 0.15


def test_figures_are_plain_numbers():
    found, _, _ = verdict(1)
    figures = found.as_dict()
    assert figures["pages"] == 500
    assert len(figures["over_time"]["recrawl"]) == 60
    assert np.isclose(np.mean(figures["over_time"]["recrawl"]), figures["freshness"], atol=1e-6)


@pytest.mark.parametrize("given", [{"seconds": 0.1}, {"budget": 0.0}, {"budget": 1000.0}, {"seed": -1}])
def test_bad_settings_are_refused(given):
    with pytest.raises(ParameterError):
        LiveDemo(MemoryStore(), **given)
