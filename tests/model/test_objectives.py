"""Harmonic and age values, and a rate known through a posterior, equal quadratures of their definitions."""

import math

import naive
import numpy as np
import pytest
from draws import ROUNDING, close, log_uniform
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from profiles import examples

from recrawl import ParameterError
from recrawl.model import Pages, crawl_value, crawl_value_slope, elapsed_at_value, fresh_probability, value_limit
from recrawl.model.kernels.fresh import posterior_inverse_below, posterior_slope, posterior_value

TWINS = {"harmonic": naive.value_harmonic, "age": naive.value_age}
SHAPES = st.one_of(log_uniform(1e-3, 1e9), st.sampled_from([0.5, 1.0, 1 + 1e-9, 2.0, 3.0, 1e15, math.inf]))


@pytest.mark.slow
@given(log_uniform(1e-6, 1e6), log_uniform(1e-12, 1e6), st.sampled_from(sorted(TWINS)))
@settings(max_examples=examples(200, usual=16))
@example(1.0, math.nextafter(0.5, 0), "harmonic")  # where the series begins
@example(1.0, 0.5, "harmonic")
@example(1.0, math.nextafter(0.5, 0), "age")
@example(1.0, 0.5, "age")
@example(1.0, 0.0, "age")
@example(0.0, 1.0, "harmonic")
def test_value_equals_its_twin(change_rate, x, objective):
    elapsed = x / change_rate if change_rate else x
    value = crawl_value(Pages([change_rate], 3.0), elapsed, objective=objective)
    assert close(float(value[0]), TWINS[objective](change_rate, 3.0, elapsed))


@given(log_uniform(1e-3, 1e3), log_uniform(1e-12, 700), st.sampled_from(sorted(TWINS)))
@settings(max_examples=examples(100))
def test_slope_is_elapsed_times_the_growth_of_the_cost(change_rate, x, objective):
    elapsed = x / change_rate
    growth = -math.expm1(-x) / elapsed if objective == "harmonic" else -math.expm1(-x)
    slope = crawl_value_slope(Pages([change_rate]), elapsed, objective=objective)
    assert close(float(slope[0]), elapsed * growth)


def test_complete_signals_are_counted():
    pages = Pages([2.0], importance=3.0, recall=1.0)
    counts = np.arange(4.0)
    assert crawl_value(pages, 5.0, counts, objective="harmonic").tolist() == [0.0, 1.5, 3.0, 4.5]
    assert crawl_value_slope(pages, 5.0, 2, objective="harmonic").tolist() == [0.0]
    assert elapsed_at_value(pages, 3.0, counts, objective="harmonic").tolist() == [math.inf, math.inf, 0.0, 0.0]


@pytest.mark.parametrize(("objective", "recall"), [("harmonic", 0.5), ("age", 0.5), ("age", 1.0)])
def test_values_without_theory_are_refused(objective, recall):
    pages = Pages([1.0, 1.0], recall=[0.0, recall])
    with pytest.raises(ParameterError, match=r"recall, row 1: no (harmonic|age) value is known"):
        crawl_value(pages, 1.0, objective=objective)


def test_unknown_objective_and_terms():
    with pytest.raises(ParameterError, match="objective 'youth' is not one of freshness, harmonic, age"):
        crawl_value(Pages([1.0]), 1.0, objective="youth")
    with pytest.raises(ParameterError, match="terms is 0"):
        crawl_value(Pages([1.0]), 1.0, terms=0)


@pytest.mark.slow
@given(log_uniform(1e-3, 1e3), log_uniform(1e-12, 1e6), SHAPES)
@settings(max_examples=examples(250, usual=25))
@example(1.0, 1e-3, 1.0)
@example(1.0, 5.0, 1.0)
@example(1.0, 1e6, 1.0 + 1e-12)
@example(1.0, 1e6, 3.0)
@example(1.0, 1e6, math.nextafter(3.0, 4))
def test_posterior_value_equals_its_twin(change_rate, x, shape):
    elapsed = x / change_rate
    value = float(crawl_value(Pages([change_rate], 2.0, evidence=shape), elapsed)[0])
    assert close(value, naive.value_posterior(change_rate, 2.0, shape, elapsed))


@given(log_uniform(1e-3, 1e3), log_uniform(1e-9, 1e6), SHAPES)
@settings(max_examples=examples(120))
def test_posterior_round_trip(change_rate, x, shape):
    pages = Pages([change_rate], evidence=shape)
    value = crawl_value(pages, x / change_rate)[0]
    assume(value < value_limit(pages)[0] * (1 - 1e-4))
    assert close(float(elapsed_at_value(pages, value)[0]), x / change_rate)


@given(log_uniform(1e-9, 1e3), SHAPES)
@settings(max_examples=examples(100))
def test_posterior_slope_and_probability(x, shape):
    pages = Pages([1.0], evidence=shape)
    power = -x if math.isinf(shape) else -shape * math.log1p(x / shape)
    assume(power > -600)
    assert close(float(fresh_probability(pages, x)[0]), math.exp(power))
    slope = x * math.exp(power) / (1 + x / shape)
    assert close(float(crawl_value_slope(pages, x)[0]), slope)


@pytest.mark.parametrize(("shape", "limit"), [(math.inf, 2.0), (2.0, 4.0), (1.0, math.inf), (0.5, math.inf)])
def test_posterior_limit(shape, limit):
    pages = Pages([0.5], evidence=shape)
    assert value_limit(pages).tolist() == [limit]
    assert crawl_value(pages, math.inf).tolist() == [limit]


@given(log_uniform(1e-3, 1e3), log_uniform(1e-9, 1e3), log_uniform(1e-3, 1e9))
def test_posterior_value_never_falls(change_rate, elapsed, shape):
    pages = Pages([change_rate], evidence=shape)
    now, later = crawl_value(pages, [elapsed, elapsed * 1.01])
    assert later >= now * (1 - ROUNDING)


@pytest.mark.parametrize("shape", [0.1, 1.0, 2.0, math.inf])
def test_no_time_is_long_enough_for_an_infinite_value(shape):
    assert posterior_inverse_below(math.inf, shape) == math.inf
    assert elapsed_at_value(Pages([1.0], evidence=shape), math.inf).tolist() == [math.inf]


@given(log_uniform(1e-12, 1e3), SHAPES)
@settings(max_examples=examples(300))
@example(1e-9, 1e6)
@example(0.5, 1.0)
@example(1.0, 0.01)
@example(2.0 * (1 - 1e-9), 2.0)
def test_the_inverse_from_below_is_close_and_never_too_late(y, shape):
    assume(math.isinf(shape) or shape <= 1.0 or y < shape / (shape - 1.0))
    assume(not math.isinf(shape) or y < 1.0)
    x = posterior_inverse_below(y, shape)
    assert posterior_value(x, shape) <= y * (1 + 1e-13)
    if math.isfinite(shape) and x < 1e300 and posterior_value(x, shape) < 1e5 * x * posterior_slope(x, shape):
        assert posterior_value(x * (1 + 1e-5), shape) >= y * (1 - 1e-13)
