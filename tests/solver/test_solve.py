"""Every optimum: a gap that proves it, agreement with twins and a general solver, KKT page by page, scale, budget."""

import math

import naive
import numpy as np
import pytest
from profiles import few

from recrawl import Pages, solve
from recrawl.model import marginal_value
from recrawl.solver.curves import build_curves
from recrawl.solver.problem import Found, Problem
from solver.cases import ALL, NOISY, PLAIN, complete, draw, public_gap, total_gain

pytestmark = pytest.mark.slow

BUDGETS = [0.05, 0.3, 2.0]  # per page


def usable(case, pages, budget):
    """Complete and lattice pages have a most useful rate: keep the budget below what all can use."""
    most = pages.signal_rate if pages.n_sources == 1 else np.full(len(pages), np.inf)
    capped = (pages.missed_rate == 0) & (most > 0)
    if case.spacing == "steps":
        return min(budget, 0.9 * len(pages))
    return min(budget, 0.9 * most.sum()) if capped.all() else budget


@pytest.mark.parametrize("share", BUDGETS)
@pytest.mark.parametrize("n", [1, 2, 40, 6000])
@pytest.mark.parametrize("case", ALL, ids=str)
def test_gap_and_budget(case, n, share):
    pages = draw(case, n)
    budget = usable(case, pages, share * n)
    plan = solve(pages, budget, **case.options)
    assert 0 <= plan.gap <= 1e-9
    assert plan.spent == pytest.approx(budget, rel=1e-9)
    assert plan.spent == pytest.approx(plan.crawl_rate.sum(), rel=1e-12)
    assert plan.unused == 0
    assert 0 <= plan.freshness <= 1
    gain = total_gain(case, pages, plan.crawl_rate) / pages.importance.sum()
    assert plan.objective == pytest.approx(gain if case.objective == "freshness" else -gain, rel=1e-9)


@pytest.mark.parametrize("share", BUDGETS)
@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_agrees_with_bisection(case, share):
    pages = draw(case, 12)
    budget = usable(case, pages, share * 12)
    plan = solve(pages, budget, **case.options)
    rates, price = naive.solve_bisect(case.kind, pages.change_rate, pages.importance, budget, complete=complete(pages))
    assert plan.crawl_rate == pytest.approx(np.array(rates), rel=1e-8, abs=1e-9)
    assert plan.threshold == pytest.approx(price, rel=1e-8)


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_agrees_with_a_general_convex_solver(case):
    pages = draw(case, 5, seed=3)
    budget = usable(case, pages, 2.5)
    plan = solve(pages, budget, **case.options)
    flags = complete(pages)
    _, best = naive.solve_convex(case.kind, pages.change_rate, pages.importance, budget, complete=flags)
    reached = naive.objective(case.kind, pages.change_rate, pages.importance, plan.crawl_rate, complete=flags)
    assert reached == pytest.approx(best, rel=1e-7)
    assert reached <= best * (1 + 1e-9)


