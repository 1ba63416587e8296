"""What a crawl rate earns, and its slope, equal their twins for every objective and spacing, also with signals."""

import math

import naive
import numpy as np
import pytest
from draws import EXACT, Page, close, log_uniform, noisy_pages
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from naive import signals as naive_signals
from profiles import examples

from recrawl import ParameterError
from recrawl.model import Pages, crawl_interval, crawl_value, marginal_value, page_cost, page_freshness

RATIOS = log_uniform(1e-6, 1e6)  # change_rate / crawl_rate
COSTS = {"harmonic": naive.harmonic_cost, "age": naive.age_cost}
SLOPES = {"harmonic": naive.harmonic_cost_slope, "age": naive.age_cost_slope}


def first(column: np.ndarray) -> float:
    return float(column[0])


@given(log_uniform(1e-6, 1e6), RATIOS, st.sampled_from(["even", "random"]))
@settings(max_examples=examples(300))
@example(1.0, 1e12, "even")
@example(1.0, 1e-12, "even")
@example(0.0, 1.0, "even")
@example(0.0, 1.0, "random")
def test_freshness_equals_its_twin(change_rate, ratio, spacing):
    pages, rate = Pages([change_rate], 3.0), (change_rate or 1.0) / ratio
    assert close(first(page_freshness(pages, rate, spacing=spacing)), naive.freshness(change_rate, rate, spacing))
    slope = 3 * naive.freshness_slope(change_rate, rate, spacing)
    assert close(first(marginal_value(pages, rate, spacing=spacing)), slope)


@given(log_uniform(1e-9, 1), log_uniform(1e-9, 1))
@example(1.0, 0.5)
@example(0.3, 1.0)
@example(1.0, 1.0)
def test_freshness_in_steps_equals_its_twin(change, probability):
    pages = Pages([change], 3.0)
    assert close(
        first(page_freshness(pages, probability, spacing="steps")), naive.freshness(change, probability, "steps")
    )
    # the twin's central difference needs a rate just above 1 too: the formula continues there
    slope = 3 * naive.freshness_slope(change, probability, "steps")
    assert close(first(marginal_value(pages, probability, spacing="steps")), slope)


@given(
    log_uniform(1e-3, 1e3), log_uniform(1e-5, 1e5), st.sampled_from(sorted(COSTS)), st.sampled_from(["even", "random"])
)
@settings(max_examples=examples(60))
@example(1.0, math.nextafter(40.0, 0), "harmonic", "even")  # where the series gives way to the logarithm
@example(1.0, math.nextafter(40.0, 50), "harmonic", "even")
@example(1.0, 0.5, "age", "even")
def test_costs_equal_their_twins(change_rate, ratio, objective, spacing):
    pages, rate = Pages([change_rate], 3.0), change_rate / ratio
    expected = COSTS[objective](change_rate, rate, spacing)
    assert close(first(page_cost(pages, rate, objective, spacing=spacing)), expected)
    assert close(
        first(marginal_value(pages, rate, objective, spacing=spacing)),
        -3 * SLOPES[objective](change_rate, rate, spacing),
    )


@given(log_uniform(1e-3, 1e3), log_uniform(1e-6, 1))
def test_complete_signals(change_rate, share):
    pages, rate = Pages([change_rate], 2.0, recall=1.0), share * change_rate
    for spacing in ("even", "random"):
        assert close(first(page_freshness(pages, rate, spacing=spacing)), rate / change_rate)
        assert close(first(marginal_value(pages, rate, spacing=spacing)), 2 / change_rate)
    cost = first(page_cost(pages, rate, "harmonic", spacing="random"))
    assert math.isclose(cost, -math.log(rate / change_rate), rel_tol=1e-10, abs_tol=1e-15)
    assert close(first(marginal_value(pages, rate, "harmonic", spacing="random")), 2 / rate)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 29, 30, 1000])
def test_complete_signals_followed_at_every_nth(n):
    # after the k-th of n signals the penalty is H(k): the mean over a cycle, and half way to the next n by mixing
    mean = [math.fsum((m - k) / k for k in range(1, m)) / m for m in (n, n + 1)]
    pages = Pages([2.0], recall=1.0)
    assert first(page_cost(pages, 2.0 / n, "harmonic")) == pytest.approx(mean[0], rel=1e-12, abs=1e-15)
    rate = (2.0 / n + 2.0 / (n + 1)) / 2
    assert first(page_cost(pages, rate, "harmonic")) == pytest.approx(sum(mean) / 2, rel=1e-10)
    slope = (mean[1] - mean[0]) / (2.0 / n - 2.0 / (n + 1))
    assert first(marginal_value(pages, rate, "harmonic")) == pytest.approx(slope, rel=1e-9)


