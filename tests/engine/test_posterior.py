"""The posterior of a page's change rate: equal to Bayes' rule, and what becomes of given rates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import beliefs as naive
from naive.beliefs import Observed
from profiles import examples

from recrawl import Engine
from recrawl.engine.beliefs.beliefs import Beliefs, estimated_seen
from recrawl.engine.beliefs.posterior_kernels import MOST_SHAPE, fill_posterior, fill_prior, gamma_of, matched_shape

TABLE = naive.first_table()
RATES = naive.RATES


def made(observed: Observed) -> Beliefs:
    """Beliefs about one page of which this was observed, with a day as the unit of time."""
    beliefs = Beliefs(None, 0, math.inf, 1.0)
    beliefs.append([("a", "a")], np.array([True]))
    beliefs.belief.seen[0], beliefs.belief.evidence[0] = observed[:3], observed[3:]
    beliefs.believe(np.array([0]))
    return beliefs


def moments(beliefs: Beliefs) -> tuple[float, float]:
    """(mean, mean logarithm) of the first page's posterior on the grid."""
    b = beliefs.belief
    prior, posterior = np.empty(len(b.rates)), np.empty(len(b.rates))
    fill_prior(b, 0, prior)
    fill_posterior(b, 0, prior, posterior)
    assert posterior.sum() == pytest.approx(1.0)
    return naive.moments(posterior, b.rates)


def summed(crawls: list[tuple[float, bool]]) -> Observed:
    changed = [math.log(time) for time, found in crawls if found]
    return Observed(math.fsum(time for time, found in crawls if not found), len(changed), math.fsum(changed))


EXACT = {
    "nothing": [],
    "one changed": [(3.0, True)],
    "one unchanged": [(3.0, False)],
    "only unchanged": [(0.1, False), (7.0, False), (40.0, False)],
    "equal intervals": [(2.0, k % 3 == 0) for k in range(12)],
    "always changed": [(2.0, True)] * 15,
    "very short": [(1e-7, True), (1e-7, False)],
    "very long": [(1e6, True), (1e6, False)],
}


@pytest.mark.parametrize("name", EXACT)
def test_the_posterior_is_that_of_bayes(name: str) -> None:
    assert moments(made(summed(EXACT[name]))) == pytest.approx(naive.exact_moments(TABLE, EXACT[name], RATES), rel=1e-9)


@given(
    st.floats(0.0, 1e3),
    st.integers(0, 60),
    st.floats(-8.0, 8.0),
    st.sampled_from([(0.0, 0.0), (0.5, 5.0), (2.0, 0.1), (1e3, 1e3)]),
)
@settings(max_examples=examples(100))
def test_the_posterior_equals_its_twin(unchanged: float, changes: int, log: float, rate: tuple[float, float]) -> None:
    observed = Observed(unchanged, changes, changes * log, *rate)
    beliefs = made(observed)
    prior = naive.prior_of(None, [], TABLE, (5.0, 5.0))
    assert moments(beliefs) == pytest.approx(naive.moments(naive.posterior(prior, observed, RATES), RATES), rel=1e-9)
    (shape, scale), (twin_shape, twin_scale, close) = beliefs.belief.gamma[0], naive.gamma_of(prior, observed, RATES)
    assert shape / scale == pytest.approx(twin_shape / twin_scale, rel=close)
    assert shape == pytest.approx(twin_shape, rel=0.03 + 4 * close)


@pytest.mark.parametrize("changes", [10, 100, 10_000, 1_000_000])
def test_a_narrow_posterior_is_not_rounded_to_the_grid(changes: int) -> None:
    """Half of the intervals of one day have a change: the rate is ln 2, between two rates of the grid."""
    observed = Observed(float(changes), changes, 0.0)
    shape, rate = made(observed).belief.gamma[0]
    fine = np.exp(np.linspace(-1.0, 1.0, 4001) * 8.0 / math.sqrt(changes)) * math.log(2)
    weight = naive.posterior(naive.interpolated(TABLE, RATES, fine), observed, fine)
    mean, mean_log = naive.moments(weight, fine)
    assert shape / rate == pytest.approx(mean, rel=2e-3)
    assert shape == pytest.approx(math.exp(naive.shape_of(math.log(mean) - mean_log)), rel=0.03)
    assert math.sqrt(shape) == pytest.approx(math.sqrt(changes), rel=0.5)


@pytest.mark.parametrize("evidence", [0.5, 2.0, 50.0, 1e4, 1e9])
@pytest.mark.parametrize("rate", [1e-9, 1e-3, 0.3, 40.0, 1e7])
def test_a_given_rate_is_evidence(rate: float, evidence: float) -> None:
    observed = Observed(0.0, 0.0, 0.0, evidence, evidence / rate)
    gamma = made(observed).belief.gamma[0]
    mean = gamma[0] / gamma[1]
    if evidence >= 50.0:
        assert mean == pytest.approx(rate, rel=3.0 / math.sqrt(evidence))
        assert gamma[0] == pytest.approx(min(evidence, MOST_SHAPE), rel=0.1)
    else:
        assert mean == pytest.approx(naive.exact_moments(TABLE, [], RATES, (evidence, evidence / rate))[0], rel=1e-9)
    without = made(Observed()).belief.gamma[0]
    assert gamma[0] > without[0]


