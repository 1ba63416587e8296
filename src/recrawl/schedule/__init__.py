"""Parameters in, next page out: what decides, a budget spread over time, rates executed live, pages in shards."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.schedule.bandits.bandit import Bandit as Bandit
    from recrawl.schedule.bandits.contextual import ContextualBandit as ContextualBandit
    from recrawl.schedule.bandits.exp3 import BANDIT_RULES as BANDIT_RULES
    from recrawl.schedule.bandits.exp3 import Exp3 as Exp3
    from recrawl.schedule.bandits.exp3 import regret_bound as regret_bound
    from recrawl.schedule.bandits.presets import kab as kab
    from recrawl.schedule.bandits.strategies import PRESETS as PRESETS
    from recrawl.schedule.bandits.strategies import STRATEGIES as STRATEGIES
    from recrawl.schedule.bandits.strategies import step_change as step_change
    from recrawl.schedule.bandits.strategies import strategy_rates as strategy_rates
    from recrawl.schedule.bandits.view import ArmView as ArmView
    from recrawl.schedule.bandits.view import BanditView as BanditView
    from recrawl.schedule.exact.scheduler import Scheduler as Scheduler
    from recrawl.schedule.pacer import Pacer as Pacer
    from recrawl.schedule.policy import Policy as Policy
    from recrawl.schedule.rates.policy import RatePolicy as RatePolicy
    from recrawl.schedule.rates.rules import proportional_rates as proportional_rates
    from recrawl.schedule.shards import rebalance as rebalance
    from recrawl.schedule.shards import shard_loss as shard_loss
    from recrawl.schedule.shards import shard_of as shard_of
    from recrawl.schedule.shards import split_budget as split_budget
    from recrawl.schedule.testing.contract import CHECKS as CHECKS
    from recrawl.schedule.testing.contract import check_policy as check_policy

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "bandits.bandit": ["Bandit"],
        "bandits.contextual": ["ContextualBandit"],
        "bandits.exp3": ["BANDIT_RULES", "Exp3", "regret_bound"],
        "bandits.presets": ["kab"],
        "bandits.strategies": ["PRESETS", "STRATEGIES", "step_change", "strategy_rates"],
        "bandits.view": ["ArmView", "BanditView"],
        "exact.scheduler": ["Scheduler"],
        "pacer": ["Pacer"],
        "policy": ["Policy"],
        "rates.policy": ["RatePolicy"],
        "rates.rules": ["proportional_rates"],
        "shards": ["rebalance", "shard_loss", "shard_of", "split_budget"],
        "testing.contract": ["CHECKS", "check_policy"],
    },
)
