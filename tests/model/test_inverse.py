"""The elapsed time at a value: the smallest one, equal to its twin, and the way back to the value."""

import math

import naive
import pytest
from draws import EXACT, Page, State, close, log_uniform, noisy_pages, states
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from profiles import examples

from recrawl.model import Pages, crawl_value, crawl_value_slope, elapsed_at_value, value_limit

pytestmark = pytest.mark.slow

NOISE = 1e-14  # what a float of a value is worth, relative, with the rounding of a few operations


def elapsed_of(page: Page, value: float, signals: float = 0, **options) -> float:
    return float(elapsed_at_value(page.pages(), value, signals, **options)[0])


@given(states())
@settings(max_examples=examples(600))
@example(State(Page(1.0, 1.0, 1 - 1e-16, 0.5), 1e6, 2))
@example(State(Page(1.0, 1.0, 0.5, 5e11), 1e-12, 0))
@example(State(Page(1.0, 1.0, 0.5, 0.5), 1e-9, 3))  # the elapsed part is tiny beside that of the signals
def test_inverse_is_the_smallest_elapsed(state):
    page, elapsed, signals = state
    value = naive.value(*page, elapsed, signals)
    assume(0 < value < value_limit(page.pages())[0])
    found = elapsed_of(page, value, signals)
    growth = float(crawl_value_slope(page.pages(), elapsed, signals)[0]) * elapsed / value
    if growth > NOISE / EXACT:  # a bracket of the twin's own inverse, at the price of two values
        assert naive.value_mp(*page, found * (1 - EXACT), signals) < value
        assert naive.value_mp(*page, found * (1 + EXACT), signals) > value
    elif found < math.inf:  # so flat that the float of the value does not tell the time to 1e-10
        reached = naive.value(*page, found, signals)
        assert reached >= value * (1 - NOISE)
        assert found == 0 or naive.value(*page, found * 0.5, signals) <= value * (1 + NOISE)
        assert close(reached, value, rel=1e-13) or found == 0


@given(states(noisy_pages(recall=log_uniform(1e-6, 0.99))))
@settings(max_examples=12)
def test_inverse_equals_the_bisection_of_its_twin(state):
    page, elapsed, _ = state
    value = naive.value(*page, min(elapsed, 10 / page.change_rate), 0)
    assert close(elapsed_of(page, value, 0), naive.inverse(*page, value, 0))


@given(states(), log_uniform(1e-12, 0.999))
@settings(max_examples=examples(500))
def test_value_of_the_inverse_is_the_value(state, share):
    page, _, signals = state
    value = share * float(value_limit(page.pages())[0])
    found = elapsed_of(page, value, signals)
    if found == 0:  # the signals alone are worth that much
        assert crawl_value(page.pages(), 0.0, signals)[0] >= value
    elif found < math.inf:
        assert close(float(crawl_value(page.pages(), found, signals)[0]), value, rel=1e-12)
    else:  # every change is signalled: time adds nothing
        assert page.recall == 1
        assert crawl_value(page.pages(), math.inf, signals)[0] < value


@given(noisy_pages(recall=st.just(1.0)), st.integers(0, 20), log_uniform(1e-9, 2))
def test_where_time_adds_nothing_it_is_now_or_never(page, signals, share):
    value = share * page.importance / page.change_rate
    reached = naive.value(*page, 0.0, signals)
    if page.false_rate == 0 and not signals:
        reached = 0.0
    assume(abs(reached / value - 1) > NOISE)
    assert elapsed_of(page, value, signals) == (0 if reached >= value else math.inf)


@pytest.mark.parametrize("page", [Page(1.0), Page(1.0, recall=0.5, false_rate=0.5), Page(1.0, recall=0.5)])
def test_beyond_the_limit_never(page):
    assert elapsed_of(page, 1.0) == math.inf
    assert elapsed_of(page, 2.0) == math.inf
    assert elapsed_of(page, math.nextafter(1.0, 0)) > 30
    assert elapsed_of(page, 0.0) == 0.0


def test_pages_without_any_value():
    never = Pages([0.0, 1.0], importance=[1.0, 0.0])
    assert elapsed_at_value(never, 1e-300).tolist() == [math.inf, math.inf]
    assert elapsed_at_value(never, 0.0).tolist() == [0.0, 0.0]


@given(states(noisy_pages(recall=log_uniform(1e-3, 0.99))), st.integers(1, 4))
def test_inverse_of_the_first_terms(state, terms):
    page, elapsed, _ = state
    assume(page.false_rate > 0)
    value = naive.value(*page, elapsed, 0, terms=terms)
    most = naive.value(*page, math.inf, 0, terms=terms)
    assume(value < most * (1 - 1e-6))
    assert close(elapsed_of(page, value, terms=terms), elapsed)


@given(log_uniform(1e-6, 1e6), log_uniform(1e-12, 1e6), st.sampled_from(["freshness", "harmonic", "age"]))
@settings(max_examples=examples(150, usual=12))
@example(1.0, 0.5, "freshness")
@example(1.0, 1e6, "age")
def test_inverse_without_signals(change_rate, x, objective):
    elapsed = x / change_rate
    if objective == "freshness":
        value = naive.value(change_rate, 2.0, 0.0, 0.0, elapsed)
    else:
        value = {"harmonic": naive.value_harmonic, "age": naive.value_age}[objective](change_rate, 2.0, elapsed)
    assume(value < value_limit(Pages([change_rate], 2.0), objective)[0] * (1 - 1e-4))
    assert close(elapsed_of(Page(change_rate, 2.0), value, objective=objective), elapsed)
