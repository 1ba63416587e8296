"""Gamma priors of a population of pages and of its groups, fitted to censored crawl outcomes (empirical Bayes)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.gamma import GammaPrior
from recrawl.estimate.observations import Observations

Array = NDArray[np.float64]

MIN_PAGES = 10
SHAPE_RANGE = (0.05, 1e4)


def fit_prior(
    observations: Observations,
    *,
    day: float = 86400.0,
    max_pages: int = 4000,
    start: GammaPrior | None = None,
) -> GammaPrior:
    """The gamma prior under which the outcomes of all pages are most likely (empirical Bayes under censoring).

    Maximises Σ_i ln ∫ Gamma(λ; a, b)·∏_changed (1 − e^{−λt})·∏_unchanged e^{−λt} dλ over (a, b), with the exact
    gradient Σ_i (E_i ln λ − ψ(a) + ln b, a/b − E_i λ). Fewer than ten pages with history: ``GammaPrior.hours``.
    With more than ``max_pages`` pages, an evenly spaced sample is used.

    >>> seen = Observations([0, 1], interval=[1.0], changed=[True])
    >>> float(fit_prior(seen, day=24.0).rate)  # one page is not enough to fit a prior
    57.5
    """
    start = GammaPrior.hours(day) if start is None else start
    watched = np.flatnonzero(observations.total_time > 0)
    if len(watched) < MIN_PAGES:
        return start
    if len(watched) > max_pages:
        watched = watched[np.linspace(0, len(watched) - 1, max_pages).astype(np.int64)]
    return _most_likely(observations[watched], start)


def _most_likely(observations: Observations, start: GammaPrior) -> GammaPrior:
    from scipy.optimize import minimize
    from scipy.special import digamma

    from recrawl.estimate.rates.posterior import posterior_moments

    n = len(observations)
    first = _rough_prior(observations, start)
    low, high = np.log(SHAPE_RANGE)

    def loss(point: Array) -> tuple[float, Array]:
        a, b = np.exp(point[0]), np.exp(point[0] - point[1])
        found = posterior_moments(observations, GammaPrior(a, b))
        d_shape = found.log_mean.sum() - n * (digamma(a) - np.log(b))
        d_rate = n * a / b - found.mean.sum()
        return -found.log_evidence.sum() / n, -np.array([a * d_shape + b * d_rate, -b * d_rate]) / n

    centre = float(np.log(first.mean))
    bounds = [(low, high), (centre - 15.0, centre + 15.0)]
    x0 = np.array([float(np.log(first.shape)), centre])
    best = minimize(loss, x0, jac=True, method="L-BFGS-B", bounds=bounds, options={"gtol": 1e-6, "maxiter": 60})
    return GammaPrior(np.exp(best.x[0]), np.exp(best.x[0] - best.x[1]))


def _rough_prior(observations: Observations, start: GammaPrior) -> GammaPrior:
    """The start of the search: the pooled mean with shape 1."""
    changes, time = observations.n_changes.sum() + 0.5, observations.total_time.sum()
    return GammaPrior.from_mean(float(changes / time) if time > 0 else float(start.mean), 1.0)


@dataclass(frozen=True)
class GroupPriors:
    """A prior for every group, shrunk towards the population's prior if the group is small."""

    names: NDArray[np.generic]
    prior: GammaPrior
    population: GammaPrior

    def of(self, group: ArrayLike) -> GammaPrior:
        """The prior of each page's group, one row per page; unknown groups get the population's."""
        wanted = np.asarray(group)
        place = np.minimum(np.searchsorted(self.names, wanted), max(len(self.names) - 1, 0))
        known = self.names[place] == wanted if len(self.names) else np.zeros(len(wanted), bool)
        columns = zip((self.prior.shape, self.prior.rate), (self.population.shape, self.population.rate), strict=True)
        return GammaPrior(*(np.where(known, column[place], all_) for column, all_ in columns))


