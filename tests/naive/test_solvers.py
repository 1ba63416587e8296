"""The naive solvers against each other, a general solver and the costs they are built on."""

import math
from functools import cache

import numpy as np
import pytest
from profiles import few
from scipy import optimize

import naive

pytestmark = pytest.mark.slow


def draw(kind, seed):
    rng = np.random.default_rng(seed)
    n = 5
    change = rng.uniform(0.05, 0.95, n) * (1 if kind == "steps" else 2)
    complete = rng.random(n) < 0.5 if kind in ("harmonic-random", "binary-complete-random") else None
    flags = None if complete is None else complete.tolist()
    return change, rng.uniform(0.1, 1, n), rng.uniform(0.3, 1.5), rng.uniform(0.5, 2, n), flags


@pytest.mark.parametrize("kind", naive.KINDS)
@pytest.mark.parametrize(("floor", "ceiling"), [(0.0, math.inf), (0.01, math.inf), (0.0, 0.4)])
def test_bisection_equals_the_convex_solver(kind, floor, ceiling):
    change, importance, budget, cost, complete = draw(kind, 7)
    args = (kind, change, importance, budget, cost, floor, ceiling, complete)
    rates, price = naive.solve_bisect(*args)
    other, total = naive.solve_convex(*args)
    assert np.dot(cost, rates) == pytest.approx(budget, rel=1e-13)
    assert price > 0
    assert naive.objective(kind, change, importance, rates, complete) == pytest.approx(total, rel=1e-8)
    assert rates == pytest.approx(other, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("change", "rate"), [(1.3, 0.4), (0.2, 3.0), (5.0, 0.3)])
def test_costs_and_marginals_match_quadrature(change, rate):
    for name, cost, slope in [
        ("harmonic", naive.harmonic_cost, naive.harmonic_cost_slope),
        ("age", naive.age_cost, naive.age_cost_slope),
    ]:
        for spacing in ("even", "random"):
            kind = f"{name}-{spacing}"
            assert naive.page_cost(kind, change, rate) == pytest.approx(cost(change, rate, spacing), rel=1e-13)
            assert naive.marginal(kind, change, rate) == pytest.approx(-slope(change, rate, spacing), rel=1e-13)
    for kind in ("even", "random"):
        fresh = naive.freshness(change, rate, kind)
        assert 1 - naive.page_cost(kind, change, rate) == pytest.approx(fresh, rel=1e-13)
        assert naive.marginal(kind, change, rate) == pytest.approx(naive.freshness_slope(change, rate, kind), rel=1e-13)
    change, rate = change / 10, rate / 10
    assert naive.marginal("steps", change, rate) == pytest.approx(
        naive.freshness_slope(change, rate, "steps"), rel=1e-13
    )


def test_jumps_share_the_budget():
    rates, _ = naive.solve_bisect("steps", [1.0, 1.0, 0.5], [1.0, 1.0, 1e-3], 1.0)
    assert rates == pytest.approx([0.5, 0.5, 0.0], abs=1e-12)
    rates, price = naive.solve_bisect("binary-complete-random", [1.0, 2.0], [1.0, 1.0], 1.5, complete=[True, True])
    assert rates == pytest.approx([1.0, 0.5], rel=1e-12)
    assert price == pytest.approx(0.5, rel=1e-12)


def test_budget_that_cannot_be_used():
    rates, price = naive.solve_bisect("harmonic-random", [1.0, 2.0], [1.0, 1.0], 9.0, complete=[True, True])
    assert (rates, price) == ([1.0, 2.0], 0.0)
    rates, price = naive.solve_bisect("random", [1.0, 0.0, 1.0], [1.0, 1.0, 0.0], 9.0, ceiling=2.0)
    assert (rates, price) == ([2.0, 0.0, 0.0], 0.0)
    with pytest.raises(ValueError):
        naive.solve_bisect("random", [1.0, 2.0], [1.0, 1.0], 1.0, floor=0.6)


CHANGE, IMPORTANCE = [0.5, 1.0, 0.2, 0.8], [1.0, 0.4, 0.7, 0.9]


def test_without_signals_thresholds_are_even_spacing():
    plan = naive.solve_signals(CHANGE, IMPORTANCE, [0.0] * 4, [0.0, 0.3, 0.0, 1.0], 0.6)
    rates, price = naive.solve_bisect("even", CHANGE, IMPORTANCE, 0.6)
    assert plan.rates == pytest.approx(rates, rel=1e-11)
    assert plan.threshold == pytest.approx(price, rel=1e-12)
    lost = naive.objective("even", CHANGE, IMPORTANCE, rates) / sum(IMPORTANCE)
    assert plan.freshness == pytest.approx(1 - lost, rel=1e-12)


def test_thresholds_equal_a_general_solver():
    change, importance, recall, false = [0.5, 1.0, 0.2], [1.0, 0.8, 0.7], [0.5, 0.9, 0.3], [0.2, 0.6, 0.4]
    plan = naive.solve_signals(change, importance, recall, false, 1.0)
    quality = list(zip(change, recall, false, strict=True))

    @cache  # a slope moves one page: the others are the same again
    def at(page, log_exponent):
        exponent = math.exp(log_exponent)
        return 1 / naive.interval(*quality[page], exponent), naive.fresh_time(*quality[page], exponent)

    def rates(logs):
        return [at(page, x)[0] for page, x in enumerate(logs.tolist())]

    def lost(logs):
        points = [at(page, x) for page, x in enumerate(logs.tolist())]
        return -sum(m * rate * fresh for m, (rate, fresh) in zip(importance, points, strict=True))

    found = optimize.minimize(
        lost,
        np.zeros(3),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda logs: 1.0 - sum(rates(logs))},
        options={"ftol": 1e-13},
    )
    assert -found.fun / sum(importance) == pytest.approx(plan.freshness, rel=1e-8)
    assert plan.rates == pytest.approx(rates(found.x), rel=1e-3)
    assert sum(plan.rates) == pytest.approx(1.0, rel=1e-13)


@pytest.mark.parametrize("recall", [[1.0] * 4, [0.5, 0.9, 0.9, 0.3], [1.0, 0.0, 0.5, 1.0]])
@pytest.mark.parametrize("false", [[0.0] * 4, [0.2, 0.6, 0.3, 0.0]])
@pytest.mark.parametrize("budget", few([0.3, 0.6], 1))
def test_threshold_jumps_meet_the_budget(recall, false, budget):
    plan = naive.solve_signals(CHANGE, IMPORTANCE, recall, false, budget)
    assert sum(plan.rates) == pytest.approx(budget, rel=1e-13)
    blind, _ = naive.solve_bisect("even", CHANGE, IMPORTANCE, budget)
    assert plan.freshness * sum(IMPORTANCE) >= sum(IMPORTANCE) - naive.objective("even", CHANGE, IMPORTANCE, blind)


def test_complete_signals_leave_budget_over():
    plan = naive.solve_signals(CHANGE, IMPORTANCE, [1.0] * 4, [0.2, 0.6, 0.3, 0.0], 60.0)
    assert plan.rates == pytest.approx([0.7, 1.6, 0.5, 0.8], rel=1e-14)
    assert (plan.threshold, plan.freshness) == (0.0, pytest.approx(1.0))
