"""What follows from a page's parameters: its freshness at a crawl rate, the value of crawling it now."""

from recrawl.model.budget import format_rate, parse_budget
from recrawl.model.freshness import marginal_value, page_cost, page_freshness
from recrawl.model.pages import Pages
from recrawl.model.refresh_cost import bounded_ratio, refresh_cost, refresh_ratio, very_stale_share
from recrawl.model.signals import matched_source, signal_weight
from recrawl.model.value import (
    crawl_interval,
    crawl_value,
    crawl_value_slope,
    elapsed_at_value,
    fresh_probability,
    staleness_exponent,
    value_limit,
)

__all__ = [
    "Pages",
    "bounded_ratio",
    "crawl_interval",
    "crawl_value",
    "crawl_value_slope",
    "elapsed_at_value",
    "format_rate",
    "fresh_probability",
    "marginal_value",
    "matched_source",
    "page_cost",
    "page_freshness",
    "parse_budget",
    "refresh_cost",
    "refresh_ratio",
    "signal_weight",
    "staleness_exponent",
    "value_limit",
    "very_stale_share",
]
