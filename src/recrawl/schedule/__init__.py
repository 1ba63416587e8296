"""Parameters in, next page out: what decides, how a budget is paced, rates executed live, pages in shards."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recrawl.schedule.bandit import Bandit
    from recrawl.schedule.bandit_view import ArmView, BanditView
    from recrawl.schedule.checks import CHECKS, check_policy
    from recrawl.schedule.contextual import ContextualBandit
    from recrawl.schedule.exp3 import BANDIT_RULES, Exp3, regret_bound
    from recrawl.schedule.pacer import Pacer
    from recrawl.schedule.policy import Policy
    from recrawl.schedule.presets import kab
    from recrawl.schedule.rate_policy import RatePolicy
    from recrawl.schedule.rates import proportional_rates
    from recrawl.schedule.scheduler import Scheduler
    from recrawl.schedule.shards import rebalance, shard_loss, shard_of, split_budget
    from recrawl.schedule.strategies import PRESETS, STRATEGIES, step_change, strategy_rates

# Public name -> the module that holds it; loaded on first use.
_HOMES = {
    "BANDIT_RULES": "exp3",
    "CHECKS": "checks",
    "PRESETS": "strategies",
    "STRATEGIES": "strategies",
    "ArmView": "bandit_view",
    "Bandit": "bandit",
    "BanditView": "bandit_view",
    "ContextualBandit": "contextual",
    "Exp3": "exp3",
    "Pacer": "pacer",
    "Policy": "policy",
    "RatePolicy": "rate_policy",
    "Scheduler": "scheduler",
    "check_policy": "checks",
    "kab": "presets",
    "proportional_rates": "rates",
    "rebalance": "shards",
    "regret_bound": "exp3",
    "shard_loss": "shards",
    "shard_of": "shards",
    "split_budget": "shards",
    "step_change": "strategies",
    "strategy_rates": "strategies",
}

__all__ = [
    "BANDIT_RULES",
    "CHECKS",
    "PRESETS",
    "STRATEGIES",
    "ArmView",
    "Bandit",
    "BanditView",
    "ContextualBandit",
    "Exp3",
    "Pacer",
    "Policy",
    "RatePolicy",
    "Scheduler",
    "check_policy",
    "kab",
    "proportional_rates",
    "rebalance",
    "regret_bound",
    "shard_loss",
    "shard_of",
    "split_budget",
    "step_change",
    "strategy_rates",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'recrawl.schedule' has no attribute {name!r}")
    value = getattr(import_module(f"recrawl.schedule.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
