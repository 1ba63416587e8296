"""The scheduler at the edges: equal pages, infinite values, values at their bound, no pages, equal and large times."""

import numpy as np
import pytest

from recrawl.model.pages import Pages
from recrawl.schedule.exact.scheduler import Scheduler


def run(scheduler, times, n, signals=None):
    """Pick and record at the given times; all ids in order."""
    order = []
    for k, now in enumerate(times):
        if signals is not None:
            scheduler.signal(signals[k], now)
        ids = scheduler.pick(now, n)
        scheduler.record(ids, now)
        order += ids.tolist()
    scheduler._check()
    return order


def test_no_pages():
    scheduler = Scheduler()
    assert scheduler.pick(1.0, 5).tolist() == []
    assert scheduler.next_at(2.0) == np.inf
    assert len(scheduler) == 0
    scheduler._check()
    assert Scheduler.restore(scheduler.state()).add(Pages([1.0]), 3.0).tolist() == [0]


def test_more_wanted_than_there_are():
    scheduler = Scheduler(Pages(np.linspace(1, 2, 7)))
    assert sorted(scheduler.pick(1.0, 10_000).tolist()) == list(range(7))
    assert scheduler.pick(1.0, 10_000).tolist() == []


def test_equal_pages_take_turns():
    scheduler = Scheduler(Pages(np.ones(700)), lease=1e9)
    order = run(scheduler, 1 + 0.01 * np.arange(1400), 1)
    assert sorted(order[:700]) == list(range(700))
    assert sorted(order[700:]) == list(range(700))


def test_proof_comes_at_the_limit_of_the_value():
    pages = Pages([1.0, 2.0, 4.0], [1.0, 4.0, 2.0], recall=0.5)
    scheduler = Scheduler(pages)
    scheduler.signal([0, 0, 1], 0.5)
    np.testing.assert_array_equal(scheduler.value([0, 1], 0.6), [1.0, 2.0])
    assert scheduler.pick(0.6, 3).tolist() == [1, 0, 2]


def test_many_proofs_do_not_keep_pages_near():
    """A page whose value is at its bound and below the threshold sleeps until the threshold falls."""
    n = 5000
    pages = Pages(np.full(n, 1.0), np.r_[np.full(n - 1000, 1e-3), np.full(1000, 1.0)], recall=0.5)
    scheduler = Scheduler(pages)
    scheduler.signal(np.arange(n - 1000), 0.0)
    run(scheduler, 1 + 0.002 * np.arange(2000), 1)
    assert scheduler.stats["near"] < 200
    scheduler.pause(np.arange(n - 1000, n))
    ids = scheduler.pick(6.0, 10)
    assert len(ids) == 10
    assert (ids < n - 1000).all()


def test_values_at_their_bound():
    """Long untouched, every value is μ/Δ to the last digit: the order is that of μ/Δ."""
    pages = Pages(np.full(600, 2.0), np.linspace(1, 2, 600))
    scheduler = Scheduler(pages)
    np.testing.assert_array_equal(scheduler.value(np.arange(600), 1e6), pages.importance / 2)
    assert scheduler.pick(1e6, 600).tolist() == list(range(599, -1, -1))


def test_overdue_pages_come_first_the_longest_waiting_ahead():
    pages = Pages([0.0, 1e-9, 5.0], [0.0, 1e-9, 1e6])
    scheduler = Scheduler(floor=0.1)
    scheduler.add(pages, 0.0, fetched_at=[-0.01, 0.0, 0.0])
    assert scheduler.pick(9.9, 3).tolist() == [2, 1]
    scheduler.record([2], 9.95)
    scheduler.release([1], 9.95)
    assert scheduler.pick(10.5, 3).tolist() == [0, 1, 2]


def test_signals_at_equal_times():
    """Those at the time of the fetch are seen by it, those after it stay, all in one order or another."""
    pages = Pages(np.ones(2), recall=0.5, false_rate=1.0)
    one, two = Scheduler(pages), Scheduler(pages)
    one.signal([0, 0, 1, 0], 2.0)
    for i in (0, 1, 0, 0):
        two.signal([i], 2.0)
    np.testing.assert_array_equal(one.value([0, 1], 3.0), two.value([0, 1], 3.0))
    one.signal([0], 2.5)
    one.record([0, 1], 3.0, as_of=[2.0, 1.9])
    alone = Scheduler(pages, start=0.0)
    alone.record([0, 1], 3.0, as_of=[2.0, 1.9])
    alone.signal([0, 1], 3.0)
    np.testing.assert_array_equal(one.value([0, 1], 3.0), alone.value([0, 1], 3.0))


@pytest.mark.parametrize("signalled", [False, True])
@pytest.mark.parametrize("n", [1, 10])
def test_epoch_times_lose_nothing(signalled, n):
    """2000 pages, 1024 crawls per second, at 1.7e9 seconds: exactly the run that starts at 0."""
    rng = np.random.default_rng(5)
    m, steps = 2000, 1500
    quality = {"recall": rng.uniform(0, 1, m), "false_rate": rng.uniform(0, 0.2, m)} if signalled else {}
    pages = Pages(rng.gamma(1, 1, m), rng.uniform(0.5, 2, m), **quality)
    ticks = (1 + np.arange(steps)) * (n / 1024)
    back = np.round(rng.uniform(0, 4, m) * 1024) / 1024
    signals = [rng.integers(0, m, 2) for _ in range(steps)] if signalled else None
    orders = []
    for start in (0.0, 1.7e9):
        scheduler = Scheduler(start=start, lease=30.0)
        scheduler.add(pages, start, fetched_at=start - back)
        orders.append(run(scheduler, start + ticks, n, signals))
    assert orders[0] == orders[1]
    assert len(orders[0]) == n * steps


def test_time_standing_still():
    """Picks at one instant take one page after another, best first, as one large pick does."""
    rng = np.random.default_rng(6)
    pages = Pages(rng.gamma(1, 1, 900), rng.uniform(0.5, 2, 900))
    one, many = Scheduler(pages), Scheduler(pages)
    single = np.concatenate([one.pick(3.0, 1) for _ in range(400)])
    assert single.tolist() == many.pick(3.0, 400).tolist()


def test_huge_steps_and_tiny_ones():
    rng = np.random.default_rng(7)
    pages = Pages(rng.gamma(1, 1, 800), rng.uniform(0.5, 2, 800), recall=0.3, false_rate=0.1)
    scheduler, now = Scheduler(pages, budget=1e4, lease=1e-3), 0.0
    for step in np.tile([1e-9, 0.0, 1e12, 1e-3, 1e5, 3.0, 1e-300], 12):
        now += step
        scheduler.signal(rng.integers(0, 800, 5), now)
        best = np.sort(scheduler.value(np.arange(800), now))[::-1][:20]
        ids = scheduler.pick(now, 20)
        scheduler._check()
        fresh = scheduler.value(ids, now)
        np.testing.assert_allclose(fresh, best[: len(ids)], rtol=1e-12)
        assert len(ids) == 20 or best[len(ids)] <= 1e-290
        scheduler.record(ids, now)
