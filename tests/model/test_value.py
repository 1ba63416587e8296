"""The crawl value, its slope and the crawl interval equal their twins; the value never falls."""

import math

import mpmath
import naive
import numpy as np
import pytest
from draws import EXACT, ROUNDING, Page, State, band_states, close, log_uniform, noisy_pages, states
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from profiles import examples

from recrawl.model import Pages, crawl_interval, crawl_value, crawl_value_slope, fresh_probability, value_limit

ALMOST = 1 - 1e-16
# The corners of the parameter space, as pages with Δ = 1: each with a short, a middling and a long time since a crawl.
CORNERS = [
    Page(1.0),  # no signals
    Page(1.0, recall=0.0, false_rate=3.0),  # pure noise
    Page(1.0, recall=0.5),  # signals are proof
    Page(1.0, recall=1e-12),
    Page(1.0, recall=1.0),  # complete
    Page(1.0, recall=1.0, false_rate=0.5),  # every change signalled, signals lie
    Page(1.0, recall=ALMOST),
    Page(1.0, recall=ALMOST, false_rate=0.5),
    Page(1.0, recall=1 - 1e-14, false_rate=1e-6),
    Page(1.0, recall=1 - 1e-14, false_rate=1e6),
    Page(1.0, recall=0.5, false_rate=0.5e12),  # precision 1e-12
    Page(1.0, recall=ALMOST, false_rate=1e12),
    Page(1.0, recall=1.0, false_rate=1e12),
    Page(1.0, recall=1e-12, false_rate=1.0),
    Page(0.0, recall=0.5, false_rate=1.0),  # never changes
    Page(0.0),
    Page(1.0, importance=0.0, recall=0.5, false_rate=1.0),
]


def value_of(state: State, **options) -> float:
    return float(crawl_value(state.page.pages(), state.elapsed, state.signals, **options)[0])


def slope_twin(state: State) -> float:
    """V′ = μ α e^{−s} ψ(s), s = α·elapsed + κ·signals, with 60 digits and more."""
    page, elapsed, signals = state
    if page.change_rate == 0 or page.importance == 0:
        return 0.0
    with mpmath.workdps(80):
        missed = (1 - mpmath.mpf(page.recall)) * page.change_rate
        true_rate = mpmath.mpf(page.recall) * page.change_rate
        proof = page.recall > 0 and page.false_rate == 0
        if missed == 0 or (proof and signals):
            return 0.0
        weight = 0 if proof or page.recall == 0 else mpmath.log1p(true_rate / page.false_rate)
        s = missed * elapsed + weight * signals
        reached = naive.interval(page.change_rate, page.recall, page.false_rate, missed * elapsed, signals)
        return float(page.importance * missed * mpmath.exp(-s) * reached)


@pytest.mark.parametrize("signals", [0, 1, 2, 30])
@pytest.mark.parametrize("elapsed", [1e-12, 1e-6, 0.3, 1.0, 40.0, 1e6])
@pytest.mark.parametrize("page", CORNERS)
def test_value_at_the_corners(page, elapsed, signals):
    state = State(page, elapsed, signals)
    assert close(value_of(state), naive.value(*page, elapsed, signals))
    assert close(float(crawl_value_slope(page.pages(), elapsed, signals)[0]), slope_twin(state)) or (
        slope_twin(state) < 1e-290
    )


@given(states())
@settings(max_examples=examples(1200))
def test_value_equals_its_twin(state):
    assert close(value_of(state), naive.value(*state.page, state.elapsed, state.signals))


@given(band_states())
@settings(max_examples=examples(500))
@example(State(Page(1.0, 1.0, 0.5, 0.5), math.nextafter(90.0, 0), 0))  # s just below and above 45: saturated
@example(State(Page(1.0, 1.0, 0.5, 0.5), math.nextafter(90.0, 100), 0))
@example(State(Page(1.0, 1.0, 0.999, 200.0), 2000.0, 300))
@example(State(Page(1.0, 1.0, 2e-311, 9e-310), 1.0, 0))  # signals so rare that 1/γ is infinite
@example(State(Page(1.0, 1.0, 1 - 1e-9, 1e5), 3e5, 25_000))  # sums whose incomplete gammas have shapes above 10,000
@example(State(Page(1.0, 1.0, 1 - 1e-12, 1e6), 1e3, 1_000_000))
def test_value_with_many_weak_signals(state):
    assert close(value_of(state), naive.value(*state.page, state.elapsed, state.signals))


