"""The exact posterior against adaptive quadrature, its intervals against their promise, and fitted priors."""

import numpy as np
import pytest
from naive import estimate as naive
from profiles import few
from scipy import stats

from recrawl.estimate import (
    GammaPrior,
    Observations,
    estimate_change_rate,
    fit_group_priors,
    fit_prior,
    posterior_draws,
    posterior_moments,
)
from recrawl.estimate.contract import corner_cases

CASES = {
    "nothing": ([], []),
    "one change": ([1.0], [True]),
    "tiny interval changed": ([1e-6], [True]),
    "huge interval quiet": ([1e9], [False]),
    "huge and tiny": ([1e-6, 1e9, 1.0, 1.0], [True, True, False, True]),
    "all changed": ([0.5, 1.0, 2.0, 4.0], [True] * 4),
    "mixed": ([0.3, 1.1, 0.2, 2.0, 0.7, 3.0, 0.1, 1.7], [True, False, False, True, False, True, False, True]),
    "whole days": ([1.0, 2.0, 1.0, 1.0, 3.0, 1.0, 1.0, 1.0, 2.0, 1.0], [True, False] * 5),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("prior", few([(0.5, 2.0), (3.0, 10.0)], 1))
def test_posterior_equals_quadrature(case, prior):
    interval, changed = CASES[case]
    seen = Observations([0, len(interval)], interval, np.array(changed, bool))
    found = posterior_moments(seen, GammaPrior(*prior), [0.05, 0.95])
    mean, variance, evidence, shares = naive.posterior(interval, changed, *prior, found.quantile[0])
    assert found.mean[0] == pytest.approx(mean, rel=1e-8)
    assert found.variance[0] == pytest.approx(variance, rel=1e-8)
    assert found.log_evidence[0] == pytest.approx(evidence, rel=1e-8, abs=1e-8)
    np.testing.assert_allclose(shares, [0.05, 0.95], atol=1e-8)


def test_without_changes_it_is_a_gamma():
    seen = Observations([0, 2], [3.0, 4.0], [False, False])
    for shape in (0.05, 0.2, 1.0, 50.0):
        found = posterior_moments(seen, GammaPrior(shape, 1.0), [0.05, 0.5, 0.95])
        wanted = stats.gamma(shape, scale=1 / 8)
        assert found.mean[0] == pytest.approx(wanted.mean(), rel=1e-10)
        np.testing.assert_allclose(found.quantile[0], wanted.ppf([0.05, 0.5, 0.95]), rtol=1e-6, atol=1e-300)


def test_draws_follow_the_posterior():
    seen = Observations([0, 3], [1.0, 2.0, 1.0], [True, False, True])
    prior = GammaPrior(0.8, 2.0)
    draws = posterior_draws(seen, prior, 20_000, np.random.default_rng(0))[0]
    found = posterior_moments(seen, prior)
    assert draws.mean() == pytest.approx(found.mean[0], rel=0.03)
    assert draws.var() == pytest.approx(found.variance[0], rel=0.05)


def world(n, k, shape, rate, seed):
    rng = np.random.default_rng(seed)
    true = rng.gamma(shape, 1 / rate, n)
    interval = rng.exponential(1.0, (n, k))
    changed = rng.random((n, k)) < -np.expm1(-true[:, None] * interval)
    return true, Observations(np.arange(n + 1) * k, interval.ravel(), changed.ravel())


def test_credible_intervals_cover_what_they_say():
    true, seen = world(6000, 15, 0.8, 2.0, seed=3)
    found = estimate_change_rate(seen, "posterior", prior=GammaPrior(0.8, 2.0), level=0.9)
    assert 0.88 <= np.mean((found.low <= true) & (true <= found.high)) <= 0.92


def test_fitted_prior_is_the_most_likely_and_near_the_truth():
    _, seen = world(1500, 12, 0.8, 2.0, seed=4)
    best = fit_prior(seen)
    assert best.shape == pytest.approx(0.8, rel=0.2)
    assert best.mean == pytest.approx(0.4, rel=0.15)
    top = posterior_moments(seen, best).log_evidence.sum()
    for a, b in [(1.05, 1.0), (1 / 1.05, 1.0), (1.0, 1.05), (1.0, 1 / 1.05)]:
        assert posterior_moments(seen, GammaPrior(best.shape * a, best.rate * b)).log_evidence.sum() < top


def test_group_priors_tell_groups_apart_and_shrink_small_ones():
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(60), 20)
    group[:19] = 60 + np.arange(19)
    centre = np.exp(rng.normal(0, 1.0, 80))
    true = centre[group] * rng.gamma(4.0, 1 / 4, len(group))
    interval = rng.exponential(1.0, (len(group), 15))
    changed = rng.random(interval.shape) < -np.expm1(-true[:, None] * interval)
    seen = Observations(np.arange(len(group) + 1) * 15, interval.ravel(), changed.ravel())
    found = fit_group_priors(seen, group)
    big = np.arange(1, 60)
    assert np.corrcoef(np.log(found.prior.mean[big]), np.log(centre[big]))[0, 1] > 0.95
    assert np.std(np.log(found.prior.mean[60:])) < np.std(np.log(found.prior.mean[big]))
    assert found.prior.shape[big].min() > float(found.population.shape)
    unknown = found.of(["never seen"] if found.names.dtype.kind == "U" else [999])
    assert unknown.shape[0] == found.population.shape


def test_too_little_to_learn_from_gives_the_default():
    assert float(fit_prior(corner_cases()[[0]]).shape) == 1.0
    one = fit_group_priors(corner_cases()[[0, 1]], ["a", "b"])
    assert one.prior.shape.tolist() == [1.0, 1.0]
