"""Estimators: change rates, signal quality, priors, importance and predictors from crawl observations."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.estimate.contract import check_estimator as check_estimator
    from recrawl.estimate.contract import stream_estimator as stream_estimator
    from recrawl.estimate.gamma import GammaPrior as GammaPrior
    from recrawl.estimate.importance import RequestRates as RequestRates
    from recrawl.estimate.importance import combine_importance as combine_importance
    from recrawl.estimate.importance import link_importance as link_importance
    from recrawl.estimate.observations import Observations as Observations
    from recrawl.estimate.predict.features import Columns as Columns
    from recrawl.estimate.predict.predictor import Predictor as Predictor
    from recrawl.estimate.predict.predictor import train_predictor as train_predictor
    from recrawl.estimate.rates.change_rate import RateEstimate as RateEstimate
    from recrawl.estimate.rates.change_rate import estimate_change_rate as estimate_change_rate
    from recrawl.estimate.rates.poisson import PoissonLook as PoissonLook
    from recrawl.estimate.rates.poisson import poisson_look as poisson_look
    from recrawl.estimate.rates.posterior import PosteriorMoments as PosteriorMoments
    from recrawl.estimate.rates.posterior import posterior_draws as posterior_draws
    from recrawl.estimate.rates.posterior import posterior_moments as posterior_moments
    from recrawl.estimate.rates.priors import GroupPriors as GroupPriors
    from recrawl.estimate.rates.priors import fit_group_priors as fit_group_priors
    from recrawl.estimate.rates.priors import fit_prior as fit_prior
    from recrawl.estimate.signals.prior import QualityPrior as QualityPrior
    from recrawl.estimate.signals.prior import fit_quality_prior as fit_quality_prior
    from recrawl.estimate.signals.quality import SignalQuality as SignalQuality
    from recrawl.estimate.signals.quality import estimate_signal_quality as estimate_signal_quality
    from recrawl.estimate.streams.quality import QualityStream as QualityStream
    from recrawl.estimate.streams.rates import DriftStream as DriftStream
    from recrawl.estimate.streams.rates import RateStream as RateStream

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "contract": ["check_estimator", "stream_estimator"],
        "gamma": ["GammaPrior"],
        "importance": ["RequestRates", "combine_importance", "link_importance"],
        "observations": ["Observations"],
        "predict.features": ["Columns"],
        "predict.predictor": ["Predictor", "train_predictor"],
        "rates.change_rate": ["RateEstimate", "estimate_change_rate"],
        "rates.poisson": ["PoissonLook", "poisson_look"],
        "rates.posterior": ["PosteriorMoments", "posterior_draws", "posterior_moments"],
        "rates.priors": ["GroupPriors", "fit_group_priors", "fit_prior"],
        "signals.prior": ["QualityPrior", "fit_quality_prior"],
        "signals.quality": ["SignalQuality", "estimate_signal_quality"],
        "streams.quality": ["QualityStream"],
        "streams.rates": ["DriftStream", "RateStream"],
    },
)