@given(noisy_pages(), log_uniform(1e-6, 40))
@settings(max_examples=examples(200))
def test_noisy_signals_earn_what_their_threshold_earns(page, exponent):
    assume(0 < page.recall < 1 - 1e-9)
    assume(page.false_rate > 0)
    pages = page.pages()
    rates = (page.change_rate, page.recall, page.false_rate)
    psi = naive.interval(*rates, exponent)
    expected = naive.fresh_time(*rates, exponent) / psi
    assert close(first(page_freshness(pages, 1 / psi)), expected)
    # ψ is a staircase for recalls near 1: a float of 1/ψ cannot tell the threshold on a tread, only between its edges
    value = page.importance * naive_value_at(page, exponent)
    more, less = marginal_value(pages, 1 / psi * (1 - 1e-12)), marginal_value(pages, 1 / psi * (1 + 1e-12))
    assert first(less) * (1 - EXACT) <= value <= first(more) * (1 + EXACT)


def naive_value_at(page: Page, exponent: float) -> float:
    return naive_signals.value_at(naive_signals.Page(page.change_rate, 1.0, page.recall, page.false_rate), exponent)


@given(noisy_pages(), log_uniform(1e-3, 20))
def test_freshness_is_what_the_value_and_the_interval_say(page, exponent):
    assume(page.missed_rate > 0)
    assume(page.recall < 1 - 1e-9)
    pages = page.pages()
    psi = first(crawl_interval(pages, exponent))
    value = first(crawl_value(pages, exponent / page.missed_rate)) / page.importance
    assert close(first(page_freshness(pages, 1 / psi)), math.exp(-exponent) + value / psi)


@given(log_uniform(1e-3, 1e3), st.lists(log_uniform(1e-6, 1e6), min_size=2, max_size=8))
def test_even_is_fresher_than_random_and_both_rise(change_rate, ratios):
    rate = np.sort(change_rate / np.array(ratios))
    even = page_freshness(Pages([change_rate]), rate)
    random = page_freshness(Pages([change_rate]), rate, spacing="random")
    assert (even >= random).all()
    assert (np.diff(even) >= 0).all()
    assert (np.diff(random) >= 0).all()


@given(log_uniform(1e-3, 1e3), RATIOS, st.sampled_from([0.5, 1.0, 2.0, 7.5, 1e6]))
@settings(max_examples=examples(60))
def test_uncertain_rates(change_rate, ratio, shape):
    # d freshness / d rate = V(1/rate), and freshness = P + rate·V by integration by parts
    pages, rate = Pages([change_rate], evidence=shape), change_rate / ratio
    value = naive.value_posterior(change_rate, 1.0, shape, 1 / rate)
    assert close(first(marginal_value(pages, rate)), value)
    fresh = math.exp(-shape * math.log1p(ratio / shape)) + rate * value
    assert close(first(page_freshness(pages, rate)), fresh)


@pytest.mark.parametrize(
    ("columns", "rate", "options", "message"),
    [
        ({}, [1.0, -1.0], {}, "crawl_rate, row 1: must be at least 0"),
        ({}, [1.0, math.nan], {}, "crawl_rate, row 1: must be at least 0"),
        ({}, [1.0, 1.0, 1.0], {}, "crawl_rate has 3 rows but there are 2 pages"),
        ({}, [0.5, 1.5], {"spacing": "steps"}, "crawl_rate, row 1: is a probability per step"),
        ({"change_rate": [0.5, 2.0]}, 0.5, {"spacing": "steps"}, "change_rate, row 1: is a probability per step"),
        ({}, 1.0, {"spacing": "odd"}, "spacing 'odd' is not one of even, random, steps"),
        ({"recall": [0.0, 0.5]}, 1.0, {"spacing": "random"}, "recall, row 1: no optimum is known"),
        ({"evidence": [2.0, 1.0]}, 1.0, {"spacing": "random"}, "evidence, row 0: only even spacing"),
        ({"recall": [0.0, 0.5], "evidence": 2.0}, 1.0, {}, "evidence, row 1: a page with signals needs a known rate"),
    ],
)
def test_bad_input(columns, rate, options, message):
    pages = Pages(**{"change_rate": [0.5, 0.5], **columns})
    with pytest.raises(ParameterError, match=message):
        page_freshness(pages, rate, **options)