@pytest.mark.parametrize("elapsed", [1e-9, 1.0, 1e6, 1e13])
@pytest.mark.parametrize("recall", [1 - 1e-15, 0.5, 1e-15])
def test_value_of_signals_without_number(recall, elapsed):
    # The sums of a twin would need 1e8 terms and more. By Wald's bounds u ≤ mψ(u) ≤ u + κ, m = α + γκ.
    page = Page(1.0, 1.0, recall, 1e25 * recall)
    weight, s = 1e-25, (1 - recall) * elapsed
    drift = (1 - recall) + (recall + page.false_rate) * weight
    expected = float(mpmath.gammainc(2, 0, s, regularized=True)) / drift
    assert close(value_of(State(page, elapsed)), expected, rel=2 * weight / s + EXACT)


@given(states())
@settings(max_examples=examples(500))
@example(State(Page(1.0, recall=2e-309), 1e-6))
def test_slope_equals_its_twin(state):
    expected = slope_twin(state)
    assume(expected == 0 or expected > 1e-290)  # below, a float has fewer digits
    assert close(float(crawl_value_slope(state.page.pages(), state.elapsed, state.signals)[0]), expected)


@given(band_states())
@settings(max_examples=examples(200))
def test_slope_with_many_weak_signals(state):
    assert close(float(crawl_value_slope(state.page.pages(), state.elapsed, state.signals)[0]), slope_twin(state))


@given(noisy_pages(), log_uniform(1e-9, 1e3))
@settings(max_examples=examples(400))
@example(Page(1.0, recall=1.0), 2.0)
@example(Page(1.0, recall=1.0, false_rate=0.5), 3.0)
@example(Page(1.0), math.inf)
@example(Page(1.0, recall=0.5), math.inf)
@example(Page(0.0), 1.0)
def test_interval_equals_its_twin(page, exponent):
    got = float(crawl_interval(page.pages(), exponent)[0])
    assert close(got, naive.interval(page.change_rate, page.recall, page.false_rate, exponent))


@given(band_states())
@settings(max_examples=examples(300))
def test_interval_with_many_weak_signals(state):
    page = state.page
    exponent = page.missed_rate * state.elapsed
    got = float(crawl_interval(page.pages(), exponent)[0])
    assert close(got, naive.interval(page.change_rate, page.recall, page.false_rate, exponent))


@given(states(noisy_pages(recall=log_uniform(1e-9, 0.999))), st.integers(1, 8))
@settings(max_examples=examples(300))
@example(State(Page(1.0, 1.0, 0.5, 0.5), 3.0, 2), 1)
@example(State(Page(1.0, 1.0, 1.0, 0.5), 3.0, 7), 2)
@example(State(Page(1.0, 1.0, 0.01, 1.4e-6), 1.0, 82), 1)  # s = 728: e^{−s} is no longer a normal float
@example(State(Page(1.0, 1.0, 0.1, 0.0), 1.0, 1), 1)  # proof
@example(State(Page(1.0, 1.0, 0.1, 0.0), math.inf, 0), 1)
@example(State(Page(1.0, 1.0, 0.1, 0.3), math.inf, 0), 3)
def test_first_terms_equal_their_twin(state, terms):
    expected = naive.value(*state.page, state.elapsed, state.signals, terms=terms)
    assert close(value_of(state, terms=terms), expected)


@given(states(), log_uniform(1e-6, 1e3))
@settings(max_examples=examples(1000))
@example(State(Page(1.0, 1.0, 0.4589367700271304, 1.5963385442879422e-09), 0.31622776601683794, 2), 1.7782794100389228)
def test_value_never_falls_with_time_or_signals(state, longer):
    now = value_of(state)
    assert value_of(state._replace(elapsed=state.elapsed * (1 + longer))) >= now * (1 - ROUNDING)
    assert value_of(state._replace(signals=state.signals + 1)) >= now * (1 - ROUNDING)
    assert 0 <= now <= value_limit(state.page.pages())[0] * (1 + ROUNDING)


@given(states())
def test_fresh_probability_is_e_to_the_minus_exponent(state):
    page, elapsed, signals = state
    rest = 1.0
    if signals and page.recall > 0:  # e^{−κ} = ν/(λΔ + ν)
        rest = (page.false_rate / (page.recall * page.change_rate + page.false_rate)) ** signals
    expected = math.exp(-page.missed_rate * elapsed) * rest
    got = float(fresh_probability(page.pages(), elapsed, signals)[0])
    assert got == pytest.approx(expected, rel=EXACT, abs=1e-280)


def test_many_rows_equal_single_rows():
    pages = [page for page in CORNERS for _ in range(3)]
    elapsed = np.tile([1e-3, 1.0, 50.0], len(CORNERS))
    columns = [np.array(column) for column in zip(*pages, strict=True)]
    together = crawl_value(Pages(*columns), elapsed, 2)
    assert together.tolist() == [value_of(State(p, float(t), 2)) for p, t in zip(pages, elapsed, strict=True)]
