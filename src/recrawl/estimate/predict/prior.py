"""The gamma distribution around predicted rates, fitted to later crawls of pages outside the training set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.errors import ParameterError
from recrawl.estimate.gamma import GammaPrior
from recrawl.estimate.observations import Observations
from recrawl.estimate.rates.priors import MIN_PAGES, SHAPE_RANGE

Array = NDArray[np.float64]

_LOOSE = np.array([1.5, 0.7, 0.5])  # prior standard deviations of ln evidence, ln scale and power around 0, 0 and 1
_FAINTEST = 1e-300


@dataclass(frozen=True)
class Strength:
    """λ ~ Gamma(mean scale·e^{centre + power·(f − centre)}, shape evidence), f the predicted logarithm of the rate.

    A power below 1 shrinks predictions towards the ``centre``. A page's own crawls outweigh the prediction after about
    ``evidence`` expected changes.
    """

    evidence: float = 1.0
    scale: float = 1.0
    power: float = 1.0
    centre: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.evidence < np.inf and 0 < self.scale < np.inf and 0 <= self.power < np.inf):
            raise ParameterError("evidence and scale must be finite and above 0, power at least 0")
        if not np.isfinite(self.centre):
            raise ParameterError("centre must be finite")

    def prior(self, log_rate: Array) -> GammaPrior:
        """Gamma priors of predicted rates, one per row."""
        mean = self.scale * np.exp(self.centre + self.power * (log_rate - self.centre))
        return GammaPrior.from_mean(np.maximum(mean, _FAINTEST), np.full(len(mean), self.evidence))


def fit_strength(observations: Observations, log_rate: ArrayLike, *, max_pages: int = 4000) -> Strength:
    """The most likely strength, given the outcomes of pages, with a weak prior at evidence = scale = power = 1.

    Maximises Σ_i ln ∫ Gamma(λ; a, a/mean_i)·∏_changed (1 − e^{−λt})·∏_unchanged e^{−λt} dλ with its exact gradient.
    Fewer than ten pages with history: evidence, scale and power are 1.
    """
    f = np.asarray(log_rate, np.float64)
    if f.shape != (len(observations),):
        raise ParameterError(f"log_rate has {f.size} rows but there are {len(observations)} pages")
    centre = float(f.mean()) if len(f) else 0.0
    watched = np.flatnonzero(observations.total_time > 0)
    if len(watched) < MIN_PAGES:
        return Strength(centre=centre)
    if len(watched) > max_pages:
        watched = watched[np.linspace(0, len(watched) - 1, max_pages).astype(np.int64)]
    return _most_likely(observations[watched], f[watched], centre)


def _most_likely(observations: Observations, f: Array, centre: float) -> Strength:
    from scipy.optimize import minimize
    from scipy.special import digamma

    from recrawl.estimate.rates.posterior import posterior_moments

    n, usual = len(observations), np.array([0.0, 0.0, 1.0])

    def loss(point: Array) -> tuple[float, Array]:
        a, log_mean = np.exp(point[0]), centre + point[1] + point[2] * (f - centre)
        prior = GammaPrior(a, a * np.exp(-log_mean))
        found = posterior_moments(observations, prior)
        by_rate = a - found.mean * prior.rate  # derivative of a page's evidence by ln rate
        by_shape = a * (found.log_mean - digamma(a) + np.log(prior.rate)).sum() + by_rate.sum()
        gradient = np.array([by_shape, -by_rate.sum(), -(by_rate * (f - centre)).sum()])
        away = (point - usual) / _LOOSE
        return (0.5 * away @ away - found.log_evidence.sum()) / n, (away / _LOOSE - gradient) / n

    bounds = [tuple(np.log(SHAPE_RANGE)), (-5.0, 5.0), (0.0, 3.0)]
    best = minimize(loss, usual, jac=True, method="L-BFGS-B", bounds=bounds, options={"gtol": 1e-6, "maxiter": 60})
    return Strength(float(np.exp(best.x[0])), float(np.exp(best.x[1])), float(best.x[2]), centre)
