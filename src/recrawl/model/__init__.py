"""What follows from a page's parameters: its freshness at a crawl rate, the value of crawling it now."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.model.budget import format_rate as format_rate
    from recrawl.model.budget import parse_budget as parse_budget
    from recrawl.model.cost import bounded_ratio as bounded_ratio
    from recrawl.model.cost import refresh_cost as refresh_cost
    from recrawl.model.cost import refresh_ratio as refresh_ratio
    from recrawl.model.cost import very_stale_share as very_stale_share
    from recrawl.model.freshness import marginal_value as marginal_value
    from recrawl.model.freshness import page_cost as page_cost
    from recrawl.model.freshness import page_freshness as page_freshness
    from recrawl.model.pages import Pages as Pages
    from recrawl.model.signals import matched_source as matched_source
    from recrawl.model.signals import signal_weight as signal_weight
    from recrawl.model.spans import format_span as format_span
    from recrawl.model.value import crawl_interval as crawl_interval
    from recrawl.model.value import crawl_value as crawl_value
    from recrawl.model.value import crawl_value_slope as crawl_value_slope
    from recrawl.model.value import elapsed_at_value as elapsed_at_value
    from recrawl.model.value import fresh_probability as fresh_probability
    from recrawl.model.value import staleness_exponent as staleness_exponent
    from recrawl.model.value import value_limit as value_limit

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "budget": ["format_rate", "parse_budget"],
        "freshness": ["marginal_value", "page_cost", "page_freshness"],
        "pages": ["Pages"],
        "cost": ["bounded_ratio", "refresh_cost", "refresh_ratio", "very_stale_share"],
        "signals": ["matched_source", "signal_weight"],
        "spans": ["format_span"],
        "value": [
            "crawl_interval",
            "crawl_value",
            "crawl_value_slope",
            "elapsed_at_value",
            "fresh_probability",
            "staleness_exponent",
            "value_limit",
        ],
    },
)
