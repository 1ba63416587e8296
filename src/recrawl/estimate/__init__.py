"""Observations in, parameters out: change rates, signal quality, priors, importance."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recrawl.estimate.change_rate import RateEstimate, estimate_change_rate
    from recrawl.estimate.checks import check_estimator, stream_estimator
    from recrawl.estimate.gamma import GammaPrior
    from recrawl.estimate.importance import RequestRates, combine_importance, link_importance
    from recrawl.estimate.observations import Observations
    from recrawl.estimate.poisson import PoissonLook, poisson_look
    from recrawl.estimate.posterior import PosteriorMoments, posterior_draws, posterior_moments
    from recrawl.estimate.predict import Predictor, train_predictor
    from recrawl.estimate.predict_features import Columns
    from recrawl.estimate.priors import GroupPriors, fit_group_priors, fit_prior
    from recrawl.estimate.quality import SignalQuality, estimate_signal_quality
    from recrawl.estimate.quality_prior import QualityPrior, fit_quality_prior
    from recrawl.estimate.quality_stream import QualityStream
    from recrawl.estimate.streaming import DriftStream, RateStream

# Public name -> the module that holds it; loaded on first use, so that reading a log needs no compiler.
_HOMES = {
    "Columns": "predict_features",
    "DriftStream": "streaming",
    "GammaPrior": "gamma",
    "GroupPriors": "priors",
    "Observations": "observations",
    "PoissonLook": "poisson",
    "PosteriorMoments": "posterior",
    "Predictor": "predict",
    "QualityPrior": "quality_prior",
    "QualityStream": "quality_stream",
    "RateEstimate": "change_rate",
    "RateStream": "streaming",
    "RequestRates": "importance",
    "SignalQuality": "quality",
    "check_estimator": "checks",
    "combine_importance": "importance",
    "estimate_change_rate": "change_rate",
    "estimate_signal_quality": "quality",
    "fit_group_priors": "priors",
    "fit_prior": "priors",
    "fit_quality_prior": "quality_prior",
    "link_importance": "importance",
    "poisson_look": "poisson",
    "posterior_draws": "posterior",
    "posterior_moments": "posterior",
    "stream_estimator": "checks",
    "train_predictor": "predict",
}

__all__ = [
    "Columns",
    "DriftStream",
    "GammaPrior",
    "GroupPriors",
    "Observations",
    "PoissonLook",
    "PosteriorMoments",
    "Predictor",
    "QualityPrior",
    "QualityStream",
    "RateEstimate",
    "RateStream",
    "RequestRates",
    "SignalQuality",
    "check_estimator",
    "combine_importance",
    "estimate_change_rate",
    "estimate_signal_quality",
    "fit_group_priors",
    "fit_prior",
    "fit_quality_prior",
    "link_importance",
    "poisson_look",
    "posterior_draws",
    "posterior_moments",
    "stream_estimator",
    "train_predictor",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'recrawl.estimate' has no attribute {name!r}")
    value = getattr(import_module(f"recrawl.estimate.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
