"""Exact posterior distributions of change rates: moments, quantiles, random draws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.gamma import GammaPrior
from recrawl.estimate.observations import Observations

Array = NDArray[np.float64]


class PosteriorMoments(NamedTuple):
    """Per page: ln of the marginal likelihood, mean, variance, mean of ln rate, and quantiles (one column each)."""

    log_evidence: Array
    mean: Array
    variance: Array
    log_mean: Array
    quantile: Array

    def gamma(self) -> GammaPrior:
        """The gammas of the same mean and variance."""
        return GammaPrior(self.mean**2 / self.variance, self.mean / self.variance)


def posterior_moments(observations: Observations, prior: GammaPrior, probability: ArrayLike = ()) -> PosteriorMoments:
    """Posterior of every page's rate under a gamma prior and the censored likelihood.

    p(λ | data) ∝ λ^{a − 1} e^{−bλ}·∏_changed (1 − e^{−λt})·∏_unchanged e^{−λt}; rates per unit of the intervals.
    Exact to 1e-8 for shapes from 0.05 on; below, what lies under 1e-304 is cut off.

    >>> seen = Observations([0, 1], interval=[3.0], changed=[False])
    >>> found = posterior_moments(seen, GammaPrior(2.0, 1.0))  # gamma(2, 1 + 3)
    >>> round(float(found.mean[0]), 12), round(float(found.variance[0]), 12)
    (0.5, 0.125)
    """
    levels = np.asarray(probability, dtype=np.float64)
    if levels.size and not ((levels > 0) & (levels < 1)).all():
        raise ParameterError("probability must lie between 0 and 1")
    return _integrate(observations, prior, levels.reshape(1, -1))


def posterior_draws(observations: Observations, prior: GammaPrior, size: int, rng: np.random.Generator) -> Array:
    """Draws from every page's posterior, shape (pages, size): the exact inverse distribution at uniform numbers.

    >>> seen = Observations([0, 1], interval=[3.0], changed=[False])
    >>> posterior_draws(seen, GammaPrior(2.0, 1.0), 5, np.random.default_rng(0)).shape
    (1, 5)
    """
    uniform = np.maximum(rng.random((len(observations), size)), 1e-300)
    if len(observations) == 0:
        return uniform
    return _integrate(observations, prior, uniform).quantile


def _integrate(observations: Observations, prior: GammaPrior, levels: Array) -> PosteriorMoments:
    from recrawl.estimate.rates.posterior_kernels import posteriors

    n = len(observations)
    shape, rate = prior.rows(n)
    moments, quantiles = np.zeros((n, 4)), np.zeros((n, levels.shape[1]))
    columns = (observations.offset, observations.interval, observations.changed, observations.unit())
    posteriors(*columns, shape, rate, np.ascontiguousarray(levels), moments, quantiles)
    log_evidence, mean, variance, log_mean = moments.T.copy()
    return PosteriorMoments(log_evidence, mean, variance, log_mean, quantiles)
