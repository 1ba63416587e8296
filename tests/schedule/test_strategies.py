"""Strategies: both clips, corners and budgets, against plain twins and scipy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.bandit import freshness, proportional
from naive.solve import solve_bisect
from profiles import examples
from scipy.optimize import minimize

from recrawl.errors import ParameterError
from recrawl.schedule import PRESETS, STRATEGIES, step_change, strategy_rates
from recrawl.schedule.bandits.strategies import arms_of

RATE = st.sampled_from([0.0, 0.0, 0.001, 0.3, 0.5, 0.999, 1.0]) | st.floats(1e-9, 1.0)
PAGES = st.lists(st.tuples(RATE, st.sampled_from([0.0, 1.0, 1.0]) | st.floats(0.001, 100.0)), min_size=1, max_size=12)


@settings(deadline=None, max_examples=examples(200))
@given(pages=PAGES, budget=st.floats(0.0, 15.0), rule=st.sampled_from(STRATEGIES))
def test_every_strategy_spends_its_budget_within_both_clips(pages, budget, rule):
    change, click = (np.array(column) for column in zip(*pages, strict=True))
    rate = strategy_rates(rule, budget, change=change, click=click, impression=click + 0.5, steps=1)
    assert ((rate >= 0) & (rate <= 1)).all()
    weight = {
        "uniform": np.ones(len(pages)), "change-weighted": change, "click-weighted": click,
        "impression-weighted": click + 0.5, "lambda": change * click,
    }[rule]  # fmt: skip
    assert (rate[weight == 0] == 0).all()
    assert rate.sum() == pytest.approx(min(budget, np.count_nonzero(weight)), rel=1e-9, abs=1e-9)
    if rule != "lambda":
        assert rate == pytest.approx(proportional(weight.tolist(), budget), rel=1e-9, abs=1e-12)


@settings(deadline=None, max_examples=examples(100))
@given(pages=PAGES, share=st.floats(0.01, 0.99))
def test_lambda_is_the_optimum(pages, share):
    change, click = (np.array(column) for column in zip(*pages, strict=True))
    useful = change * click > 0
    if not useful.any():
        return
    budget = share * np.count_nonzero(useful)
    rate = strategy_rates("lambda", budget, change=change, click=click, steps=1)
    twin, _ = solve_bisect("steps", change, click, budget)
    ours = freshness(rate, change, click)
    assert ours == pytest.approx(freshness(twin, change, click), rel=1e-7)
    rng = np.random.default_rng(0)
    for _ in range(30):  # no transfer between two pages helps
        gain, lose = rng.choice(np.flatnonzero(useful), 2)
        by = min(1e-3, rate[lose], 1 - rate[gain])
        if gain != lose and by > 0:
            moved = rate.copy()
            moved[gain] += by
            moved[lose] -= by
            assert freshness(moved, change, click) <= ours * (1 + 1e-9) + 1e-12


def test_lambda_equals_a_general_optimiser():
    rng = np.random.default_rng(3)
    change, click = rng.uniform(0.02, 0.9, 8), rng.pareto(1.2, 8) + 0.05
    rate = strategy_rates("lambda", 2.5, change=change, click=click, steps=1)
    found = minimize(
        lambda p: -freshness(p, change, click), np.full(8, 2.5 / 8), bounds=[(0, 1)] * 8, method="SLSQP",
        constraints={"type": "eq", "fun": lambda p: p.sum() - 2.5}, options={"ftol": 1e-13, "maxiter": 500},
    )  # fmt: skip
    assert rate == pytest.approx(found.x, abs=1e-4)
    assert rate.max() == 1.0
    assert rate.min() == 0.0


def test_pages_that_change_in_every_step_are_crawled_all_or_nothing_and_ties_are_split():
    assert strategy_rates("lambda", 0.5, change=[1, 1], click=[2, 1], steps=1).tolist() == [0.5, 0]
    assert strategy_rates("lambda", 1.0, change=[1, 1, 1], click=[2, 2, 1], steps=1) == pytest.approx([0.5, 0.5, 0])
    assert strategy_rates("lambda", 2.0, change=[0, 0, 0.5], click=[9, 9, 1], steps=1).tolist() == [0, 0, 1]


def test_days_become_steps():
    daily = np.array([0.0, 0.05, 0.5, 1.0])
    step = step_change(daily, 12)
    assert 1 - (1 - step) ** 12 == pytest.approx(daily)
    rate = strategy_rates("lambda", 12.0, change=daily, click=np.ones(4))
    assert rate == pytest.approx(solve_bisect("steps", step, np.ones(4), 1.0)[0], abs=1e-7)
    assert strategy_rates("uniform", 2.4, change=daily, click=np.ones(4)) == pytest.approx([0.05] * 4)


def test_presets_are_the_papers():
    assert [len(arms) for arms in PRESETS.values()] == [2, 3, 4, 5]
    assert set(PRESETS["kab5"]) == set(STRATEGIES)
    assert arms_of(["lambda"]) == ("lambda",)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: strategy_rates("luck", 1.0, change=[0.1], click=[1]), "strategy 'luck' is not one of"),
        (lambda: strategy_rates("uniform", -1.0, change=[0.1], click=[1]), "budget is -1"),
        (lambda: strategy_rates("uniform", 1.0, change=[0.1, 1.5], click=[1, 1]), "change, row 1: is a probability"),
        (lambda: strategy_rates("uniform", 1.0, change=[np.nan], click=[1]), "change, row 0"),
        (lambda: strategy_rates("impression-weighted", 1.0, change=[0.1], click=[1]), "impression: the strategy"),
        (lambda: strategy_rates("click-weighted", 1.0, change=[0.1], click=[-1]), "weight, row 0"),
        (lambda: strategy_rates("uniform", 1.0, change=[0.1], click=[1], steps=0), "steps is 0"),
        (lambda: arms_of("kab9"), "bandit 'kab9' is not one of kab2"),
        (lambda: arms_of(["luck"]), "strategy 'luck'"),
        (lambda: arms_of([]), "at least one"),
    ],
)
def test_wrong_use(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