@given(st.floats(-4.0, 8.9))
@settings(max_examples=examples(40))
def test_the_shape_follows_from_mean_and_mean_logarithm(log: float) -> None:
    from scipy.special import digamma

    shape = 10.0**log
    gap = math.log(shape) - digamma(shape) if shape < 1e5 else 0.5 / shape + 1.0 / (12.0 * shape * shape)
    assert matched_shape(gap) == pytest.approx(shape, rel=0.015)


def test_unequal_intervals_count_nearly_as_they_are() -> None:
    """The sum of logarithms stands for the lengths of changed intervals: exact for equal ones, near for others."""
    rng = np.random.default_rng(1)
    for spread in (0.5, 1.0, 2.0):
        times = np.exp(rng.normal(0.0, spread, 30))
        crawls = [(float(time), bool(rng.random() < -math.expm1(-0.5 * time))) for time in times]
        exact, _ = naive.exact_moments(TABLE, crawls, RATES)
        assert moments(made(summed(crawls)))[0] == pytest.approx(exact, rel=0.1 * (1.0 + spread**2))


@pytest.mark.parametrize("changed", [True, False])
def test_one_crawl_by_the_engine_is_that_of_bayes(changed: bool) -> None:
    engine = Engine(1.0, day=1.0, half_life=1e9)
    ids = engine.add(["https://a.example/"], 0.0, fetched_at=0.0)
    engine.record(ids, 3.0, changed=changed)
    shape, rate = engine.beliefs.belief.gamma[0]
    assert shape / rate == pytest.approx(naive.exact_moments(TABLE, [(3.0, changed)], RATES)[0], rel=1e-7)


def test_a_given_rate_is_outweighed_by_many_crawls() -> None:
    """It is too low by a factor of 10; evidence of 2 stands for 40 days, of 50 for 1000 days, of 1e9 for ever."""
    rng = np.random.default_rng(2)
    engine = Engine(1.0, day=1.0, half_life=1e9, siblings=False)
    ids = engine.add([f"https://{k}.example/" for k in range(3)], 0.0, fetched_at=0.0, change_rate=0.05)
    engine.update(ids[1:2], change_rate=0.05, evidence=50.0)
    engine.update(ids[2:], change_rate=0.05, evidence=1e9)
    believed = []
    for now in range(1, 301):
        engine.record(ids, float(now), changed=np.full(3, rng.random() < -math.expm1(-0.5)))
        believed.append(engine.pages().change_rate)
    assert (believed[0] < 0.1).all()
    assert believed[-1][0] == pytest.approx(0.5, rel=0.25)
    assert 0.1 < believed[-1][1] < 0.3
    assert believed[-1][2] == pytest.approx(0.05, rel=0.01)
    assert believed[40][0] > 0.15 > believed[40][1]


def test_given_rates_fade_like_other_observations() -> None:
    engine = Engine(1.0, day=1.0, half_life=10.0, siblings=False)
    ids = engine.add(["https://a.example/"], 0.0, fetched_at=0.0, change_rate=0.2, evidence=8.0)
    engine.record(ids, 10.0, changed=False)
    assert engine.beliefs.belief.evidence[0] == pytest.approx([4.0, 20.0])
    assert engine.beliefs.belief.seen[0] == pytest.approx([10.0, 0.0, 0.0])
    engine.record(ids, 20.0, changed=True)
    assert engine.beliefs.belief.evidence[0] == pytest.approx([2.0, 10.0])
    assert engine.beliefs.belief.seen[0] == pytest.approx([5.0, 1.0, math.log(10.0)])


def test_a_posterior_at_one_rate_of_the_grid_is_not_certain() -> None:
    """A rate of nearly 0 with little evidence: all is at the lowest rate, known as well as the grid is fine."""
    shape, rate = made(Observed(0.0, 0.0, 0.0, 2.0, 1e8)).belief.gamma[0]
    assert shape / rate == pytest.approx(RATES[0])
    assert shape == pytest.approx(12.0 / math.log(2) ** 2, rel=0.05)


def test_counts_stand_for_crawls_at_equal_distances() -> None:
    crawls = [(2.0, k < 3) for k in range(10)]
    seen = estimated_seen(np.array([10.0, 0.0]), np.array([3.0, 0.0]), np.array([20.0, 0.0]))
    assert seen[0] == pytest.approx(summed(crawls)[:3])
    assert seen[1].tolist() == [0.0, 0.0, 0.0]


def test_gamma_of_has_the_mean_and_the_mean_logarithm() -> None:
    beliefs = made(Observed(5.0, 2.0, 1.0))
    b = beliefs.belief
    prior, posterior = np.empty(len(b.rates)), np.empty(len(b.rates))
    fill_prior(b, 0, prior)
    fill_posterior(b, 0, prior, posterior)
    shape, rate = gamma_of(b, 0, prior, posterior)
    mean, mean_log = moments(beliefs)
    assert shape / rate == pytest.approx(mean, rel=1e-12)
    assert math.exp(naive.shape_of(math.log(mean) - mean_log)) == pytest.approx(shape, rel=0.015)
