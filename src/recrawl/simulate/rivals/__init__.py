"""Rules of other crawlers as policies: each rule decides when a page is due and compares no pages."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.simulate.rivals.policy import DuePolicy as DuePolicy
    from recrawl.simulate.rivals.registry import caps as caps
    from recrawl.simulate.rivals.registry import rival as rival
    from recrawl.simulate.rivals.registry import rival_names as rival_names
    from recrawl.simulate.rivals.rule import ORDERS as ORDERS
    from recrawl.simulate.rivals.rule import Cap as Cap
    from recrawl.simulate.rivals.rule import Rule as Rule

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "policy": ["DuePolicy"],
        "registry": ["caps", "rival", "rival_names"],
        "rule": ["ORDERS", "Cap", "Rule"],
    },
)
