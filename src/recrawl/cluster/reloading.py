"""Reload on a cluster: an order in the database, which every worker follows with its own file, and their answers."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from recrawl.cluster.overview import connected
from recrawl.cluster.tables import Cluster
from recrawl.crawl.config.settings import Settings
from recrawl.crawl.run.opening.reload import Reloaded, adopted, compare

_ORDER = "UPDATE cluster SET reload = reload + 1 RETURNING reload"
_ANSWERS = (
    "SELECT name, host, pid, reloaded, answer, seen > clock_timestamp() - make_interval(secs => $1) AS live FROM worker"
)


@dataclass(frozen=True)
class Answer:
    """What a worker did with an order; None where it has not answered."""

    worker: str
    host: str
    pid: int
    done: Reloaded | None = None


async def order_reload(cluster: Cluster, wait: float) -> list[Answer]:
    """Order all workers that live to read their settings again, and wait for their answers."""
    end = time.monotonic() + wait
    async with connected(cluster) as connection:
        number = await connection.fetchval(_ORDER)
        while True:
            rows = [row for row in await connection.fetch(_ANSWERS, cluster.seconds) if row["live"]]
            missing = [row for row in rows if row["reloaded"] < number]
            if not missing or time.monotonic() > end:
                return [_answer(row, number) for row in sorted(rows, key=lambda row: str(row["name"]))]
            await asyncio.sleep(0.05)


def _answer(row: Any, number: int) -> Answer:
    done = None
    if row["reloaded"] >= number and row["answer"] is not None:
        said = json.loads(row["answer"])
        done = Reloaded(tuple(said["changed"]), tuple(said["needs_restart"]), said["error"])
    return Answer(row["name"], row["host"], row["pid"], done)


def answer_text(done: Reloaded) -> str:
    """An answer as a worker writes it."""
    return json.dumps(asdict(done))


def taken_over(old: Settings, new: Settings) -> tuple[Reloaded, Settings]:
    """What a worker changes, and its settings after that; the budget is the cluster's."""
    new = replace(new, budget=old.budget)
    return compare(old, new), adopted(old, new)
