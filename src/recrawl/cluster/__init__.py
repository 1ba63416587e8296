"""Several machines, one crawl: shards, their leases, workers, shares of the budget."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.cluster.hosts import shards_of as shards_of
    from recrawl.cluster.overview import drain as drain
    from recrawl.cluster.overview import set_budget as set_budget
    from recrawl.cluster.ownership.leases import LeaseLostError as LeaseLostError
    from recrawl.cluster.reading import ShardReader as ShardReader
    from recrawl.cluster.shares.controller import ShardPlan as ShardPlan
    from recrawl.cluster.shares.controller import plan_of as plan_of
    from recrawl.cluster.shares.controller import split_shares as split_shares
    from recrawl.cluster.simulated import ShardOptions as ShardOptions
    from recrawl.cluster.simulated import ShardsRun as ShardsRun
    from recrawl.cluster.simulated import simulate_shards as simulate_shards
    from recrawl.cluster.tables import Cluster as Cluster
    from recrawl.cluster.worker import ShardWorker as ShardWorker

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "shares.controller": ["ShardPlan", "plan_of", "split_shares"],
        "hosts": ["shards_of"],
        "ownership.leases": ["LeaseLostError"],
        "overview": ["drain", "set_budget"],
        "reading": ["ShardReader"],
        "simulated": ["ShardOptions", "ShardsRun", "simulate_shards"],
        "tables": ["Cluster"],
        "worker": ["ShardWorker"],
    },
)
