"""Learning loops: the compiled one equals a plain one, epochs find the rates, planners keep to the budget."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from recrawl import Pages, ParameterError
from recrawl.reproduce.grimes.figures import simulated_pages, total_cost
from recrawl.reproduce.grimes.unknown import cost_over_time
from recrawl.simulate import Trace, bing_like
from recrawl.simulate.learning.learning import CrawlIntervals, crawls_by_estimate, crawls_every, learn
from recrawl.simulate.learning.planners import PLANNERS, is_complete


def plain_loop(changed_at, end, ratio):
    """Grimes §5 written out: the 1 h / 57 h MLE by bisection, wait, look, repeat."""
    seen, quiet, now, crawled = [1.0], 57.0, 0.0, []
    while True:
        rate = brentq(
            lambda x, quiet=quiet: sum(t / math.expm1(min(x * t, 700.0)) for t in seen) - quiet, 1e-9, 1e3, xtol=1e-15
        )
        crawl = now + ratio / rate
        within = [at for at in changed_at if now < at <= min(crawl, end)]
        crawled.append((min(crawl, end), within[0] if within else math.inf))
        if crawl >= end:
            return crawled
        if within:
            seen.append(crawl - now)
        else:
            quiet += crawl - now
        now = crawl


@pytest.mark.parametrize("ratio", [0.2, 1 / 3, 1.5])
def test_compiled_loop_equals_the_plain_one(ratio):
    trace = simulated_pages(5, 900.0, np.random.default_rng(2))
    crawled = crawls_by_estimate(trace, ratio)
    for page in range(5):
        rows = slice(crawled.offset[page], crawled.offset[page + 1])
        plain = plain_loop(trace.changed_at[trace.offset[page] : trace.offset[page + 1]], 900.0, ratio)
        assert crawled.until[rows] == pytest.approx([until for until, _ in plain], rel=1e-6)
        assert crawled.since[rows].tolist() == pytest.approx([since for _, since in plain], rel=1e-6)


def test_crawls_every_by_hand():
    crawled = crawls_every(Trace(0.0, 10.0, offset=[0, 3, 3], changed_at=[1.0, 2.5, 9.0]), 4.0)
    assert crawled.until.tolist() == [4, 8, 10, 4, 8, 10]
    assert crawled.since.tolist() == [1, math.inf, 9, math.inf, math.inf, math.inf]
    assert crawled.stale.tolist() == [3, 0, 1, 0, 0, 0]
    assert crawled.whole.tolist() == [True, True, False] * 2
    assert total_cost(crawled).tolist() == [6, 2]
    assert cost_over_time(crawled, np.array([0.0, 2.0, 4.0, 9.5, 10.0])).tolist() == [0, 1, 5, 7.5, 8]


def test_cost_over_time_ends_at_the_total():
    trace = simulated_pages(20, 500.0, np.random.default_rng(1))
    for crawled in (crawls_by_estimate(trace, 0.5), crawls_every(trace, 12.0)):
        assert cost_over_time(crawled, np.array([500.0]))[0] == pytest.approx(total_cost(crawled).sum())
        assert isinstance(crawled, CrawlIntervals)


@pytest.mark.parametrize("name", PLANNERS)
def test_planners_spend_the_budget(name):
    pages = bing_like(500, np.random.default_rng(0))
    planner = PLANNERS[name]
    rate = planner.rates(planner.sees(pages), 100.0)
    assert rate.sum() == pytest.approx(100.0, rel=1e-6)
    assert planner.cost(pages, rate, "freshness") > 0


def test_rates_by_importance_are_proportional():
    pages = Pages([0.1, 5.0, 1.0], [1.0, 2.0, 4.0])
    rate = PLANNERS["LCA"].rates(pages, 7.0)
    assert rate == pytest.approx([1.0, 2.0, 4.0], rel=1e-6)


def test_learning_finds_the_rates():
    pages = bing_like(2000, np.random.default_rng(3))
    planner = PLANNERS["LC"]
    costs = [
        planner.cost(pages, rate, "harmonic")
        for rate in learn(pages, 2000.0, planner, np.random.default_rng(4), epochs=25)
    ]
    known = planner.cost(pages, planner.rates(pages, 2000.0), "harmonic")
    assert known <= min(costs) * 1.02
    assert costs[-1] - known < 0.25 * (costs[0] - known)


def test_complete_pages_are_crawled_no_more_often_than_they_change():
    pages = Pages([0.5, 2.0, 1.0], [9.0, 9.0, 1.0], recall=[1.0, 1.0, 0.0])
    for rate in learn(pages, 3.0, PLANNERS["LC"], np.random.default_rng(0), epochs=5):
        assert (rate[is_complete(pages)] <= pages.change_rate[is_complete(pages)]).all()


def test_bad_input():
    trace = Trace(0.0, 10.0, offset=[0, 1], changed_at=[1.0])
    with pytest.raises(ParameterError, match="ratio"):
        crawls_by_estimate(trace, 0.0)
    with pytest.raises(ParameterError, match="pseudo"):
        crawls_by_estimate(trace, 1.0, ((1.0, True),))
    with pytest.raises(ParameterError, match="interval"):
        crawls_every(trace, math.inf)
