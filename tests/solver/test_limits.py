"""Floors, ceilings, costs and host limits are part of the optimum, checked against bisection and a convex solver."""

import math

import naive
import numpy as np
import pytest
from scipy import optimize

from recrawl import Pages, ParameterError, solve
from recrawl.model import marginal_value
from solver.cases import ALL, PLAIN, Case, complete, draw, total_gain

EVEN, RANDOM = PLAIN[0], PLAIN[1]
HARMONIC = Case("harmonic", "random")


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in PLAIN if case.signals == "none"], ids=str)
def test_floor_ceiling_and_cost_agree_with_bisection(case):
    pages = draw(case, 10, seed=11).replace(cost=np.random.default_rng(1).uniform(0.2, 4, 10))
    limits = {"floor": 0.05, "ceiling": 0.8}
    budget = 0.35 * pages.cost.sum()
    plan = solve(pages, budget, **case.options, **limits)
    rates, _ = naive.solve_bisect(case.kind, pages.change_rate, pages.importance, budget, cost=pages.cost, **limits)
    assert plan.crawl_rate == pytest.approx(np.array(rates), rel=1e-8, abs=1e-9)
    assert plan.spent == pytest.approx(budget, rel=1e-9)
    assert plan.gap <= 1e-9


@pytest.mark.parametrize("case", [EVEN, HARMONIC, PLAIN[7]], ids=str)
def test_floor_and_cost_agree_with_a_convex_solver(case):
    kind = case.kind or "harmonic-random"
    pages = draw(case, 5, seed=12).replace(cost=[0.5, 1.0, 2.0, 4.0, 1.5])
    plan = solve(pages, 3.0, **case.options, floor=0.02)
    flags = complete(pages)
    args = (kind, pages.change_rate, pages.importance)
    _, best = naive.solve_convex(*args, 3.0, cost=pages.cost, floor=0.02, complete=flags)
    assert naive.objective(*args, plan.crawl_rate, complete=flags) == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_kkt_at_floor_and_ceiling(case):
    pages = draw(case, 150, seed=13)
    top = 0.4 if case.spacing == "steps" else 0.5
    plan = solve(pages, 0.2 * 150, **case.options, floor=0.01, ceiling=top)
    assert plan.gap <= 1e-9
    assert plan.spent == pytest.approx(30.0, rel=1e-9)
    assert (plan.crawl_rate >= 0.01 * (1 - 1e-12)).all()
    assert (plan.crawl_rate <= top * (1 + 1e-12)).all()
    rate = plan.crawl_rate
    before = marginal_value(pages, rate * (1 - 1e-9), **case.options)
    after = marginal_value(pages, rate * (1 + 1e-9), **case.options)
    free_up = rate < np.minimum(top, _cap(pages)) * (1 - 1e-9)
    assert (after[free_up] <= plan.threshold * (1 + 1e-7)).all()
    assert (before[rate > 0.01 * (1 + 1e-9)] * (1 + 1e-7) >= plan.threshold).all()


def _cap(pages):
    signals = pages.signal_rate if pages.n_sources == 1 else pages.signal_rate.sum(axis=1)
    return np.where((pages.missed_rate == 0) & (signals > 0), signals, np.inf)


