"""Rates by rule: proportional with ceilings against repeated passes, and the rules by name."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.schedule import proportional
from naive.solve import solve_bisect
from profiles import examples

from recrawl.errors import ParameterError
from recrawl.schedule import proportional_rates
from recrawl.schedule.rates.rules import rule_rates

WEIGHT = st.one_of(st.just(0.0), st.floats(1e-6, 1e6), st.sampled_from([1.0, 2.0]))
CEILING = st.one_of(st.just(np.inf), st.just(1.0), st.floats(1e-3, 1e3), st.just(0.0))


@settings(deadline=None, max_examples=examples(300))
@given(rows=st.lists(st.tuples(WEIGHT, CEILING), min_size=1, max_size=30), budget=st.floats(1e-3, 1e4))
def test_equals_repeated_passes(rows, budget):
    weight, ceiling = (np.array(column) for column in zip(*rows, strict=True))
    rate = proportional_rates(weight, budget, ceiling)
    assert rate == pytest.approx(proportional(weight, budget, ceiling), rel=1e-9, abs=1e-9 * budget)
    assert (rate <= ceiling).all()
    most = np.where(weight > 0, ceiling, 0.0).sum()
    assert rate.sum() == pytest.approx(min(budget, most), rel=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e300])
def test_the_unit_of_weight_does_not_matter(scale):
    weight = np.array([8.0, 1.0, 3.0, 0.0])
    assert proportional_rates(weight * scale, 3.0, 1.4) == pytest.approx([1.4, 0.4, 1.2, 0.0])


def test_nothing_weighs_nothing():
    assert proportional_rates([0.0, 0.0], 3.0).tolist() == [0.0, 0.0]
    assert proportional_rates([], 3.0).tolist() == []
    assert proportional_rates([1.0], 0.0).tolist() == [0.0]


@pytest.mark.parametrize(
    "arguments", [([-1.0], 1.0), ([np.nan], 1.0), ([np.inf], 1.0), ([1.0], -1.0), ([1.0], np.nan), ([1.0], 1.0, [-1.0])]
)
def test_wrong_use(arguments):
    with pytest.raises(ParameterError):
        proportional_rates(*arguments)


def test_rules_by_name():
    columns = {
        "change_rate": np.array([0.1, 0.3]),
        "importance": np.array([3.0, 1.0]),
        "impression": np.array([1.0, 4.0]),
        "crawl_rate": np.array([0.7, np.nan]),
    }
    expected = {
        "uniform": [1.0, 1.0],
        "change-weighted": [0.5, 1.5],
        "click-weighted": [1.5, 0.5],
        "impression-weighted": [0.4, 1.6],
        "fixed": [0.7, 0.7],
    }
    for rule, rates in expected.items():
        assert rule_rates(rule, columns, 2.0, None) == pytest.approx(rates)
    assert rule_rates("change-weighted", columns, 1.5, 1.0) == pytest.approx([0.5, 1.0])


@pytest.mark.parametrize("step", [1.0, 0.25])
def test_lambda_is_the_optimum_of_steps_with_both_clips(step):
    rng = np.random.default_rng(5)
    change, importance = rng.uniform(0.01, 1.0, 40), rng.pareto(1.0, 40) + 0.01
    columns = {"change_rate": change / step, "importance": importance}
    rate = rule_rates("lambda", columns, 12.0 / step, 1.0 / step)
    assert rate * step == pytest.approx(solve_bisect("steps", change, importance, 12.0)[0], abs=1e-7)
    assert rate.max() <= 1.0 / step
    assert rate.min() == 0.0
