"""Clocks: their time is an integral, values go by it, picks equal the largest values whatever is published."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.clocks import Clock
from scipy import integrate

from recrawl import Pages, Scheduler
from recrawl.errors import ParameterError
from recrawl.schedule.exact import access
from recrawl.schedule.exact.kernels.queries import reaches_at

PACES = st.floats(0.01, 50.0)
SEEDS = st.integers(0, 2**32 - 1)


def clocked(rng: np.random.Generator, n: int, groups: int, *, gamma: bool = True, **options) -> Scheduler:
    """Pages of all kinds; some follow no clock."""
    evidence = rng.uniform(0.2, 3.0, n) if gamma else np.inf
    pages = Pages(rng.gamma(0.5, 0.04, n) + 1e-6, rng.uniform(0.1, 2.0, n), evidence=evidence)
    scheduler = Scheduler(pages, budget=n / 20.0, **options)
    scheduler.relate(2.0, 5.0)
    scheduler.join(np.arange(n), rng.integers(-1, groups, n))
    return scheduler


def publish_any(scheduler: Scheduler, rng: np.random.Generator, group: int, now: float, spread: float = 0.7) -> None:
    paces = np.exp(rng.normal(0.0, spread, int(rng.integers(0, 65))))
    scheduler.publish(group, paces, float(np.exp(rng.normal(0.0, spread))), now)


# --- the clock -------------------------------------------------------------------------------------------------------


@given(
    span=st.sampled_from([0.5, 1.0, 3.7]),
    memory=st.floats(0.1, 100.0),
    start=st.sampled_from([-300.0, 0.0, 5e3]),
    steps=st.lists(st.tuples(st.floats(0.0, 90.0), st.lists(PACES, max_size=64), PACES), max_size=6),
    asked=st.lists(st.tuples(st.floats(-200.0, 500.0), st.floats(0.0, 400.0)), min_size=1, max_size=8),
)
def test_clock_time_is_the_integral_of_the_pace(span, memory, start, steps, asked):
    """Before the ring, within it, across its ends, after the last publication, and where nothing was published."""
    scheduler, clock, now = Scheduler(Pages([1.0]), start=start), Clock(span, memory), start
    scheduler.relate(span, memory)
    scheduler.join([0], 0)
    for step, paces, ahead in steps:
        now += step
        scheduler.publish(0, paces, ahead, now)
        clock.publish(paces, ahead, now)
    for begin, length in asked:
        since, until = start + begin, start + begin + length
        found = scheduler.clock(0, since, until)
        assert found == pytest.approx(clock.between(since, until), rel=1e-6, abs=1e-9)
        assert access.clock_between(scheduler, 0, since, until) == found
        middle = 0.5 * (since + until)
        assert scheduler.clock(0, since, middle) + scheduler.clock(0, middle, until) == pytest.approx(found, abs=1e-9)
    assert scheduler.clock(0, now, now - 1.0) == 0.0


@pytest.mark.parametrize("ends", [(-80.0, -70.0), (-80.0, 9.0), (0.3, 1.1), (7.0, 9.0), (9.5, 40.0), (-80.0, 40.0)])
def test_the_twin_integrates_its_own_pace(ends):
    rng, clock = np.random.default_rng(1), Clock(1.0, 6.0, tail=1.7)
    clock.publish(rng.uniform(0.1, 5.0, 32).tolist(), 2.0, 4.5)
    clock.publish(rng.uniform(0.1, 5.0, 3).tolist(), 0.2, 8.25)
    edges = sorted({ends[0], ends[1], *(e for e in [*range(-30, 10), 8.25] if ends[0] < e < ends[1])})
    pieces = (integrate.quad(clock.pace, a, b)[0] for a, b in pairwise(edges))
    assert clock.between(*ends) == pytest.approx(sum(pieces), rel=1e-9)


def test_a_clock_without_a_publication_is_real_time():
    pages = Pages([0.02, 0.3], [1.0, 2.0], evidence=[0.7, np.inf])
    alone, clocks = Scheduler(pages, budget=1.0), Scheduler(pages, budget=1.0)
    clocks.relate(1.0, 5.0)
    clocks.join([0, 1], [0, 1])
    for now in (0.01, 1.0, 30.0, 1e4):
        assert clocks.value([0, 1], now).tolist() == alone.value([0, 1], now).tolist()


@pytest.mark.parametrize("objective", ["freshness", "harmonic", "age"])
def test_the_value_is_that_after_the_clock_time(objective):
    pages = Pages([0.02, 0.3], [1.0, 2.0], evidence=[0.7, np.inf])
    scheduler = Scheduler(pages, budget=1.0, objective=objective)
    scheduler.relate(1.0, 5.0)
    scheduler.join([0], 0)
    scheduler.publish(0, [3.0, 0.5, 8.0], 2.0, 9.5)
    for now in (9.5, 12.0, 80.0):
        plain = Scheduler(pages, budget=1.0, objective=objective)
        assert scheduler.value([0], now) == pytest.approx(plain.value([0], scheduler.clock(0, 0.0, now)), rel=1e-9)
        assert scheduler.value([1], now) == pytest.approx(plain.value([1], now), rel=1e-12)


def test_given_crawl_rates_and_floors_go_by_real_time():
    scheduler = Scheduler(Pages([1.0, 1.0]), objective="rates")
    scheduler.set_crawl_rate([0, 1], [0.5, 2.0])
    scheduler.relate(1.0, 5.0)
    scheduler.join([0], 0)
    scheduler.publish(0, [30.0, 30.0], 30.0, 1.0)
    assert scheduler.value([0, 1], 2.0).tolist() == [1.0, 4.0]
    assert scheduler.pick(2.0, 2).tolist() == [1, 0]
    scheduler = Scheduler(Pages([0.1, 0.1]), floor=0.5)
    scheduler.relate(1.0, 5.0)
    scheduler.join([0], 0)
    scheduler.publish(0, [0.01], 0.01, 0.5)
    assert scheduler.value([0, 1], 1.9)[0] < scheduler.value([0, 1], 1.9)[1] < 1.0
    assert (scheduler.value([0, 1], 2.0) > 1e200).all()
    scheduler._check()


def test_the_tail_counts_before_the_oldest_bin():
    scheduler = Scheduler(Pages([0.1]), start=-100.0)
    scheduler.relate(1.0, 5.0)
    scheduler.join([0], 0)
    scheduler.publish(0, np.full(64, 2.0), 1.0, 64.0 - 1e-9)
    access.set_tails(scheduler, np.array([3.0]))
    access.place_all(scheduler)
    assert scheduler.clock(0, -10.0, 1.0) == pytest.approx(3.0 * 10.0 + 2.0)
    begin, paces = access.paces(scheduler, 0)
    assert (begin, paces.tolist()) == (0.0, [2.0] * 64)
    scheduler._check()


# --- wake times ------------------------------------------------------------------------------------------------------


@given(seed=SEEDS, objective=st.sampled_from(["freshness", "freshness", "harmonic", "age"]), delayed=st.booleans())
def test_no_page_wakes_late(seed, objective, delayed):
    """Before the time that is said a page stays below the level, also where it has signals that come late."""
    rng, n = np.random.default_rng(seed), 30
    signals = {}
    if objective == "freshness":
        recall = rng.choice([0.0, 0.5, 0.9], n)
        signals = {"recall": recall, "false_rate": np.where(recall > 0, 0.2, 0.0)}
    evidence = np.where(signals.get("recall", np.zeros(n)) > 0, np.inf, rng.choice([0.5, 1.0, 4.0, np.inf], n))
    pages = Pages(10 ** rng.uniform(-4, 1, n), rng.uniform(0.1, 2.0, n), evidence=evidence, **signals)
    delay = {"delay": ([0.1, 6.0], [0.3, 0.7])} if delayed and signals else {}
    scheduler = Scheduler(budget=2.0, objective=objective, **delay)
    scheduler.add(pages, 0.0, fetched_at=-rng.exponential(30.0, n))
    scheduler.relate(2.0, float(rng.choice([0.5, 5.0, 50.0])))
    scheduler.join(np.arange(n), rng.integers(-1, 4, n))
    for k in range(4):
        publish_any(scheduler, rng, k, 1.0 + k, 1.5)
    if signals:
        scheduler.signal(rng.integers(0, n, 10), 5.0)
    now, ids = 5.0 + rng.exponential(3.0), np.arange(n)
    value = scheduler.value(ids, now)
    for i in ids.tolist():
        level = value[i] * (1.0 + rng.exponential(1.0)) + 1e-6
        for known in (value[i], -1.0):
            wake = reaches_at(scheduler._memory.header, i, now, level, known)
            assert wake >= now
            if wake > now:
                assert scheduler.value([i], min(wake, 1e12))[0] <= level * (1.0 + 1e-9)


def test_a_page_sleeps_for_most_of_the_way():
    """What is left to later publications is at most half of the clock time to the level."""
    scheduler = Scheduler(Pages([0.1], evidence=2.0))
    scheduler.relate(1.0, 5.0)
    scheduler.join([0], 0)
    for ahead in (0.05, 0.5, 1.0, 3.0, 20.0):
        now = access.now(scheduler) + 1.0
        scheduler.publish(0, [1.0], ahead, now)
        for level in (0.5, 3.0):
            value = scheduler.value([0], now)[0]
            wake = reaches_at(scheduler._memory.header, 0, now, level, value)
            until = wake
            while scheduler.value([0], until)[0] < level:
                until += 0.01
            assert scheduler.clock(0, now, wake) >= 0.45 * scheduler.clock(0, now, until)


# --- picks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", range(10))
def test_a_pick_is_the_largest_value(case: int) -> None:
    rng = np.random.default_rng(case)
    n = 150
    objective = ("freshness", "freshness", "freshness", "harmonic", "age")[case % 5]
    scheduler = clocked(rng, n, (1, 12)[case % 2], gamma=case % 4 > 1, objective=objective)
    ids, now = np.arange(n), 0.0
    for step in range(400):
        now += rng.exponential(0.1) * (50.0 if step == 200 else 1.0)
        value = scheduler.value(ids, now)
        picked = scheduler.pick(now, int(rng.integers(1, 4)))
        assert np.sort(value)[::-1][: len(picked)] == pytest.approx(value[picked], rel=1e-9)
        scheduler.record(picked, now)
        publish_any(scheduler, rng, int(rng.integers(12)), now, (0.02, 0.7)[step % 2])
        if step % 20 == 0:
            scheduler._check()
        if step % 100 == 50:
            scheduler.join(rng.choice(n, 20, replace=False), rng.integers(-1, 14, 20))
        if step == 300:
            scheduler = Scheduler.restore(scheduler.state())


def test_a_clock_that_runs_faster_raises_those_not_crawled_since() -> None:
    scheduler = Scheduler(Pages(np.full(4, 0.01), evidence=2.0), budget=1.0)
    scheduler.relate(1.0, 5.0)
    scheduler.join(np.arange(4), [0, 0, 0, 1])
    scheduler.pick(10.0, 4)
    scheduler.record([1], 13.0)  # crawled after most of the busy time
    scheduler.release([0, 2, 3], 13.0)
    before = scheduler.value(np.arange(4), 14.0)
    scheduler.publish(0, [6.0, 6.0, 6.0, 1.0], 1.0, 14.0)
    after = scheduler.value(np.arange(4), 14.0)
    assert after[2] > 1.5 * before[2]
    assert after[1] < 1.3 * before[1] * 6.0**2
    assert after[3] == before[3]
    scheduler.publish(0, [1.0, 1.0, 1.0, 1.0], 1.0, 14.0)
    assert scheduler.value(np.arange(4), 14.0) == pytest.approx(before)


def test_values_only_grow_while_nothing_is_published() -> None:
    rng = np.random.default_rng(5)
    for case in range(10):
        scheduler = clocked(rng, 40, 3, gamma=bool(case % 2))
        for k in range(3):
            publish_any(scheduler, rng, k, 5.0)
        values = np.stack([scheduler.value(np.arange(40), now) for now in 5.0 + np.geomspace(1e-3, 1e3, 60)])
        assert (np.diff(values, axis=0) >= -1e-12 * values[1:]).all()


def values_per_pick(scheduler: Scheduler, rng: np.random.Generator, every: float, picks: int, count: int) -> float:
    """Values computed for each of the last picks, one page at a time; after each its group's clock moves a little."""
    now, evaluated, ahead = 0.0, 0, {}
    for step in range(picks):
        now += every
        if step == picks - count:
            evaluated = scheduler.stats["evaluated"]
        picked = scheduler.pick(now, 1)
        scheduler.record(picked, now)
        group = int(access.group_numbers(scheduler, picked)[0])
        if group >= 0:
            ahead[group] = math.exp(0.9 * math.log(ahead.get(group, 1.0)) + rng.normal(0.0, 0.1))
            scheduler.publish(group, [ahead[group]], ahead[group], now)
    return (scheduler.stats["evaluated"] - evaluated) / count


