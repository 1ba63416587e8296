"""Near pages of which not all are evaluated: bounds hold, the best is found, few are evaluated."""

from __future__ import annotations

import numpy as np
import pytest

from recrawl import Pages, Scheduler
from recrawl._jit import jit
from recrawl.model.kernels.fresh import fresh_value, posterior_parts, posterior_value
from recrawl.schedule.exact import layout as at
from recrawl.schedule.exact.kernels.near import _AHEAD, _STEEPER
from recrawl.schedule.exact.kernels.values import value_and_growth
from recrawl.schedule.exact.kernels.view import opened


@jit
def bounds(header, ids, now, out):
    for k in range(ids.size):
        out[k] = value_and_growth(opened(header), ids[k], now)


@jit
def parts(x, shape, out):
    for k in range(x.size):
        out[k] = posterior_parts(x[k], shape[k])


def grouped(case: int, n: int = 400) -> tuple[Scheduler, np.random.Generator]:
    """Pages of all kinds in groups that have had news, with costs."""
    rng = np.random.default_rng(case)
    evidence = np.where(rng.random(n) < 0.2, np.inf, rng.uniform(0.05, 5.0, n))
    pages = Pages(
        rng.gamma(0.5, 0.1, n) + 1e-7, rng.uniform(0.1, 2.0, n), evidence=evidence, cost=rng.uniform(0.5, 3, n)
    )
    scheduler = Scheduler(pages, budget=n / 20.0)
    scheduler.relate(2.0, baseline=0.01 * (case % 4 > 0))
    scheduler.join(np.arange(n), rng.integers(-1, 12, n), rng.uniform(0.0, 1.5, n))
    for now in np.arange(1.0, 30.0):
        ids = scheduler.pick(now, 12)
        since = scheduler._memory.state.rec["last"][ids].copy()
        scheduler.record(ids, now)
        scheduler.notice(ids, now, since=since, changed=rng.random(12) < 0.4, own=0.02)
    return scheduler, rng


@pytest.mark.slow
@pytest.mark.parametrize("case", range(12))
def test_no_value_outgrows_its_bound(case):
    scheduler, rng = grouped(case)
    ids, out = np.arange(400), np.empty((400, 5))
    for now in (29.0, 29.7, 45.0, 300.0):
        bounds(scheduler._memory.header, ids, now, out)
        value, span, growth = out[:, 0], out[:, 1], out[:, 2]
        np.testing.assert_allclose(value, scheduler.value(ids, now), rtol=1e-12)
        held = (span > 0) & np.isfinite(growth)
        assert held.sum() > 300
        for share in (1e-3, 0.1, 0.5, 1.0):
            for i in rng.choice(ids[held], 60, replace=False):
                time = share * _AHEAD * span[i]
                later = scheduler.value([i], now + time)[0]
                assert later <= (value[i] + _STEEPER * growth[i] * time) * (1 + 1e-9)
                assert later >= value[i] * (1 - 1e-12)


@pytest.mark.parametrize("case", [0, 1, 3, 4])
def test_bounds_are_not_far_off(case):
    scheduler, _ = grouped(case)
    ids, out = np.arange(400), np.empty((400, 5))
    bounds(scheduler._memory.header, ids, 40.0, out)
    held = (out[:, 1] > 0) & np.isfinite(out[:, 2]) & (out[:, 0] > 0)
    actual = (scheduler.value(ids, 40.001) - out[:, 0]) / 0.001
    ratio = out[held, 2] / actual[held]
    assert 0.99 < np.median(ratio) < 1.5


@pytest.mark.parametrize("case", range(6))
def test_news_of_a_group_lift_no_member_beyond_its_bound(case):
    scheduler, rng = grouped(case)
    ids, out = np.arange(400), np.empty((400, 5))
    state, now = scheduler._memory.state, 31.0
    tried = 0
    for _ in range(60):
        bounds(scheduler._memory.header, ids, now, out)
        page = int(rng.integers(400))
        group = int(state.member["group"][page])
        if group < 0:
            continue
        before = state.groups[group]["risen"]
        scheduler.notice([page], now, since=now - rng.uniform(0.1, 30.0), changed=rng.random() < 0.5, own=0.02)
        rise = state.groups[group]["risen"] - before
        mine = np.flatnonzero((state.member["group"][:400] == group) & np.isfinite(out[:, 4]) & (ids != page))
        mine = mine[out[mine, 4] * rise < 0.1]
        after = scheduler.value(mine, now) if len(mine) else np.zeros(0)
        assert (after <= (out[mine, 0] + rise * out[mine, 3]) * (1 + 1e-9)).all()
        tried += len(mine)
        now += 0.05
    assert tried > 300


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 3])
def test_few_values_are_evaluated_among_related_pages(n):
    """Most pages have a group with frequent outcomes; every pick is checked against the others, too."""
    rng = np.random.default_rng(1)
    n_pages, budget, now = 20_000, 400.0, 0.0
    pages = Pages(rng.gamma(0.5, 0.04, n_pages) + 1e-4, rng.pareto(1.5, n_pages) + 0.1, evidence=1.0)
    scheduler = Scheduler(budget=budget, policy="no-signals")
    scheduler.add(pages, 0.0, fetched_at=-rng.random(n_pages) * 50.0)
    scheduler.relate(2.0, baseline=0.005)
    scheduler.join(np.arange(n_pages), np.arange(n_pages) // 50, 0.5)
    for rounds in (3_000, 3_000):
        before = scheduler.stats
        for k in range(rounds):
            now += n / budget
            ids = scheduler.pick(now, n)
            if k % 100 == 0:
                value = scheduler.value(np.arange(n_pages), now)
                np.testing.assert_allclose(value[ids], -np.sort(-value)[: len(ids)], rtol=1e-12)
            since = scheduler._memory.state.rec["last"][ids].copy()
            scheduler.record(ids, now)
            scheduler.notice(ids, now, since=since, changed=rng.random(len(ids)) < 0.3, own=0.02)
        after = scheduler.stats
        cost = (after["evaluated"] - before["evaluated"]) / (after["decisions"] - before["decisions"])
    scheduler._check()
    assert cost < 70


def test_all_pages_are_placed_anew_at_once():
    """Leased, paused and parked pages stay what they are; levels suit the new values; picks are the largest."""
    scheduler, _ = grouped(1)
    now = 40.0
    leased = scheduler.pick(now, 5)
    paused = np.setdiff1d(np.arange(50), leased)[:7]
    scheduler.pause(paused)
    for baseline in (0.0, 1.0, 0.01):
        scheduler.relate(2.0, baseline=baseline)
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


def test_a_gamma_posterior_in_parts_is_what_it_is_as_a_whole():
    rng = np.random.default_rng(2)
    x = np.concatenate([10 ** rng.uniform(-8, 6, 4000), [0.1, 0.0999999, 1.0, 1e301, np.inf]])
    shape = np.concatenate(
        [10 ** rng.uniform(-2, 4, 3000), 1.0 + 10 ** rng.uniform(-8, -1, 1000), [1.0, 0.95, 1.05, 2.0, 0.5]]
    )
    out = np.empty((len(x), 3))
    parts(x, shape, out)
    exponent = shape * np.log1p(x / shape)
    np.testing.assert_allclose(out[:, 0], exponent, rtol=1e-14)
    np.testing.assert_allclose(out[:, 1], [fresh_value(e) for e in exponent], rtol=1e-11)
    np.testing.assert_allclose(out[:, 2], [posterior_value(a, b) for a, b in zip(x, shape, strict=True)], rtol=1e-11)