@pytest.mark.parametrize("share", few([0.7, 0.1], 1))
@pytest.mark.parametrize("case", NOISY, ids=str)
def test_agrees_with_the_thresholds_of_theorem_1(case, share):
    pages = draw(case, 5, seed=1)
    budget = usable(case, pages, share * 5)
    twin = naive.solve_signals(pages.change_rate, pages.importance, pages.recall, pages.false_rate, budget)
    plan = solve(pages, budget)
    assert plan.freshness == pytest.approx(twin.freshness, rel=1e-10)
    assert plan.threshold == pytest.approx(twin.threshold, rel=1e-8)
    if case.signals != "mixed":  # there, rates on the treads of a staircase are not unique
        assert plan.crawl_rate == pytest.approx(np.array(twin.rates), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("cost", [None, "varying"])
@pytest.mark.parametrize("case", ALL, ids=str)
def test_kkt_page_by_page(case, cost):
    pages = draw(case, 200, seed=2)
    if cost:
        pages = pages.replace(cost=np.random.default_rng(5).uniform(0.2, 5, 200))
    budget = usable(case, pages, 40.0)
    plan = solve(pages, budget, **case.options)
    price, rate = plan.threshold * pages.cost, plan.crawl_rate
    assert plan.spent == pytest.approx(budget, rel=1e-9)
    # slopes jump at corners (a crawl at every n-th signal): the price lies between the slopes on both sides
    options = case.options
    with np.errstate(divide="ignore"):
        before = marginal_value(pages, rate * (1 - 1e-9), **options)
        after = marginal_value(
            pages, np.minimum(rate * (1 + 1e-9), 1.0 if case.spacing == "steps" else np.inf), **options
        )
    slack = 1 + 1e-7
    crawled = rate > 0
    assert (before[crawled] * slack >= price[crawled]).all()
    cap = np.full(200, 1.0 if case.spacing == "steps" else np.inf)
    full = (pages.missed_rate == 0) & (np.atleast_2d(pages.signal_rate.T).sum(axis=0) > 0)
    cap[full] = np.atleast_2d(pages.signal_rate.T).sum(axis=0)[full]
    free = rate < cap * (1 - 1e-12)
    assert (after[free] <= price[free] * slack).all()


@pytest.mark.parametrize("scale", [1e-12, 2.0**-40, 2.0**40, 1e12])
@pytest.mark.parametrize("case", ALL, ids=str)
def test_rates_do_not_depend_on_the_unit_of_importance(case, scale):
    pages = draw(case, 300, seed=4)
    budget = usable(case, pages, 60.0)
    base = solve(pages, budget, **case.options)
    other = solve(pages.replace(importance=pages.importance * scale), budget, **case.options)
    # a page at the very edge of being dropped turns the rounding of importance·1e12 itself into more than 1e-9
    loose = case.signals == "proof" and math.frexp(scale)[0] != 0.5
    unsure = np.abs(base.threshold * pages.change_rate / pages.importance - 1) < 1e-6
    assert np.count_nonzero(unsure) <= 1
    rate, expected = (p.crawl_rate[~unsure] if loose else p.crawl_rate for p in (other, base))
    assert rate == pytest.approx(expected, rel=1e-9, abs=1e-9 * base.crawl_rate.mean())
    assert other.threshold == pytest.approx(base.threshold * scale, rel=1e-9)
    assert other.gap <= 1e-9


@pytest.mark.parametrize("case", ALL, ids=str)
def test_a_perturbed_plan_has_a_gap(case):
    pages = draw(case, 50, seed=6)
    budget = usable(case, pages, 10.0)
    plan = solve(pages, budget, **case.options)
    assert abs(public_gap(case, pages, plan.crawl_rate, plan.threshold, budget)) <= 1e-9
    most, least = int(np.argmax(plan.crawl_rate)), int(np.argmin(plan.crawl_rate))
    wrong = plan.crawl_rate.copy()
    wrong[most] *= 0.5
    wrong[least] += 0.5 * plan.crawl_rate[most]
    if case.spacing == "steps":
        wrong = np.minimum(wrong, 1.0)
    assert public_gap(case, pages, wrong, plan.threshold, budget) > 1e-4
    # the same holds for the gap that a plan carries, which is computed from rates and price alone
    problem = Problem.of(build_curves(pages, case.objective, case.spacing, 0.0, None))
    problem.rates(plan.threshold)  # finds the thresholds; a rate does not tell them where ψ is a staircase
    judged = problem.judge(Found(plan.threshold, wrong), budget)
    assert judged.gap >= public_gap(case, pages, wrong, plan.threshold, budget) * (1 - 1e-6)
    assert problem.judge(Found(plan.threshold, plan.crawl_rate), budget).gap <= 1e-9
    assert problem.judge(Found(plan.threshold * 1.01, plan.crawl_rate), budget).gap > 1e-6


@pytest.mark.parametrize("case", ALL, ids=str)
def test_more_budget_is_never_worse(case):
    pages = draw(case, 60, seed=7)
    objective = [
        solve(pages, b, **case.options).objective for b in usable(case, pages, 60.0) * np.linspace(0.02, 1, 12)
    ]
    change = np.diff(objective) * (1 if case.objective == "freshness" else -1)
    assert (change >= -1e-12).all()


def test_better_signals_are_never_worse():
    base = draw(NOISY[0], 60, seed=8)
    for precision in (0.2, 0.6):
        fresh = [
            solve(Pages.from_quality(base.change_rate, base.importance, precision=precision, recall=r), 12.0).freshness
            for r in (0.0, 1e-6, 0.1, 0.4, 0.8, 0.999, 1 - 1e-16, 1.0)
        ]
        assert (np.diff(fresh) >= -1e-12).all()
    for recall in (0.3, 0.9, 1.0):
        fresh = [
            solve(Pages.from_quality(base.change_rate, base.importance, precision=p, recall=recall), 12.0).freshness
            for p in (1e-12, 1e-6, 0.05, 0.3, 0.7, 0.99, 1 - 1e-12, 1.0)
        ]
        assert (np.diff(fresh) >= -1e-12).all()


@pytest.mark.parametrize("share", BUDGETS)
def test_even_is_at_least_as_fresh_as_random(share):
    pages = draw(PLAIN[0], 300, seed=9)
    even, random = (solve(pages, share * 300, spacing=spacing) for spacing in ("even", "random"))
    assert even.freshness >= random.freshness
    harmonic = [
        solve(pages, share * 300, objective="harmonic", spacing=spacing).objective for spacing in ("even", "random")
    ]
    assert harmonic[0] <= harmonic[1]


@pytest.mark.parametrize("objective", ["freshness", "harmonic"])
@pytest.mark.parametrize("cost", [1.0, 2.0])  # of the first page: with 2 the loop for two kinds cannot be used
def test_pages_of_two_kinds_get_the_rates_that_each_gets_alone(objective, cost):
    rng = np.random.default_rng(7)
    n = 60
    importance, rate, costs = rng.lognormal(size=n), rng.lognormal(size=n), np.ones(n)
    importance[3] = rate[4] = 0.0
    costs[0] = cost
    pages = Pages(rate, importance, recall=rng.random(n) < 0.4, cost=costs)
    options = {"price": 0.2, "objective": objective, "spacing": "random"}
    together = solve(pages, **options).crawl_rate
    for i in np.flatnonzero(importance):
        assert together[i] == pytest.approx(solve(pages[i : i + 1], **options).crawl_rate[0], rel=1e-12, abs=1e-300)
    assert together[3] == 0.0