@pytest.mark.slow
def test_a_large_group_is_not_scanned_at_each_publication() -> None:
    n = 20_000
    rng = np.random.default_rng(1)
    scheduler = clocked(rng, n, 1)
    assert values_per_pick(scheduler, rng, 20.0 / n, 3000, 1000) < n / 20


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda s: s.relate(0.0, 1.0), "span"),
        (lambda s: s.relate(1.0, math.inf), "memory"),
        (lambda s: s.join([0], 0), "relate must come first"),
        (lambda s: s.publish(0, [1.0], 1.0, 0.0), "relate must come first"),
        (lambda s: s.clock(0, 0.0, 1.0), "relate must come first"),
        (lambda s: (s.relate(1.0, 1.0), s.clock(99, 0.0, 1.0)), "group 99"),
        (lambda s: (s.relate(1.0, 1.0), s.join([0], 0.5)), "group"),
        (lambda s: (s.relate(1.0, 1.0), s.publish(-1, [1.0], 1.0, 0.0)), "group"),
        (lambda s: (s.relate(1.0, 1.0), s.publish(0, [0.0], 1.0, 0.0)), "paces"),
        (lambda s: (s.relate(1.0, 1.0), s.publish(0, [1.0] * 65, 1.0, 0.0)), "paces"),
        (lambda s: (s.relate(1.0, 1.0), s.publish(0, [1.0], math.nan, 0.0)), "ahead"),
        (lambda s: (s.relate(1.0, 1.0), s.publish(0, [1.0], 1.0, math.nan)), "now"),
    ],
)
def test_wrong_use_says_so(call, says) -> None:
    with pytest.raises(ParameterError, match=says):
        call(Scheduler(Pages([0.1, 0.2]), budget=1.0))


def test_a_publication_leaves_due_pages_to_the_next_pick() -> None:
    s = Scheduler(Pages([1.0, 1.0]))
    s.relate(2.0, 5.0)
    s.add(Pages([1.0, 1.0]), 3.0)
    s.update([2, 3], importance=1.0)  # placed at the time of the scheduler, before their fetch
    s.publish(0, [], 40.0, 3.0 + 1e-9)
    s._check()
    assert sorted(s.pick(3.0 + 1e-9, 4).tolist()) == [0, 1, 2, 3]
