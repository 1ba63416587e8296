"""Importance, the Poisson look, the contract suite, and what importing costs."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from recrawl.errors import ParameterError
from recrawl.estimate import (
    DriftStream,
    GammaPrior,
    Observations,
    RateStream,
    RequestRates,
    check_estimator,
    combine_importance,
    estimate_change_rate,
    link_importance,
    poisson_look,
    stream_estimator,
)


def test_request_rates_in_any_order_and_any_batch():
    rng = np.random.default_rng(0)
    page, at = rng.integers(0, 5, 200), rng.uniform(0, 100, 200)
    once, steps = RequestRates(5, 20.0), RequestRates(5, 20.0)
    once.update(page, at)
    for i in rng.permutation(200):
        steps.update(page[i], at[i])
    np.testing.assert_allclose(once.rate(120.0), steps.rate(120.0), rtol=1e-10)
    wanted = [np.sum(0.5 ** ((120 - at[page == p]) / 20)) * np.log(2) / 20 / (1 - 0.5**6) for p in range(5)]
    np.testing.assert_allclose(once.rate(120.0), wanted, rtol=1e-10)


def test_request_rates_are_unbiased_from_the_start():
    rng = np.random.default_rng(1)
    rates = RequestRates(3000, half_life=50.0)
    for page in range(3000):
        at = rng.uniform(0, 10.0, rng.poisson(5.0))
        rates.update(np.full(len(at), page), at)
    assert rates.rate(10.0).mean() == pytest.approx(0.5, rel=0.05)


def test_links():
    assert link_importance([], [], 3).tolist() == [1.0, 1.0, 1.0]
    value = link_importance([0, 1, 2, 2, 2], [1, 2, 0, 0, 2], 4)
    assert value.sum() == pytest.approx(4.0)
    with pytest.raises(ParameterError):
        link_importance([0], [4], 4)


def test_combined_importance_leaves_out_what_is_missing():
    assert combine_importance(weight=[2.0, 3.0]).tolist() == [2.0, 3.0]
    assert combine_importance(requests=[0.0, 0.0]).tolist() == [1.0, 1.0]
    with pytest.raises(ParameterError):
        combine_importance(weight=[-1.0])


def hourly_world(rate_at, n_pages=60, days=28, seed=0):
    """Pages crawled every two hours whose rate per hour is rate_at(hours since Monday)."""
    rng = np.random.default_rng(seed)
    hours = np.arange(2, 24 * days, 2)
    changed = rng.random((n_pages, len(hours))) < -np.expm1(-2 * rate_at(hours - 1))
    monday = 4 * 86400.0
    seen = Observations(np.arange(n_pages + 1) * len(hours), np.full(changed.size, 7200.0), changed.ravel())
    rate = estimate_change_rate(seen, "mle").change_rate
    return poisson_look(seen, rate, np.tile(monday + hours * 3600.0, n_pages))


def test_poisson_pages_look_poisson():
    look = hourly_world(lambda h: np.full(len(h), 0.05))
    assert look.n_tested == 60
    assert look.rejected < 0.15
    assert look.burst == pytest.approx(1.0, abs=0.15)
    assert np.abs(look.by_weekday - 1).max() < 0.2


def test_working_hours_and_weekends_show():
    look = hourly_world(lambda h: 0.1 * ((h % 24 >= 8) & (h % 24 < 18) & (h // 24 % 7 < 5)))
    assert look.by_hour[9:17].min() > 1.5
    assert look.by_hour[:6].max() < 0.3
    assert look.by_weekday[:5].min() > 1.2
    assert look.by_weekday[5:].max() < 0.3


def test_bursts_and_drift_show():
    look = hourly_world(lambda h: np.where(h < 24 * 7, 0.3, 0.01))
    assert look.rejected > 0.95
    assert look.burst > 1.5
    assert look.dispersion.min() > 2


FACTORIES = {
    "mle": (lambda: partial(estimate_change_rate, method="mle", level=None), {}),
    "smoothed": (lambda: partial(estimate_change_rate, method="smoothed", day=1.0), {}),
    "prior-hours": (lambda: partial(estimate_change_rate, method="prior-hours", day=24.0), {}),
    "posterior": (lambda: partial(estimate_change_rate, method="posterior", prior=GammaPrior(1.0, 1.0)), {}),
    "naive": (lambda: partial(estimate_change_rate, method="naive"), {"consistent": False}),
    "stream": (stream_estimator(lambda n: RateStream(GammaPrior(1.0, 1.0), n)), {}),
    "drift": (stream_estimator(lambda n: DriftStream(GammaPrior(1.0, 1.0), n, half_life=1e6)), {"order_matters": True}),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_our_estimators_keep_the_contract(name):
    factory, options = FACTORIES[name]
    assert len(check_estimator(factory, **options)) >= 7


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (lambda seen: seen.n_changes / seen.total_time, "corner_cases"),
        (lambda seen: np.ones(3), "shape"),
        (lambda seen: np.arange(len(seen), dtype=float), "order of pages"),
        (lambda seen: 1.0 / (1.0 + seen.n_changes), "one more change"),
        (lambda seen: np.random.default_rng().random(len(seen)), "two calls"),
        (lambda seen: seen.n_changes / np.maximum(seen.total_time, 1.0), "median over 20 pages"),
    ],
)
def test_the_contract_catches_broken_estimators(broken, words):
    with pytest.raises(AssertionError, match=words), np.errstate(all="ignore"):
        check_estimator(lambda: broken)


def test_reading_observations_loads_no_compiler():
    code = (
        "import sys; from recrawl.estimate import Observations, GammaPrior; Observations([0, 1], [1.0], [True]);"
        "assert not {'numba', 'scipy', 'pyarrow', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
