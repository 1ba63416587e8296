"""Ray: the workers of a cluster as actors, and tables in parts read by the machines of a Ray cluster.

Needs `pip install 'recrawl[ray]'` on every machine.

- ``recrawl cluster ray --workers 8`` runs workers as actors (`RayWorkers`) and starts another for each that is lost.
- ``recrawl solve parts/*.parquet --ray auto`` asks the parts on all machines (`mapped`).

Ray starts an actor elsewhere without knowing whether the old one still fetches. No promise rests on it: a worker asks
and writes only while it has the lease of a shard.
"""

import os
from typing import TYPE_CHECKING

from recrawl._lazy import attach

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray is imported: nothing is reported to its makers
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # what Ray will do in its next release

if TYPE_CHECKING:
    from recrawl.contrib.ray.connection import connected as connected
    from recrawl.contrib.ray.parts import mapped as mapped
    from recrawl.contrib.ray.workers import RayWorkers as RayWorkers

__getattr__, __dir__, __all__ = attach(
    __name__,
    {"connection": ["connected"], "parts": ["mapped"], "workers": ["RayWorkers"]},
)
