"""How far a predicted rate is to be believed: the gamma shape behind it, from pages that the predictor did not see."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.gamma import GammaPrior
from recrawl.estimate.observations import Observations
from recrawl.estimate.priors import MIN_PAGES, SHAPE_RANGE

Array = NDArray[np.float64]


def fit_strength(observations: Observations, rate: ArrayLike, *, max_pages: int = 4000) -> tuple[float, float]:
    """Shape a and scale c under which λ_i ~ Gamma(mean c·rate_i, shape a) makes the pages' outcomes most likely.

    Maximises Σ_i ln ∫ Gamma(λ; a, a/(c·rate_i))·∏_changed (1 − e^{−λt})·∏_unchanged e^{−λt} dλ with its exact
    gradient. A page's own crawls outweigh the prediction once about a changes were due. Fewer than ten pages with
    history: shape 1, scale 1.
    """
    mean = np.asarray(rate, np.float64)
    if mean.shape != (len(observations),):
        raise ParameterError(f"rate has {mean.size} rows but there are {len(observations)} pages")
    watched = np.flatnonzero(observations.total_time > 0)
    if len(watched) < MIN_PAGES:
        return 1.0, 1.0
    if len(watched) > max_pages:
        watched = watched[np.linspace(0, len(watched) - 1, max_pages).astype(np.int64)]
    return _most_likely(observations[watched], mean[watched])


def _most_likely(observations: Observations, rate: Array) -> tuple[float, float]:
    from scipy.optimize import minimize
    from scipy.special import digamma

    from recrawl.estimate.posterior import posterior_moments

    n = len(observations)

    def loss(point: Array) -> tuple[float, Array]:
        a, c = np.exp(point)
        prior = GammaPrior(a, a / (c * rate))
        found = posterior_moments(observations, prior)
        to_rate = (a / prior.rate - found.mean) * prior.rate  # Σ of it: derivative by ln b, with the shape held
        d_shape = (found.log_mean - digamma(a) + np.log(prior.rate)).sum() * a + to_rate.sum()
        return -found.log_evidence.sum() / n, -np.array([d_shape, -to_rate.sum()]) / n

    bounds = [tuple(np.log(SHAPE_RANGE)), (-5.0, 5.0)]
    best = minimize(
        loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=bounds, options={"gtol": 1e-6, "maxiter": 60}
    )
    shape, scale = np.exp(best.x)
    return float(shape), float(scale)