def convex_with_hosts(case, pages, budget, limits):
    """SLSQP on the primal with one linear constraint per host; shares of the budget as variables."""
    n = len(pages)
    weight = pages.importance / pages.importance.sum()
    kind = case.kind or "harmonic-random"
    rows = [(-pages.cost, budget)]
    rows += [(-(pages.host == host).astype(float), limit) for host, limit in limits.items()]

    def total(x):
        return naive.objective(kind, pages.change_rate, weight, np.maximum(x, 1e-9))

    def slopes(x):
        return np.array(
            [-m * naive.marginal(kind, d, max(r, 1e-9)) for m, d, r in zip(weight, pages.change_rate, x, strict=True)]
        )

    start = np.full(n, 0.5 * min(budget / pages.cost.sum(), *(v / n for v in limits.values())))
    found = optimize.minimize(
        total,
        start,
        jac=slopes,
        method="SLSQP",
        bounds=[(1e-9, None)] * n,
        constraints=[{"type": "ineq", "fun": lambda x, a=a, b=b: a @ x + b, "jac": lambda x, a=a: a} for a, b in rows],
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return found.x


@pytest.mark.parametrize("costs", ["equal", "varying"])
@pytest.mark.parametrize("case", [EVEN, RANDOM, HARMONIC], ids=str)
def test_host_limits_agree_with_a_convex_solver(case, costs):
    pages = draw(case, 9, seed=14).replace(host=["a", "b", "c"] * 3)
    if costs == "varying":
        pages = pages.replace(cost=np.random.default_rng(2).uniform(0.3, 3, 9))
    limits, budget = {"a": 0.3, "b": 0.7}, 4.0
    plan = solve(pages, budget, **case.options, host_limit=limits)
    rate = convex_with_hosts(case, pages, budget, limits)
    assert plan.gap <= 1e-9
    for host, limit in limits.items():
        assert plan.crawl_rate[pages.host == host].sum() <= limit * (1 + 1e-9)
    assert plan.spent == pytest.approx(budget, rel=1e-9)
    assert total_gain(case, pages, plan.crawl_rate) == pytest.approx(total_gain(case, pages, rate), rel=1e-7)
    assert plan.crawl_rate == pytest.approx(rate, rel=1e-3, abs=1e-4)
    assert set(plan.host_price) <= set(limits)


@pytest.mark.parametrize("case", [case for case in ALL if case.spacing != "steps"], ids=str)
def test_host_limits_in_a_crowd(case):
    pages = draw(case, 400, seed=15).replace(host=np.arange(400) % 20)
    limits = {0: 0.5, 1: 1.0, 2: 50.0, 3: 0.001}
    free = solve(pages, 60.0, **case.options)
    plan = solve(pages, 60.0, **case.options, host_limit=limits)
    assert plan.gap <= 1e-9
    assert plan.spent == pytest.approx(60.0, rel=1e-9)
    for host, limit in limits.items():
        used = plan.crawl_rate[pages.host == host].sum()
        assert used <= limit * (1 + 1e-9)
        assert host not in plan.host_price or used == pytest.approx(limit, rel=1e-9)
    better = plan.objective - free.objective if case.objective == "freshness" else free.objective - plan.objective
    assert better <= 1e-12


def test_a_host_that_may_not_be_crawled():
    pages = Pages([1.0, 1.0, 2.0], host=["a", "b", "a"])
    plan = solve(pages, 2.0, host_limit={"a": 0.0})
    assert plan.crawl_rate.tolist() == pytest.approx([0.0, 2.0, 0.0])


def test_limits_that_do_not_bind_change_nothing():
    pages = draw(EVEN, 30, seed=16).replace(host=["a", "b"] * 15)
    plan = solve(pages, 6.0)
    same = solve(pages, 6.0, host_limit={"a": 1e6, "b": 1e6}, floor=0.0, ceiling=1e9)
    assert same.crawl_rate == pytest.approx(plan.crawl_rate, rel=1e-9)
    assert same.host_price == {}


@pytest.mark.parametrize("case", ALL, ids=str)
def test_price_and_target_lead_to_the_same_plan_as_budget(case):
    pages = draw(case, 80, seed=17)
    plan = solve(pages, 12.0, **case.options)
    priced = solve(pages, price=plan.threshold, **case.options)
    assert priced.gap <= 1e-9
    slack = 1e-6 if case.signals in ("none", "noisy", "uncertain", "sources") else 0.5  # a jump lies at the threshold
    assert priced.spent == pytest.approx(12.0, rel=slack)
    aimed = solve(pages, target=plan.freshness, **case.options)
    assert aimed.freshness == pytest.approx(plan.freshness, rel=1e-9)
    assert aimed.gap <= 1e-9
    if case.objective == "freshness":
        assert aimed.spent == pytest.approx(12.0, rel=1e-6)


def test_budget_that_cannot_be_used_is_reported():
    complete_only = Pages([1.0, 2.0], recall=1.0)
    for case in ({"objective": "harmonic", "spacing": "random"}, {"spacing": "random"}, {}):
        plan = solve(complete_only, 5.0, **case)
        assert plan.spent == pytest.approx(3.0)
        assert plan.unused == pytest.approx(2.0)
        assert plan.threshold == 0
        assert plan.freshness == pytest.approx(1.0)
        assert plan.gap <= 1e-9
    capped = solve(Pages([1.0, 2.0]), 5.0, ceiling=1.0)
    assert capped.crawl_rate.tolist() == [1.0, 1.0]
    assert capped.unused == pytest.approx(3.0)
    steps = solve(Pages([0.5, 0.2, 0.0]), 3.0, spacing="steps")
    assert steps.crawl_rate.tolist() == [1.0, 1.0, 0.0]
    assert steps.unused == pytest.approx(1.0)
    still = solve(Pages([0.0, 0.0]), 1.0)
    assert still.unused == 1.0
    assert still.freshness == 1.0
    assert solve(Pages([1.0, 2.0]), 5.0).unused == 0


def test_pages_that_cannot_gain_get_nothing():
    plan = solve(Pages([0.0, 1.0, 1.0, 5.0], importance=[1.0, 0.0, 1.0, 1e-9]), 1.0)
    assert plan.crawl_rate.tolist() == pytest.approx([0.0, 0.0, 1.0, 0.0])
    assert plan.n_never == 3
    assert math.isfinite(plan.threshold)


def test_floor_takes_the_whole_budget():
    plan = solve(Pages([1.0, 2.0]), 1.0, floor=0.5)
    assert plan.crawl_rate.tolist() == [0.5, 0.5]
    assert plan.gap <= 1e-9


@pytest.mark.parametrize(
    ("columns", "goal", "options", "message"),
    [
        ({}, {"budget": 0.0}, {}, r"^budget is 0\.0: must be finite and above 0"),
        ({}, {"budget": -1.0}, {}, r"^budget is -1\.0"),
        ({}, {"budget": math.inf}, {}, r"^budget is inf"),
        ({}, {"budget": math.nan}, {}, r"^budget is nan"),
        ({}, {"budget": "much"}, {}, r"^budget is 'much'"),
        ({}, {}, {}, r"^exactly one of budget, price and target is needed, not 0"),
        ({}, {"budget": 1.0, "price": 1.0}, {}, "not 2"),
        ({}, {"price": 0.0}, {}, r"^price is 0\.0"),
        ({}, {"target": 1.0}, {}, r"^target is 1\.0: must lie below 1"),
        ({}, {"target": 0.999}, {"ceiling": 0.1}, r"^target is 0\.999: the most that can be reached"),
        ({"importance": 0.0}, {"budget": 1.0}, {}, r"^importance is 0 on every page"),
        ({}, {"budget": 1.0}, {"floor": 0.6}, r"^floor: keeping to it costs 1\.2 per time"),
        ({}, {"budget": 1.0}, {"floor": -0.1}, r"^floor: must be at least 0"),
        ({}, {"budget": 1.0}, {"floor": [0.1, math.nan]}, r"^floor, row 1: must be at least 0"),
        ({}, {"budget": 1.0}, {"floor": [0.1, 0.1, 0.1]}, r"^floor has 3 rows but there are 2 pages"),
        ({}, {"budget": 1.0}, {"ceiling": [0.1, 0.0]}, r"^ceiling, row 1: must be above 0"),
        ({}, {"budget": 1.0}, {"floor": 0.3, "ceiling": [0.5, 0.2]}, r"^ceiling, row 1: .*not below the floor"),
        ({}, {"budget": 1.0}, {"host_limit": {"a": 1.0}}, r"^host is missing"),
        ({"host": ["a", "b"]}, {"budget": 1.0}, {"host_limit": {"c": 1.0}}, r"^host_limit names 'c'"),
        ({"host": ["a", "b"]}, {"budget": 1.0}, {"host_limit": {"a": -1.0}}, r"^host_limit of 'a' is -1\.0"),
        ({"host": ["a", "b"]}, {"budget": 1.0}, {"host_limit": 20.0}, r"^host_limit is 20\.0: must map hosts"),
        (
            {"host": ["a", "b"]},
            {"budget": 1.0},
            {"host_limit": {"a": 0.1}, "floor": 0.2},
            r"^floor: host 'a' would need",
        ),
        ({}, {"budget": 1.0}, {"objective": "joy"}, r"^objective 'joy' is not one of"),
        ({}, {"budget": 1.0}, {"spacing": "odd"}, r"^spacing 'odd' is not one of"),
        ({"change_rate": [0.5, 1.5]}, {"budget": 1.0}, {"spacing": "steps"}, r"^change_rate, row 1: is a probability"),
        (
            {},
            {"budget": 1.5},
            {"spacing": "steps", "floor": [0.1, 1.2]},
            r"^floor, row 1: a page cannot be crawled more",
        ),
        (
            {},
            {"budget": 1.0},
            {"objective": "harmonic", "spacing": "steps"},
            "^no optimum is known for objective 'harmonic'",
        ),
        ({}, {"budget": 1.0}, {"objective": "age", "spacing": "steps"}, "^no optimum is known for objective 'age'"),
        ({"recall": [0.0, 0.5]}, {"budget": 1.0}, {"spacing": "random"}, r"^recall, row 1: no optimum is known"),
        ({"recall": [0.0, 0.5]}, {"budget": 1.0}, {"spacing": "steps"}, r"^recall, row 1: no optimum is known"),
        ({"recall": [0.0, 0.5]}, {"budget": 1.0}, {"objective": "harmonic"}, r"^recall, row 1: no optimum is known"),
        ({"recall": [0.0, 1.0]}, {"budget": 1.0}, {"objective": "age"}, r"^recall, row 1: no optimum is known"),
        ({"evidence": [math.inf, 2.0]}, {"budget": 1.0}, {"spacing": "random"}, r"^evidence, row 1: only even spacing"),
        ({"evidence": 2.0, "recall": [0.0, 0.5]}, {"budget": 1.0}, {}, r"^evidence, row 1: a page with signals"),
    ],
)
def test_what_cannot_be_solved_is_refused(columns, goal, options, message):
    pages = Pages(**{"change_rate": [0.3, 0.6], **columns})
    with pytest.raises(ParameterError, match=message):
        solve(pages, **goal, **options)
