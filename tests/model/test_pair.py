"""The value and the interval as a scheduler asks for them equal those of the model."""

import math

import naive
import pytest
from draws import EXACT, Page, State, band_states, close, states
from hypothesis import assume, example, given, settings
from profiles import examples

from recrawl.model import Pages, matched_source
from recrawl.model.kernels.pair import value_and_interval
from recrawl.model.kernels.signals import ALL_TERMS, signal_interval, signal_value


def asked(state: State) -> tuple[float, float, float, float]:
    """(value, interval, the model's value, the model's interval) per unit of importance."""
    page, elapsed, signals = state
    source = matched_source(Pages([page.change_rate], 1.0, page.recall, page.false_rate))
    alpha, gamma, kappa = (float(column[0]) for column in source)
    offset = alpha * elapsed
    value, interval = value_and_interval(alpha, gamma, kappa, page.change_rate, offset, float(signals), ALL_TERMS)
    exact = signal_value(alpha, gamma, kappa, page.change_rate, offset, float(signals), ALL_TERMS)
    return value, interval, exact, signal_interval(alpha, gamma, kappa, offset, float(signals))


@given(states() | band_states())
@settings(max_examples=examples(1000))
@example(State(Page(1.0, 1.0, 0.5, 0.5), 1.0, 2))
@example(State(Page(1.0, 1.0, 0.5, 0.5), 1e-3, 0))  # too many digits would be lost
@example(State(Page(1.0, 1.0, 0.97, 2.0), 30.0, 40))  # a long row of terms
@example(State(Page(1.0, 1.0, 0.9, 0.3), 60.0, 8))  # linear for the value, not yet for the interval
@example(State(Page(1.0, 1.0, 0.5, 0.0), 1.0, 1))  # proof
@example(State(Page(1.0, 1.0, 1.0, 0.5), 3.0, 3))  # nothing is missed
@example(State(Page(1.0, 1.0, 1e-7, 9e-7), 1.0, 0))  # signals so rare that short sums lose digits
@example(State(Page(1.0, 1.0, 1e-4, 5.551115123125786e-20), 1.0, 3))  # all but proof: one step is a third of the way
def test_the_pair_is_that_of_the_model(state):
    assume(state.page.change_rate > 0)
    value, interval, exact, expected = asked(state)
    assert close(value, exact)
    assert interval >= expected * (1 - EXACT)
    assert close(interval, expected, rel=0.2) or math.isinf(expected)


@pytest.mark.parametrize("signals", [0, 1, 3, 9, 40])
@pytest.mark.parametrize("elapsed", [0.1, 1.0, 6.0, 30.0])
@pytest.mark.parametrize("recall", [0.02, 0.3, 0.8, 0.99])
@pytest.mark.parametrize("false_rate", [0.1, 0.6])
def test_the_value_equals_its_twin(recall, false_rate, elapsed, signals):
    page = Page(0.7, 1.0, recall, false_rate)
    assert close(asked(State(page, elapsed, signals))[0], naive.value(*page, elapsed, signals), rel=1e-12)
