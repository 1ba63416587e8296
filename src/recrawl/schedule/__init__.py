"""Parameters in, next page out: what decides, how a budget is paced, rates executed live, pages in shards."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recrawl.schedule.checks import CHECKS, check_policy
    from recrawl.schedule.pacer import Pacer
    from recrawl.schedule.policy import Policy
    from recrawl.schedule.rate_policy import RatePolicy
    from recrawl.schedule.rates import proportional_rates
    from recrawl.schedule.scheduler import Scheduler
    from recrawl.schedule.shards import rebalance, shard_loss, shard_of, split_budget

# Public name -> the module that holds it; loaded on first use.
_HOMES = {
    "CHECKS": "checks",
    "Pacer": "pacer",
    "Policy": "policy",
    "RatePolicy": "rate_policy",
    "Scheduler": "scheduler",
    "check_policy": "checks",
    "proportional_rates": "rates",
    "rebalance": "shards",
    "shard_loss": "shards",
    "shard_of": "shards",
    "split_budget": "shards",
}

__all__ = [
    "CHECKS",
    "Pacer",
    "Policy",
    "RatePolicy",
    "Scheduler",
    "check_policy",
    "proportional_rates",
    "rebalance",
    "shard_loss",
    "shard_of",
    "split_budget",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'recrawl.schedule' has no attribute {name!r}")
    value = getattr(import_module(f"recrawl.schedule.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
