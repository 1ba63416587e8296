"""Several signal sources: summed exactly they equal their twin; one matched source is near, and how near is tested."""

import math

import naive
import numpy as np
import pytest
from draws import ROUNDING, close, log_uniform
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from profiles import examples

from recrawl import ParameterError
from recrawl.model import Pages, crawl_value, matched_source, signal_weight, staleness_exponent
from recrawl.model.signals import lone_sources

# Relative error of the matched source over `drawn_population`, as docs/concepts/model.md states it.
MATCHED_MEDIAN, MATCHED_MOST = 0.071, 0.67


@st.composite
def several(draw):
    """(pages with one row and two or three sources, elapsed, counts); weights such that a twin can enumerate counts."""
    k = draw(st.integers(2, 3))
    share = st.one_of(st.floats(0.01, 0.99), st.sampled_from([0.0, 1.0]))
    recall = draw(st.lists(share, min_size=k, max_size=k))
    false_rate = draw(st.lists(st.one_of(log_uniform(1e-3, 2.0), st.just(0.0)), min_size=k, max_size=k))
    change_rate = draw(log_uniform(0.1, 10.0))
    false_rate = [change_rate * rate for rate in false_rate]
    counts = draw(st.lists(st.integers(0, 2), min_size=k, max_size=k))
    elapsed = draw(log_uniform(1e-3, 5.0)) / change_rate
    return Pages([change_rate], 2.0, [recall], [false_rate]), elapsed, np.array([counts])


def n_vectors(pages, elapsed, counts) -> float:
    """About how many count vectors a twin enumerates."""
    exponent = min(float(staleness_exponent(pages, elapsed, counts)[0]), 60.0)
    return math.prod(1 + exponent / weight for weight in signal_weight(pages)[0] if weight > 0)


def twin(pages, elapsed, counts) -> float:
    rates, weights = lone_sources(pages)
    pairs = list(zip(rates[0].tolist(), weights[0].tolist(), strict=True))
    exponent = float(staleness_exponent(pages, elapsed, counts)[0])
    change, missed = float(pages.change_rate[0]), float(pages.missed_rate[0])
    if math.isinf(exponent) or exponent > 60:
        return 2.0 / change
    return naive.value_sources(change, 2.0, pairs, missed, exponent)


@given(several())
@settings(max_examples=examples(80))
@example((Pages([1.0], 2.0, [[0.5, 0.0]], [[0.5, 1.0]]), 1.0, np.array([[1, 2]])))  # one of them is noise
@example((Pages([1.0], 2.0, [[0.0, 0.0]], [[0.5, 1.0]]), 1.0, np.array([[1, 2]])))  # both are
@example((Pages([1.0], 2.0, [[1.0, 0.5]], [[0.5, 0.5]]), 1.0, np.array([[1, 0]])))  # one sees every change
@example((Pages([1.0], 2.0, [[1.0, 1.0]], [[0.5, 0.5]]), 1.0, np.array([[1, 0]])))  # both do
def test_exact_sum_equals_its_twin(state):
    pages, elapsed, counts = state
    assume(n_vectors(pages, elapsed, counts) < 3000)
    got = float(crawl_value(pages, elapsed, counts, sources="exact")[0])
    assert close(got, twin(pages, elapsed, counts))


@given(st.floats(0.05, 0.95), log_uniform(0.01, 10), log_uniform(0.01, 10), st.integers(0, 5))
def test_one_of_two_sources_silent_is_one_source(recall, false_rate, elapsed, signals):
    one = crawl_value(Pages([1.0], 1.0, recall, false_rate), elapsed, signals)[0]
    two = Pages([1.0], 1.0, [[recall, 0.0]], [[false_rate, 0.0]])
    for sources in ("exact", "matched"):
        got = float(crawl_value(two, elapsed, [[signals, 0]], sources=sources)[0])
        assert close(got, one, rel=1e-12)


@given(st.floats(0.05, 0.5), log_uniform(0.05, 10))
def test_lone_signals_weigh_as_published(recall, false_rate):
    # at most one source signals a change: κ_k = ln(1 + Δ λ_k ∏_{j≠k}(1 − λ_j)/ν_k), α = Δ ∏(1 − λ_j)
    pages = Pages([2.0], 1.0, [[recall, 0.3]], [[false_rate, 0.7]])
    expected = [math.log1p(2 * recall * 0.7 / false_rate), math.log1p(2 * 0.3 * (1 - recall) / 0.7)]
    assert signal_weight(pages)[0] == pytest.approx(expected, rel=1e-14)
    assert pages.missed_rate[0] == pytest.approx(2 * (1 - recall) * 0.7, rel=1e-14)
    rates, weights = lone_sources(pages)
    assert rates[0].sum() == pytest.approx(2 * (1 - (1 - recall) * 0.7) + false_rate + 0.7, rel=1e-14)
    assert weights[0][-1] == math.inf


@given(several())
def test_matched_source_keeps_signals_and_the_changes_behind_them(state):
    pages, _, _ = state
    missed, rate, weight = (float(column[0]) for column in matched_source(pages))
    rates, weights = lone_sources(pages)
    caught = (rates[0] * -np.expm1(-weights[0])).sum()
    assert rate == pytest.approx(rates[0].sum(), rel=1e-12)
    assert -rate * math.expm1(-weight) == pytest.approx(caught, rel=1e-9)
    assert missed + caught == pytest.approx(pages.change_rate[0], rel=1e-9)


def drawn_population(n: int = 2000) -> tuple[Pages, np.ndarray, np.ndarray]:
    """Two sources per page with quality as drawn for the papers' experiments, in states around their thresholds."""
    rng = np.random.default_rng(7)
    pages = Pages(rng.uniform(0.05, 1.0, n), 1.0, rng.uniform(0.05, 0.95, (n, 2)), rng.uniform(0.1, 0.6, (n, 2)))
    return pages, rng.exponential(2.0, n) / pages.change_rate, rng.poisson(0.7, (n, 2))


@pytest.mark.slow
def test_error_of_the_matched_source_is_as_documented():
    pages, elapsed, counts = drawn_population()
    exact = crawl_value(pages, elapsed, counts, sources="exact")
    error = np.abs(crawl_value(pages, elapsed, counts) / exact - 1)
    assert np.median(error) == pytest.approx(MATCHED_MEDIAN, abs=0.0005)
    assert error.max() == pytest.approx(MATCHED_MOST, abs=0.005)


@pytest.mark.parametrize("sources", ["exact", "matched"])
def test_several_sources_never_fall(sources):
    pages, elapsed, counts = drawn_population(200)
    now = crawl_value(pages, elapsed, counts, sources=sources)
    assert (crawl_value(pages, 1.3 * elapsed, counts, sources=sources) >= now * (1 - ROUNDING)).all()
    for k in range(2):
        more = counts + (np.arange(2) == k)
        assert (crawl_value(pages, elapsed, more, sources=sources) >= now * (1 - ROUNDING)).all()


def test_what_the_exact_sum_cannot_do():
    pages = Pages([1.0], 1.0, [[0.5, 0.5]], [[1e6, 1e6]])
    with pytest.raises(ParameterError, match="signals, row 0: over a million"):
        crawl_value(pages, 10.0, sources="exact")
    with pytest.raises(ParameterError, match="terms is not defined"):
        crawl_value(pages, 1.0, sources="exact", terms=2)
