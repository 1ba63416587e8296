"""Precision and recall of change signals from crawl outcomes."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.estimate.signals.prior import QualityPrior as QualityPrior
    from recrawl.estimate.signals.prior import fit_quality_prior as fit_quality_prior
    from recrawl.estimate.signals.quality import SignalQuality as SignalQuality
    from recrawl.estimate.signals.quality import estimate_signal_quality as estimate_signal_quality

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "prior": ["QualityPrior", "fit_quality_prior"],
        "quality": ["SignalQuality", "estimate_signal_quality"],
    },
)
