"""Audits of a cluster: draws are divided among the shards by importance, and each shard's worker makes its part."""

from __future__ import annotations

import secrets

import numpy as np

from recrawl.cluster.reading import ShardReader
from recrawl.cluster.tables import Cluster
from recrawl.crawl.run.commands import audit_command
from recrawl.estimate.audit import allocate


async def queue_audit(
    cluster: Cluster, draws: int, level: float, rng: np.random.Generator | None = None
) -> dict[int, int]:
    """Queue an audit for the workers; how many draws each shard gets. ParameterError if no page counts."""
    reader = ShardReader(cluster)
    try:
        weights = [one.importance for one in await reader.pages()]
        parts = allocate(weights, draws, np.random.default_rng() if rng is None else rng).tolist()
        of = {"id": secrets.token_hex(8), "draws": draws}
        given = {shard: n for shard, n in enumerate(parts) if n}
        for shard, n in given.items():
            await reader.store(shard).queue([audit_command(n, level, of)])
        return given
    finally:
        await reader.close()
