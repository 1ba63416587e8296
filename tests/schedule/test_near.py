"""Near pages of which not all are evaluated: bounds hold, the best is found, few are evaluated."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl import Pages, Scheduler
from recrawl._compile.jit import jit
from recrawl.schedule.exact import access
from recrawl.schedule.exact import layout as at
from recrawl.schedule.exact.kernels.state.view import opened
from recrawl.schedule.exact.kernels.value.clocks import write_clock
from recrawl.schedule.exact.kernels.value.values import value_and_slope


@jit
def bounds(header, ids, now, out):
    for k in range(ids.size):
        out[k] = value_and_slope(opened(header), ids[k], now)


@jit
def rise_of(header, group, first, paces, ahead, now):
    return write_clock(opened(header), group, first, paces, ahead, now)


def clocked(case: int, n: int = 400) -> tuple[Scheduler, np.random.Generator]:
    """Pages of all kinds with clocks that were published, some of them with costs or signals."""
    rng = np.random.default_rng(case)
    recall = rng.choice([0.0, 0.0, 0.6], n) if case % 3 == 1 else np.zeros(n)
    evidence = np.where((rng.random(n) < 0.2) | (recall > 0), np.inf, rng.uniform(0.05, 5.0, n))
    quality = {"recall": recall, "false_rate": 0.3 * recall} if recall.any() else {}
    pages = Pages(
        rng.gamma(0.5, 0.1, n) + 1e-7,
        rng.uniform(0.1, 2.0, n),
        evidence=evidence,
        cost=rng.uniform(0.5, 3, n),
        **quality,
    )
    objective = ("freshness", "freshness", "harmonic", "freshness", "freshness", "age")[case % 6]
    scheduler = Scheduler(pages, budget=n / 20.0, objective=objective)
    scheduler.relate(2.0, (0.3, 5.0)[case % 2])
    scheduler.join(np.arange(n), rng.integers(-1, 12, n))
    for now in np.arange(1.0, 30.0):
        ids = scheduler.pick(now, 12)
        scheduler.record(ids, now)
        if recall.any():
            scheduler.signal(rng.integers(0, n, 12), now)
        for group in rng.integers(0, 12, 4).tolist():
            scheduler.publish(group, rng.uniform(0.2, 4.0, 5), float(rng.uniform(0.2, 4.0)), now)
    return scheduler, rng


@pytest.mark.slow
@pytest.mark.parametrize("case", range(12))
def test_no_value_outgrows_its_bound(case):
    """Whatever the clock does, the value grows at most by the slope times the clock time, as long as that holds."""
    scheduler, rng = clocked(case)
    ids, out = np.arange(400), np.empty((400, 3))
    group = access.group_numbers(scheduler, ids)
    for now in (29.0, 29.7, 45.0, 300.0):
        bounds(scheduler._memory.header, ids, now, out)
        value, lift, room = out.T
        np.testing.assert_allclose(value, scheduler.value(ids, now), rtol=1e-12)
        held = np.flatnonzero((room > 0) & np.isfinite(room))
        assert len(held) > 300
        for share in (1e-3, 0.1, 0.5, 0.99):
            for i in rng.choice(held, 60, replace=False).tolist():
                time = share * room[i] / 4.0  # no clock runs faster here
                later = scheduler.value([i], now + time)[0]
                passed = time if group[i] < 0 else scheduler.clock(int(group[i]), now, now + time)
                assert passed <= room[i]
                assert later <= (value[i] + lift[i] * passed) * (1 + 1e-9)
                assert later >= value[i] * (1 - 1e-12)


@pytest.mark.parametrize("case", [0, 1, 2, 5])
def test_bounds_are_not_far_off(case):
    scheduler, _ = clocked(case)
    ids, out = np.arange(400), np.empty((400, 3))
    bounds(scheduler._memory.header, ids, 100.0, out)  # clocks run at the usual pace by then
    held = (out[:, 2] > 0) & (out[:, 1] > 1e-9)
    actual = (scheduler.value(ids, 100.001) - out[:, 0]) / 0.001
    assert 0.99 < np.median(out[held, 1] / actual[held]) < 1.3


@pytest.mark.parametrize("case", range(6))
def test_no_clock_time_rises_by_more_than_is_said(case):
    """For copies of any age, up to now and at all later times: what sleeping and near pages rely on."""
    rng = np.random.default_rng(case)
    scheduler, now = Scheduler(Pages([0.1])), 0.0
    scheduler.relate(1.0, 4.0)
    scheduler.join([0], 0)
    header, state = scheduler._memory.header, scheduler._memory.state
    for _ in range(150):
        now += rng.choice([0.0, 0.1, 0.9, 1.0, 5.0, 70.0], p=[0.1, 0.4, 0.2, 0.1, 0.15, 0.05])
        since = np.concatenate([now - rng.uniform(0, 120, 60), np.floor(now) - np.arange(40.0), [now]])
        ahead_of = np.array([0.0, 0.5, 3.0, 40.0])
        old = np.array([[scheduler.clock(0, t, now + u) for t in since] for u in ahead_of])
        pace = scheduler.clock(0, now, now + 1e-6) / 1e-6
        n = int(rng.integers(0, 33))
        ahead = float(rng.choice([0.1, 1.0, 3.0]))
        rise = rise_of(header, 0, int(np.floor(now)) - n + 1, rng.choice([0.05, 0.9, 1.0, 7.0], n), ahead, now)
        state.head["now"] = now
        new = np.array([[scheduler.clock(0, t, now + u) for t in since] for u in ahead_of])
        assert (new[0] - old[0]).max() <= rise + 1e-9
        assert (new - old).max() <= rise + max(ahead - pace, 0.0) * 4.0 + 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 3])
def test_few_values_are_evaluated_among_pages_with_clocks(n):
    """Clocks move with most crawls; every pick is checked against the others, too."""
    rng = np.random.default_rng(1)
    n_pages, budget, now = 20_000, 400.0, 0.0
    pages = Pages(rng.gamma(0.5, 0.04, n_pages) + 1e-4, rng.pareto(1.5, n_pages) + 0.1, evidence=1.0)
    scheduler = Scheduler(budget=budget, policy="no-signals")
    scheduler.add(pages, 0.0, fetched_at=-rng.random(n_pages) * 50.0)
    scheduler.relate(0.5, 5.0)
    scheduler.join(np.arange(n_pages), np.arange(n_pages) // 50)
    ahead = np.ones(n_pages // 50)
    for rounds in (3_000, 3_000):
        before = scheduler.stats
        for k in range(rounds):
            now += n / budget
            ids = scheduler.pick(now, n)
            if k % 100 == 0:
                value = scheduler.value(np.arange(n_pages), now)
                np.testing.assert_allclose(value[ids], -np.sort(-value)[: len(ids)], rtol=1e-12)
            scheduler.record(ids, now)
            for g in (ids // 50).tolist():
                ahead[g] = np.exp(0.9 * np.log(ahead[g]) + rng.normal(0.0, 0.2))
                scheduler.publish(g, [ahead[g]], ahead[g], now)
        after = scheduler.stats
        cost = (after["evaluated"] - before["evaluated"]) / (after["decisions"] - before["decisions"])
    scheduler._check()
    assert cost < 70


def test_all_pages_are_placed_anew_at_once():
    """Leased, paused and parked pages stay what they are; levels suit the new values; picks are the largest."""
    scheduler, _ = clocked(3)
    now = 40.0
    leased = scheduler.pick(now, 5)
    paused = np.setdiff1d(np.arange(50), leased)[:7]
    scheduler.pause(paused)
    for memory in (0.1, 50.0, 4.0):
        scheduler.relate(2.0, memory)
        scheduler._check()
        now += 0.5
        free = np.setdiff1d(np.arange(400), np.concatenate([leased, paused]))
        value = scheduler.value(free, now)
        ids = scheduler.pick(now, 9)
        np.testing.assert_allclose(scheduler.value(ids, now), -np.sort(-value)[:9], rtol=1e-12)
        scheduler.release(ids, now)
        scheduler._check()
    assert set(scheduler._memory.state.rec["state"][leased]) == {at.LEASED}
    assert set(scheduler._memory.state.rec["state"][paused]) == {at.PAUSED}
