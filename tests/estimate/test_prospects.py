"""Prospects against what they are defined by: integrals, simulated schedules, the solver."""

import numpy as np
import pytest
from scipy.integrate import quad

from recrawl import Observations, Pages, ParameterError, estimate_change_rate, solve
from recrawl.estimate import GammaPrior
from recrawl.estimate.prospects import (
    History,
    Prospects,
    changed_share,
    fresh_time,
    freshness_of_schedule,
    freshness_so_far,
)


@pytest.mark.parametrize("shape", [0.3, 1.0, 1.0 + 1e-12, 2.5, 400.0])
def test_fresh_time_is_the_integral_of_freshness(shape):
    gamma = GammaPrior(shape, 3.0)
    for elapsed in (1e-6, 0.5, 7.0, 400.0):
        expected = quad(lambda y: 3.0 * np.exp((1.0 - shape) * y), 0, np.log1p(elapsed / 3.0), limit=500)[0]
        assert float(fresh_time(gamma, np.array([elapsed]))[0]) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("u", [1e-9, 1e-5, 9e-5, 2e-4, 0.3, 4.0, 700.0])
def test_changed_share_is_the_mean_of_a_cut_exponential(u):
    expected = quad(lambda t: t * u * np.exp(-u * t), 0, 1)[0] / -np.expm1(-u)
    assert float(changed_share(np.array([u]))[0]) == pytest.approx(expected, rel=1e-4)


def crawled(rate, interval, days, rng):
    """Pages that change at rates, each crawled at an interval from a phase of its own; how fresh they truly were."""
    offset, gaps, flags, since, fresh, total = [0], [], [], [], 0.0, 0.0
    for one in rate:
        changes = np.cumsum(rng.exponential(1 / one, int(3 * one * days) + 50))
        crawls = np.arange(rng.random() * interval, days, interval)
        edges = np.append(crawls, days)
        first = np.append(changes, np.inf)[np.searchsorted(changes, crawls, side="right")]
        fresh += float((np.minimum(first, edges[1:]) - crawls).sum())
        total += float((edges[1:] - crawls).sum())
        gaps += np.diff(crawls).tolist()
        flags += (first[:-1] <= crawls[1:]).tolist()
        offset.append(len(gaps))
        since.append(days - crawls[-1])
    seen = Observations(offset, np.array(gaps), np.array(flags))
    return History(seen, np.ones(len(rate)), np.array(since)), fresh / total


@pytest.fixture(scope="module")
def known():
    rng = np.random.default_rng(1)
    rate = rng.gamma(1.0, 0.2, 400)
    history, truth = crawled(rate, 4.0, 120.0, rng)
    return rate, history, truth, estimate_change_rate(history.observations, day=1.0)


def test_the_past_is_described_by_its_outcomes(known):
    _, history, truth, rates = known
    found = freshness_so_far(history, rates, level=0.99)
    assert found.low <= truth <= found.high
    assert found.high - found.low < 0.02
    assert abs(freshness_of_schedule(history, rates) - truth) < 0.015
    assert history.budget == pytest.approx(400 / 4.0, rel=0.05)


def test_the_interval_of_the_past_holds_it():
    held = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        history, truth = crawled(rng.gamma(1.0, 0.2, 100), 4.0, 60.0, rng)
        found = freshness_so_far(history, estimate_change_rate(history.observations, day=1.0))
        held.append(found.low <= truth <= found.high)
    assert sum(held) >= 15, "90% of 20 is 18"


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_prospects_are_what_the_solver_reaches_on_the_true_rates(known, factor):
    rate, history, _, rates = known
    budget = factor * history.budget
    found = Prospects(rates.gamma(), history.importance, 0.9, np.random.default_rng(2)).at(budget)
    best = solve(Pages(rate), budget).freshness
    assert found.best.low - 0.01 < best < found.best.high + 0.02, "knowing the rates is worth a little more"
    assert found.uniform < found.best.freshness


def test_the_budget_of_a_target_reaches_it(known):
    _, history, _, rates = known
    prospects = Prospects(rates.gamma(), history.importance, 0.9, np.random.default_rng(2))
    budget, low, high = prospects.budget_for(0.9)
    assert prospects.at(budget).best.freshness == pytest.approx(0.9, abs=1e-6)
    assert low < budget < high
    assert prospects.at(low).best.high == pytest.approx(0.9, abs=1e-3)
    assert prospects.at(high).best.low == pytest.approx(0.9, abs=1e-3)


def test_pages_never_seen_to_change_are_not_taken_for_still():
    seen = Observations([0, 3, 6], np.ones(6), [False] * 6)
    rates = estimate_change_rate(seen, prior=GammaPrior(1.0, 2.0))
    history = History(seen, np.ones(2), np.zeros(2))
    assert freshness_so_far(history, rates).freshness == 1.0, "no copy was ever stale"
    assert freshness_of_schedule(history, rates) < 0.95
    assert Prospects(rates.gamma(), np.ones(2), 0.9, np.random.default_rng(1)).at(2.0).best.freshness < 0.95


def test_a_log_without_intervals_says_nothing():
    seen = Observations([0, 0], np.zeros(0), np.zeros(0, bool))
    rates = estimate_change_rate(seen, prior=GammaPrior(1.0, 2.0))
    with pytest.raises(ParameterError):
        freshness_so_far(History(seen, np.ones(1), np.zeros(1)), rates)
