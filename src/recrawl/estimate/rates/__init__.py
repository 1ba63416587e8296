"""Change rates from crawl outcomes: estimators, exact posteriors, priors, tests of constant rates."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
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

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "change_rate": ["RateEstimate", "estimate_change_rate"],
        "poisson": ["PoissonLook", "poisson_look"],
        "posterior": ["PosteriorMoments", "posterior_draws", "posterior_moments"],
        "priors": ["GroupPriors", "fit_group_priors", "fit_prior"],
    },
)
