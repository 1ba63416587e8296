"""What a decision costs, in values and in memory: it does not grow with the pages, the decisions, the budget."""

import numpy as np
import pytest
from profiles import examples

from recrawl.model import elapsed_at_value
from recrawl.model.pages import Pages
from recrawl.schedule.exact.scheduler import Scheduler
from recrawl.solver import solve


def settled(n_pages, *, signalled=False, start=0.0, lease=300.0, seed=1):
    """A scheduler near its steady state: pages were last fetched some random part of their interval ago."""
    rng = np.random.default_rng(seed)
    quality = {"recall": rng.uniform(0, 1, n_pages), "false_rate": rng.uniform(0, 0.3, n_pages)} if signalled else {}
    pages = Pages(rng.gamma(1.0, 1.0, n_pages), rng.uniform(0.2, 2.0, n_pages), **quality)
    budget = n_pages / 10
    rate = solve(Pages(pages.change_rate, pages.importance), budget).crawl_rate
    age = np.where(rate > 0, rng.random(n_pages) / np.maximum(rate, 1e-3), 1e3)
    scheduler = Scheduler(budget=budget, start=start, lease=lease, policy="signals" if signalled else "no-signals")
    scheduler.add(pages, start, fetched_at=start - age)
    return scheduler, budget, pages


def go_on(scheduler, now, budget, n, decisions, signals=None):
    """Pick and record n at a time at the budget's pace; (time reached, values evaluated per decision)."""
    before = scheduler.stats
    for _ in range(max(decisions // n, 1)):
        now += n / budget
        if signals is not None:
            scheduler.signal(signals(n), now)
        ids = scheduler.pick(now, n)
        scheduler.record(ids, now)
    after = scheduler.stats
    return now, (after["evaluated"] - before["evaluated"]) / (after["decisions"] - before["decisions"])


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 100])
@pytest.mark.parametrize("n_pages", [1_000, 10_000, 100_000, 1_000_000])
def test_few_values_are_evaluated(n_pages, n):
    scheduler, budget, _ = settled(n_pages)
    now, _ = go_on(scheduler, 0.0, budget, n, 3_000 if n == 1 else 30_000)
    _, cost = go_on(scheduler, now, budget, n, 5_000 if n == 1 else 50_000)
    assert cost < 50


@pytest.mark.slow
@pytest.mark.parametrize("n_pages", [1_000, 1_000_000])
def test_few_values_are_evaluated_where_rates_are_not_known_well(n_pages):
    """Every page is to be crawled when its value reaches 0.3: those about to must sleep until shortly before."""
    rng = np.random.default_rng(1)
    pages = Pages(1.0, rng.uniform(0.9, 1.1, n_pages), evidence=1.0)
    interval = elapsed_at_value(pages, 0.3)
    budget = float((1.0 / interval).sum())
    scheduler = Scheduler(budget=budget, policy="no-signals")
    scheduler.add(pages, 0.0, fetched_at=-rng.random(n_pages) * interval)
    now, _ = go_on(scheduler, 0.0, budget, 1, 3_000)
    _, cost = go_on(scheduler, now, budget, 1, 5_000)
    assert cost < 50


@pytest.mark.parametrize("n", [1, 100])
@pytest.mark.parametrize("n_pages", [1_000, 100_000])
def test_few_values_are_evaluated_with_noisy_signals(n_pages, n):
    scheduler, budget, _ = settled(n_pages, signalled=True)
    rng = np.random.default_rng(2)
    signals = lambda n: rng.integers(0, n_pages, n)  # noqa: E731
    now, _ = go_on(scheduler, 0.0, budget, n, 3_000 if n == 1 else 30_000, signals)
    _, cost = go_on(scheduler, now, budget, n, 3_000 if n == 1 else 30_000, signals)
    assert cost < 50


def exact_picks(scheduler, now, budget, n, rounds):
    """Picks that are compared with all values; what was leased comes back at once."""
    everything = np.arange(len(scheduler))
    for _ in range(rounds):
        now += n / budget
        value = scheduler.value(everything, now)
        best = -np.partition(-value, n)[:n]
        ids = scheduler.pick(now, n)
        np.testing.assert_allclose(value[ids], np.sort(best)[::-1], rtol=1e-12)
        scheduler.record(ids, now)
    return now


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 20])
@pytest.mark.parametrize("signalled", [False, True])
def test_the_budget_goes_up_and_down(n, signalled):
    scheduler, budget, _ = settled(5_000, signalled=signalled)
    rng = np.random.default_rng(3)
    signals = (lambda n: rng.integers(0, 5_000, n)) if signalled else None
    now, _ = go_on(scheduler, 0.0, budget, n, 5_000, signals)
    for factor in (1.5, 0.5, 1.5, 1.0, 0.5):
        scheduler.budget = factor * budget
        now = exact_picks(scheduler, now, factor * budget, n, 20)
        now, cost = go_on(scheduler, now, factor * budget, n, examples(10_000, usual=4_000), signals)
        now = exact_picks(scheduler, now, factor * budget, n, 20)
        scheduler._check()
        assert cost < 60


@pytest.mark.slow
def test_memory_does_not_grow():
    scheduler, budget, _ = settled(20_000, signalled=True, lease=5.0)
    rng = np.random.default_rng(4)
    signals = lambda n: rng.integers(0, 20_000, n)  # noqa: E731
    now, _ = go_on(scheduler, 0.0, budget, 200, 100_000, signals)
    size = scheduler.nbytes
    go_on(scheduler, now, budget, 200, 300_000, signals)
    assert scheduler.nbytes == size
    scheduler._check()


def test_picks_are_exact_among_many_pages():
    """Noisy signals, costs and a floor among 4000 pages; batches of changing size; pages come and go."""
    rng = np.random.default_rng(5)
    scheduler, now = Scheduler(floor=0.02, lease=2.0), 0.0
    for _ in range(4):
        m = 1_000
        pages = Pages(
            rng.gamma(0.5, 1.0, m),
            rng.choice([0, 0.1, 1, 10], m),
            recall=rng.choice([0, 0.5, 1], m),
            false_rate=rng.choice([0, 0.1, 1], m),
            cost=rng.choice([0.5, 1, 3], m),
        )
        scheduler.add(pages, now, fetched_at=now - rng.uniform(0, 10, m))
        for n in rng.choice([0, 1, 2, 7, 60, 300], 40).tolist():
            now += rng.choice([0, 1e-3, 0.01, 0.3])
            everything = np.arange(len(scheduler))
            scheduler.signal(rng.integers(0, len(scheduler), 20), now)
            scheduler.pick(now, 0)  # leases that end now
            free = scheduler._memory.state.rec["state"][: len(scheduler)] != 3
            value = np.where(free, scheduler.value(everything, now), 0.0)
            ids = scheduler.pick(now, n)
            np.testing.assert_allclose(value[ids], np.sort(value)[::-1][: len(ids)], rtol=1e-12)
            assert len(ids) == min(n, np.count_nonzero(value))
            scheduler.record(ids[: n // 2], now)
        scheduler._check()
