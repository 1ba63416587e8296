"""Value and slope in one pass, and the exponents at which values and intervals are reached."""

import math

import pytest
from draws import EXACT, close, log_uniform
from hypothesis import example, given, settings
from hypothesis import strategies as st
from profiles import examples

from recrawl.model.kernels.pair import value_and_slope
from recrawl.model.kernels.signal_inverse import interval_inverse, signal_inverse
from recrawl.model.kernels.signals import ALL_TERMS, signal_interval, signal_slope, signal_value

SOURCES = st.tuples(log_uniform(1e-6, 1e3), log_uniform(1e-4, 1e3), log_uniform(1e-4, 20.0))  # missed, signals, weight


def change_rate_of(source: tuple[float, float, float]) -> float:
    alpha, gamma, kappa = source
    return alpha - gamma * math.expm1(-kappa)


@given(SOURCES, log_uniform(1e-9, 40.0))
@settings(max_examples=examples(500))
@example((1.0, 1.0, 0.01), 9.0)  # linear for the value, not yet for the interval
@example((1e-3, 1.0, 0.3), 0.9000001)  # just after a step of the interval
def test_value_and_slope_are_those_of_the_model(source, s):
    value, slope, error = value_and_slope(*source, change_rate_of(source), s, ALL_TERMS)
    assert close(value, signal_value(*source, change_rate_of(source), s, 0.0, ALL_TERMS))
    assert close(slope, signal_slope(*source, s, ALL_TERMS), rel=max(error, EXACT))


@given(SOURCES, log_uniform(1e-6, 0.999), st.sampled_from([0.0, 0.5, 0.999999, 1.0, 1.000001, 3.0]))
@settings(max_examples=examples(500))
def test_a_value_is_reached_at_its_exponent_from_any_guess(source, share, guess):
    rate = change_rate_of(source)
    first = signal_inverse(*source, rate, share / rate, ALL_TERMS, 0.0)
    assert close(signal_value(*source, rate, first, 0.0, ALL_TERMS), share / rate, rel=1e-10)
    again = signal_inverse(*source, rate, share / rate, ALL_TERMS, first * guess)
    slope = signal_slope(*source, first, ALL_TERMS)
    assert abs(again - first) <= 1e-10 * first + 1e-14 / (rate * slope)  # as far as the value tells them apart


def bisected(source: tuple[float, float, float], interval: float) -> float:
    low, high = 0.0, interval * (source[0] + source[1] * source[2])
    while low < 0.5 * (low + high) < high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if signal_interval(*source, middle, 0.0) < interval else (low, middle)
    return high


@given(SOURCES, log_uniform(1e-6, 1e4), st.sampled_from([0.0, 1e-9, 0.7, 0.999999999, 1.0, 1.000000001, 1.3, 1e9]))
@settings(max_examples=examples(500))
def test_an_interval_is_reached_at_its_exponent_from_any_guess(source, length, guess):
    interval = length / source[1]
    expected = bisected(source, interval)
    found = interval_inverse(*source, interval, expected * guess)
    assert close(found, expected, rel=1e-12) or close(signal_interval(*source, found, 0.0), interval, rel=1e-14)


@pytest.mark.parametrize("kappa", [0.0, math.inf])
def test_intervals_without_noisy_signals_are_elementary(kappa):
    found = interval_inverse(0.5, 2.0, kappa, 0.25, 7.0)
    assert found == pytest.approx(0.125 if kappa == 0.0 else -math.log1p(-0.5) * 0.25)
