"""Reading never writes: a scheduler whose pages are asked about goes on exactly like one that is left alone."""

import math

import numpy as np
import pytest

from recrawl import Pages, Scheduler
from recrawl.schedule.exact.kernels.queries import reaches_at

from .reads import assert_reading_changes_nothing, every_byte


def clocked(rng: np.random.Generator, n: int) -> Scheduler:
    recall = rng.choice([0.0, 0.0, 0.0, 0.5], n)
    pages = Pages(rng.gamma(0.5, 0.04, n) + 1e-6, rng.uniform(0.1, 2.0, n), recall, np.where(recall > 0, 0.05, 0.0))
    scheduler = Scheduler(pages, budget=n / 20.0)
    scheduler.relate(2.0, 5.0)
    scheduler.join(np.arange(n), rng.integers(0, 3, n))
    return scheduler


@pytest.mark.parametrize("now", [0.0, 5.0])
@pytest.mark.parametrize("evidence", [math.inf, 3.0])
@pytest.mark.parametrize("objective", ["freshness", "harmonic", "age"])
def test_no_page_reaches_a_level_beyond_all_values(objective, evidence, now):
    """Also where the level times cost over importance is too large for a float."""
    pages = Pages([0.0, 0.5, 1e-9, 2.0], [1.0, 1.0, 0.0, 1e-12], evidence=evidence)
    scheduler = Scheduler(pages, budget=1.0, objective=objective)
    header, value = scheduler._memory.header, scheduler.value(range(4), now)
    assert [reaches_at(header, i, now, math.inf, value[i]) for i in range(4)] == [math.inf] * 4
    assert reaches_at(header, 3, now, 1e300, value[3]) == math.inf
    assert all(reaches_at(header, i, now, level, value[i]) >= now for i in range(4) for level in (0.0, 1e-3, 10.0))


@pytest.mark.parametrize("seed", range(3))
def test_asking_when_pages_are_worth_a_crawl_leaves_the_scheduler_as_it_was(seed: int) -> None:
    rng, n, now = np.random.default_rng(seed), 300, 0.0
    scheduler = clocked(rng, n)
    alone = Scheduler.restore(scheduler.state())
    ids = np.arange(n)
    for step in range(300):
        now += rng.exponential(0.1)
        if step % 10 == 0:
            before = every_byte(scheduler)
            value = scheduler.value(ids, now)
            for i in ids.tolist():
                reaches_at(scheduler._memory.header, i, now, scheduler.threshold, value[i])
            assert every_byte(scheduler) == before
            assert_reading_changes_nothing(scheduler, now)
            scheduler._check()
        picked = scheduler.pick(now, 2)
        assert picked.tolist() == alone.pick(now, 2).tolist()
        paces, heard = rng.uniform(0.5, 2.0, 3), rng.integers(0, n, 2)
        for each in (scheduler, alone):
            each.record(picked, now)
            each.publish(step % 3, paces, paces[0], now)
            each.signal(heard, now)
    assert scheduler.stats == alone.stats
