"""Estimators that take one crawl outcome at a time, in a fixed number of bytes per page."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.estimate.streams.quality import QualityStream as QualityStream
    from recrawl.estimate.streams.rates import DriftStream as DriftStream
    from recrawl.estimate.streams.rates import RateStream as RateStream

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "quality": ["QualityStream"],
        "rates": ["DriftStream", "RateStream"],
    },
)