def fit_group_priors(
    observations: Observations, group: ArrayLike, *, day: float = 86400.0, n_rounds: int = 15, max_pages: int = 20_000
) -> GroupPriors:
    """Gamma priors per group (such as folder or host), in a hierarchical model of pages, groups and population.

    Model: λ_i ~ Gamma(a, b_g) for the pages of group g, b_g ~ Gamma(c, d). EM: E_i λ and E_i ln λ from the exact
    posteriors, E b_g = (c + n_g·a)/(d + Σ λ_i), then a, c and d from their gamma likelihoods. A new page of g
    starts from the distribution of λ given b_g's posterior, matched by a gamma in mean and variance: fewer pages,
    wider prior.
    """
    names, member = np.unique(np.asarray(group), return_inverse=True)
    if len(member) != len(observations):
        raise ParameterError(f"group has {len(member)} rows but there are {len(observations)} pages")
    population = fit_prior(observations, day=day)
    if len(names) < 2 or len(observations) < MIN_PAGES:
        n = len(names)
        return GroupPriors(names, GammaPrior(*population.rows(n)), population)
    if len(member) > max_pages:
        some = np.linspace(0, len(member) - 1, max_pages).astype(np.int64)
        observations, member = observations[some], member[some]
    return GroupPriors(names, _fit_groups(observations, member, len(names), population, n_rounds), population)


def _fit_groups(
    observations: Observations,
    member: NDArray[np.int64],
    n_groups: int,
    population: GammaPrior,
    n_rounds: int,
) -> GammaPrior:
    from scipy.special import digamma

    from recrawl.estimate.rates.posterior import posterior_moments

    size = np.bincount(member, minlength=n_groups)
    a = max(1.0, float(population.shape))
    c, d = 2.0, 2.0 * float(population.mean) / a
    b = np.full(n_groups, a / float(population.mean))
    for _ in range(n_rounds):
        found = posterior_moments(observations, GammaPrior(a, b[member]))
        total = np.bincount(member, weights=found.mean, minlength=n_groups)
        shape_b, rate_b = c + size * a, d + total
        b, log_b = shape_b / rate_b, digamma(shape_b) - np.log(rate_b)
        before, a = a, _inverse_digamma(float(np.mean(found.log_mean + log_b[member])))
        a = min(max(a, SHAPE_RANGE[0]), SHAPE_RANGE[1])
        c, d = _gamma_fit(b[size > 0], log_b[size > 0])
        if abs(a - before) < 1e-3 * a:
            break
    return _predictive(a, np.maximum(c + size * a, 2.5), np.asarray(d + total, np.float64))


def _predictive(a: float, shape_b: Array, rate_b: Array) -> GammaPrior:
    """The gamma of the same mean and variance as λ ~ Gamma(a, b), b ~ Gamma(shape_b, rate_b)."""
    mean = a * rate_b / (shape_b - 1)
    second = a * (a + 1) * rate_b**2 / ((shape_b - 1) * (shape_b - 2))
    return GammaPrior(mean**2 / (second - mean**2), mean / (second - mean**2))


def _gamma_fit(mean: Array, log_mean: Array) -> tuple[float, float]:
    """Maximum-likelihood gamma of quantities known by E x and E ln x."""
    from scipy.optimize import brentq
    from scipy.special import digamma

    centre = float(mean.mean())
    gap = float(np.log(centre) - log_mean.mean())
    low, high = 1e-2, 1e6
    if gap <= np.log(high) - digamma(high):
        return high, high / centre
    if gap >= np.log(low) - digamma(low):
        return low, low / centre
    shape = float(brentq(lambda c: np.log(c) - digamma(c) - gap, low, high, rtol=1e-10))
    return shape, shape / centre


def _inverse_digamma(value: float) -> float:
    from scipy.special import digamma, polygamma

    x = np.exp(value) + 0.5 if value >= -2.22 else -1.0 / (value + 0.5772156649015329)
    for _ in range(8):
        x -= (digamma(x) - value) / polygamma(1, x)
    return float(x)
