"""Groups: picks equal the largest values whatever groups do, and values are what the model says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from naive.groups import Group, fresh_value

from recrawl import Pages, Scheduler
from recrawl.errors import ParameterError


def related(rng: np.random.Generator, n: int, groups: int, *, gamma: bool, lost: int = 0) -> Scheduler:
    pages = Pages(
        rng.gamma(0.5, 0.04, n) + 1e-6, rng.uniform(0.1, 2.0, n), evidence=rng.uniform(0.2, 3.0, n) if gamma else np.inf
    )
    scheduler = Scheduler(pages, budget=n / 20.0)
    scheduler.relate(2.0, baseline=0.01)
    group = rng.integers(-lost, groups, n)
    scheduler.join(np.arange(n), group, rng.uniform(0.0, 1.5, n))
    return scheduler


@pytest.mark.parametrize("case", range(10))
def test_a_pick_is_the_largest_value(case: int) -> None:
    rng = np.random.default_rng(case)
    n = 150
    scheduler = related(rng, n, (1, 12)[case % 2], gamma=case % 4 > 1, lost=1)
    ids, fetched_at, now = np.arange(n), np.zeros(n), 0.0
    for step in range(400):
        now += rng.exponential(0.1) * (50.0 if step == 200 else 1.0)
        value = scheduler.value(ids, now)
        picked = scheduler.pick(now, int(rng.integers(1, 4)))
        assert np.sort(value)[::-1][: len(picked)] == pytest.approx(value[picked], rel=1e-9)
        since = fetched_at[picked]
        scheduler.record(picked, now)
        fetched_at[picked] = now
        scheduler.notice(picked, now, since=since, changed=rng.random(len(picked)) < 0.3, own=0.02)
        if step % 20 == 0:
            scheduler._check()
        if step % 100 == 50:
            some = rng.choice(n, 20, replace=False)
            scheduler.join(some, rng.integers(-1, 14, 20), rng.uniform(0.0, 2.0, 20))
        if step == 300:
            scheduler = Scheduler.restore(scheduler.state())


def test_a_change_found_raises_those_not_crawled_since_and_a_quiet_crawl_lowers_them() -> None:
    scheduler = Scheduler(Pages(np.full(4, 0.01), evidence=2.0), budget=1.0)
    scheduler.relate(1.0, baseline=0.001)
    scheduler.join(np.arange(4), [0, 0, 0, 1], 1.0)
    scheduler.pick(10.0, 4)
    scheduler.record([1], 10.0)  # crawled before the change that is found can have happened
    scheduler.release([0, 2, 3], 10.0)
    before = scheduler.value(np.arange(4), 14.0)
    scheduler.notice([0], 14.0, since=11.0, changed=True, own=0.01)
    after = scheduler.value(np.arange(4), 14.0)
    assert after[2] > 1.5 * before[2]
    assert after[3] == before[3]
    assert after[1] > before[1]
    scheduler.notice([1], 14.0, since=10.0, changed=False, own=0.01)
    assert before[2] < scheduler.value([2], 14.0)[0] < after[2]


def test_the_accumulated_excess_is_what_a_plain_group_says() -> None:
    rng = np.random.default_rng(3)
    for case in range(20):
        span, baseline = float(rng.uniform(0.5, 3.0)), float(rng.uniform(0.0, 0.05))
        scheduler = Scheduler(Pages([1e-9, 1.0]), budget=1.0)
        scheduler.relate(span, baseline=baseline, shrink=2.0)
        scheduler.join([0, 1], 0, [1.0, 0.7])
        twin, now = Group(span, baseline, 2.0), 0.0
        for _ in range(60):
            now += float(rng.exponential(span * (40 if rng.random() < 0.02 else 0.4)))
            since, changed = now - float(rng.exponential(4 * span)), bool(rng.random() < 0.3)
            scheduler.notice([1], now, since=since, changed=changed, own=0.03)
            twin.add_outcome(since, now, 0.03, 0.7, changed)
            ahead = now + float(rng.exponential(span))
            value = scheduler.value([0], ahead)[0]  # page 0: fetched at 0, almost no rate of its own, weight 1
            excess = twin.excess_since(0.0, ahead)
            rate = 1e-9 + baseline
            assert value == pytest.approx(fresh_value(excess + 1e-9 * ahead) / rate, rel=2e-5), case


def test_a_constant_hazard_gives_the_value_without_groups() -> None:
    pages = Pages([0.02, 0.3], [1.0, 2.0], evidence=[0.7, np.inf])
    alone, lone = Scheduler(pages, budget=1.0), Scheduler(pages, budget=1.0)
    lone.relate(1.0)
    lone.join([0, 1], [0, 1], 1.0)
    for now in (0.01, 1.0, 30.0, 1e4):
        assert lone.value([0, 1], now) == pytest.approx(alone.value([0, 1], now), rel=1e-9)


def test_values_only_grow_while_nothing_is_noticed() -> None:
    rng = np.random.default_rng(5)
    for case in range(30):
        scheduler = related(rng, 40, 3, gamma=bool(case % 2))
        for k in range(10):
            scheduler.notice([k], 5.0, since=0.0, changed=True, own=0.01)
        values = np.stack([scheduler.value(np.arange(40), now) for now in 5.0 + np.geomspace(1e-3, 1e3, 60)])
        assert (np.diff(values, axis=0) >= -1e-12 * values[1:]).all()


def values_per_pick(
    scheduler: Scheduler, rng: np.random.Generator, every: float, picks: int, count: int, changed: float
) -> float:
    """Values computed for each of the last picks, one page at a time, each added to its group."""
    fetched_at, now, evaluated = np.zeros(len(scheduler)), 0.0, 0
    for step in range(picks):
        now += every
        if step == picks - count:
            evaluated = scheduler.stats["evaluated"]
        picked = scheduler.pick(now, 1)
        scheduler.record(picked, now)
        scheduler.notice(picked, now, since=fetched_at[picked], changed=rng.random() < changed, own=0.02)
        fetched_at[picked] = now
    return (scheduler.stats["evaluated"] - evaluated) / count


@pytest.mark.slow
def test_a_large_group_is_not_scanned_at_each_change_found() -> None:
    n = 20_000
    rng = np.random.default_rng(1)
    scheduler = related(rng, n, 1, gamma=True)
    assert values_per_pick(scheduler, rng, 20.0 / n, 3000, 1000, 0.3) < n / 20


def test_pages_that_only_a_long_wait_can_bring_to_the_level_sleep() -> None:
    """At the rate believed now they never get there; the less is known of it, the lower the rate after a long wait."""
    n = 5000
    rng = np.random.default_rng(1)
    scheduler = Scheduler(Pages(np.full(n, 0.5), rng.pareto(1.5, n) + 0.1, evidence=1.0), budget=n / 50.0)
    scheduler.relate(2.0, baseline=0.01)
    scheduler.join(np.arange(n), np.arange(n) // 50, 1.2)
    assert values_per_pick(scheduler, rng, 50.0 / n, 1500, 1000, 0.1) < n / 20


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda s: s.relate(0.0), "span"),
        (lambda s: s.relate(1.0, baseline=-1.0), "baseline"),
        (lambda s: s.relate(1.0, shrink=math.nan), "shrink"),
        (lambda s: s.join([0], 0, 1.0), "relate must come first"),
        (lambda s: (s.relate(1.0), s.join([0], 0.5, 1.0)), "group"),
        (lambda s: (s.relate(1.0), s.join([0], 0, -1.0)), "weight"),
    ],
)
def test_wrong_use_says_so(call, says) -> None:
    with pytest.raises(ParameterError, match=says):
        call(Scheduler(Pages([0.1, 0.2]), budget=1.0))


def test_groups_count_for_freshness_alone() -> None:
    with pytest.raises(ParameterError, match="objective"):
        Scheduler(Pages([0.1]), objective="harmonic", policy="no-signals").relate(1.0)
