"""The objective "rates": the most overdue page first, checked against a search over all pages."""

import numpy as np
import pytest

from recrawl import Pages, ParameterError
from recrawl.schedule import Scheduler


def most_overdue(rate, last, now, n, leased=()):
    worth = np.where(np.isin(np.arange(len(rate)), leased), 0.0, rate * np.maximum(now - last, 0.0))
    order = np.argsort(-worth, kind="stable")[:n]
    return order[worth[order] > 0]


def test_picks_are_those_of_a_search_over_all_pages():
    rng = np.random.default_rng(5)
    n, now = 400, 0.0
    rate, last = rng.lognormal(-2.0, 1.5, n), np.zeros(n)
    rate[:20] = 0.0
    scheduler = Scheduler(Pages(rng.uniform(0.1, 1.0, n)), budget=rate.sum(), objective="rates")
    scheduler.set_crawl_rate(np.arange(n), rate)
    for step in range(600):
        now += rng.exponential(3.0 / rate.sum())
        if step % 97 == 50:
            some = rng.choice(n, 40, replace=False)
            rate[some] = rng.lognormal(-2.0, 1.5, 40)
            scheduler.set_crawl_rate(some, rate[some])
        if step == 300:
            scheduler = Scheduler.restore(scheduler.state())
        found = scheduler.pick(now, 3)
        assert found.tolist() == most_overdue(rate, last, now, 3).tolist()
        scheduler.record(found, now)
        last[found] = now


def test_crawls_come_at_their_rates():
    rng = np.random.default_rng(6)
    rate = rng.uniform(0.1, 1.0, 200)
    rate /= rate.sum()
    scheduler = Scheduler(Pages(np.ones(200)), budget=1.0, objective="rates")
    scheduler.set_crawl_rate(np.arange(200), rate)
    count = np.zeros(200)
    for k in range(1, 5001):
        page = scheduler.pick(float(k), 1)
        scheduler.record(page, float(k))
        count[page] += 1
    assert np.abs(count - 5000 * rate).max() <= 3
    assert scheduler.next_at(5000.0) == 5000.0


def test_crawl_rates_need_their_objective():
    with pytest.raises(ParameterError, match="crawl rates need 'rates'"):
        Scheduler(Pages([1.0])).set_crawl_rate([0], 1.0)
    with pytest.raises(ParameterError, match="crawl_rate must be finite"):
        Scheduler(Pages([1.0]), objective="rates").set_crawl_rate([0], -1.0)
