"""For `failures_cluster.py`: one worker, which writes what was acknowledged to it to a file, line by line.

When a file NAME.hold appears in the folder, the worker stops itself in its next transaction that saves outcomes, after
the check of the lease, and says in NAME.held of which shard and owner it was.

Run: python benchmarks/failures_worker.py NAME DATABASE FOLDER [unchecked]
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from recrawl.cluster import tables
from recrawl.cluster.ownership import gate as gates
from recrawl.cluster.ownership.gate import Gate
from recrawl.cluster.tables import Cluster
from recrawl.cluster.worker import ShardWorker
from recrawl.crawl import Settings
from recrawl.crawl.run.opening.warming import warm_up
from recrawl.store import Event
from recrawl.store.postgres.address import Address
from recrawl.store.postgres.writes import Batch, Writes

DELAY = 0.5


async def _unchecked(*_: object) -> None:
    """The check of a lease, left out."""


def settings_of(database: str) -> Settings:
    """The settings of all workers."""
    return Settings(database=database, contact="me@example.org", allow_private=True, delay=f"{DELAY} s", listings=False)


def logged_worker(cluster: Cluster, settings: Settings, *, name: str, folder: str) -> ShardWorker:
    """A worker that calls itself by its name, and writes what was acknowledged to it to a file."""
    log = open(f"{folder}/{name}.jsonl", "a", buffering=1)  # noqa: SIM115 - it is open while the process lives

    def options(gate: Gate) -> dict[str, Any]:
        def write(**fields: Any) -> None:
            held = gate.held
            log.write(json.dumps({"worker": name, "shard": held.shard, "epoch": held.epoch, **fields}) + "\n")

        def on_event(kind: str, fields: Mapping[str, Any]) -> None:
            if kind == "saved":
                write(saved=[one.etag for one in fields["outcomes"] if one.etag])

        def delivered(events: Sequence[Event], dropped: int) -> None:
            write(delivered=[one.number for one in events])

        return {"on_event": on_event, "subscribers": {"log": delivered}}

    return ShardWorker(cluster, replace(settings, user_agent=name), name=name, options=options)


def stop_when_asked(cluster: Cluster, asked: Path, held: Path) -> None:
    """Let this process stop itself in a transaction that saves outcomes, once each time that a file appears."""
    save, schemas = Writes.save, [cluster.shard_address(shard).schema for shard in range(cluster.shards)]

    async def saved(self: Writes, connection: Any, batch: Batch) -> None:
        if batch.outcomes and asked.exists():
            asked.unlink()
            shard = schemas.index(await connection.fetchval("SELECT current_schema()"))
            epoch = await connection.fetchval(
                f"SELECT epoch FROM {cluster.address.schema}.shard_lease WHERE shard = $1", shard
            )
            held.with_suffix(".new").write_text(json.dumps({"shard": shard, "epoch": epoch}))
            held.with_suffix(".new").replace(held)
            os.kill(os.getpid(), signal.SIGSTOP)
        await save(self, connection, batch)

    Writes.save = saved  # type: ignore[method-assign]


async def main(name: str, database: str, folder: str, unchecked: bool) -> None:
    if unchecked:
        gates.check = _unchecked
        gates.Gate.check_not_lost = lambda self: None  # type: ignore[method-assign]
    cluster = await tables.read(Address.parse(database))
    assert cluster is not None
    stop_when_asked(cluster, Path(folder, f"{name}.hold"), Path(folder, f"{name}.held"))
    worker = logged_worker(cluster, settings_of(database), name=name, folder=folder)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    await worker.run()


if __name__ == "__main__":
    warm_up()
    asyncio.run(main(*sys.argv[1:4], unchecked="unchecked" in sys.argv[4:]))
