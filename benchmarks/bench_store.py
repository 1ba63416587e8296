"""Outcomes saved per second, and what saving and starting cost: SQLite and PostgreSQL in one run, on this machine.

    python benchmarks/bench_store.py [--rows 100000,1000000,10000000] [--out benchmarks/results/store.json]

Both write to disk before they acknowledge (SQLite: synchronous = FULL; PostgreSQL: fsync and synchronous_commit on, on
loopback). A batch is what a crawler saves at a time: outcomes, each with a copy, and the rows of their pages. Workers
are processes, each with a database of its own kind: a file, a schema of the one server, or a shard of a cluster on it,
whose lease every transaction checks. Up to a million rows are saved as a crawler adds pages; a larger database is
written as `recrawl copy` writes one, in one transaction, with the rows of fewer pages again and again under new URLs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.cluster import tables
from recrawl.cluster.ownership.gate import Gate
from recrawl.cluster.ownership.leases import Held, ShardLeases
from recrawl.cluster.ownership.sessions import Connections
from recrawl.store import BlockingStore, Outcome, OwnedStore, PostgresStore, open_store
from recrawl.store.postgres.address import Address
from recrawl.store.tables import Row, Table
from recrawl.store.testing.rows import example_rows

HERE = Path(__file__).parent
_BATCHES = {500: 40, 20: 200}  # outcomes in a batch, and how many batches are saved
_MANY, _SAVED = 20_000, 1_000_000  # rows saved at a time; largest number of rows that are saved so
_OPEN: list[Connections] = []  # of this process


def urls_of(first: int, last: int) -> list[str]:
    return [f"https://host{k % 500}.example.org/folder{k % 7}/page-{k}.html" for k in range(first, last)]


def fill(database: str, n: int) -> float:
    """Seconds to save the rows of n new pages."""
    took = 0.0
    with BlockingStore(opened(database)) as store:
        for k in range(0, n, _MANY):
            rows = example_rows(urls_of(k, min(k + _MANY, n)), seed=k)
            start = time.perf_counter()
            store.save(rows=rows)
            took += time.perf_counter() - start
    return took


def multiply(database: str, n: int) -> float:
    """Seconds to write the rows of n pages in one transaction, copies of those of few pages."""
    with tempfile.TemporaryDirectory() as folder:
        fill(f"{folder}/few.db", _MANY)

        async def copied() -> float:
            few, many = open_store(f"{folder}/few.db"), open_store(database, keep=0)

            async def source(table: Table) -> AsyncIterator[list[Row]]:
                if table.name != "page":
                    async for rows in few.table_rows(table):
                        yield rows
                    return
                known = [row async for rows in few.table_rows(table) for row in rows]
                for k in range(0, n, len(known)):
                    urls = urls_of(k, min(k + len(known), n))
                    yield [(k + j + 1, url, *known[j][2:]) for j, url in enumerate(urls)]

            begin = time.perf_counter()
            await many.restore(source)
            took = time.perf_counter() - begin
            await few.close()
            await many.close()
            return took

        return asyncio.run(copied())


def opened(database: str) -> OwnedStore:
    """A database for writing; ``ADDRESS#SHARD`` is a shard of a cluster, leased as its worker has it."""
    address, _, shard = database.partition("#")
    if not shard:
        return open_store(database, keep=0)
    place = Address.parse(address)
    cluster = asyncio.run(tables.read(place))
    assert cluster is not None
    connections, leases = Connections(cluster, writers=1), ShardLeases("bench", time.monotonic, seconds=3600.0)
    _OPEN.append(connections)

    async def take() -> Held | None:
        connection = await tables.connect(place)
        await connection.execute("UPDATE shard_lease SET until = clock_timestamp() WHERE shard = $1", int(shard))
        held = await leases.take(connection, int(shard))
        await connection.close()
        return held

    held = asyncio.run(take())
    assert held is not None
    access = connections.of_gate(Gate(held), lambda: True)
    return PostgresStore(cluster.shard_database(int(shard)), keep=0, access=access)


def save_batches(database: str, n: int, size: int, batches: int) -> dict[str, float]:
    """Save batches of outcomes of random pages; outcomes per second, and milliseconds of a batch."""
    rng, took = np.random.default_rng(0), []
    with BlockingStore(opened(database)) as store:
        for k in range(batches):
            urls = [urls_of(page, page + 1)[0] for page in rng.choice(n, size, replace=False).tolist()]
            outcomes = [
                Outcome(url, 1.7e9 + k, 0.2, 200, bool(j % 3 == 0), f"main-1:{k:08x}{j:08x}", etag=f'"{k}-{j}"')
                for j, url in enumerate(urls)
            ]
            rows = example_rows(urls, seed=k)
            start = time.perf_counter()
            store.save(outcomes, rows)
            took.append(time.perf_counter() - start)
    return {"per_second": size * batches / sum(took), "ms": 1e3 * float(np.median(took))}


def start(database: str) -> dict[str, float]:
    """Seconds to open a database and load all rows, and the peak memory of the process."""
    begin = time.perf_counter()
    with BlockingStore(open_store(database)) as store:
        rows = store.load()
    assert rows is not None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": time.perf_counter() - begin, "pages": len(rows["url"]), "peak_mb": peak}


def in_process(*words: object) -> Any:
    """Run a function of this file in a process of its own; what it returns."""
    return json.loads(_begun(*words).communicate()[0])


def _begun(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, __file__, "--work", *map(str, words)], stdout=subprocess.PIPE, text=True)


def several(n_workers: int, databases: list[str], n: int, size: int, batches: int) -> float:
    """Outcomes per second of several processes at once, each on a database of its own."""
    workers = [_begun("save", database, n, size, batches) for database in databases[:n_workers]]
    return sum(float(json.loads(worker.communicate()[0])["per_second"]) for worker in workers)


def measure_rows(kind: str, database: str, n: int) -> dict[str, float]:
    """What saving and starting cost with so many rows."""
    filled = in_process("fill" if n <= _SAVED else "multiply", database, n)
    batch = in_process("save", database, n, 500, _BATCHES[500])
    begun = in_process("start", database)
    name = "fill" if n <= _SAVED else "copy"
    found = {f"{name}_seconds": filled, f"{name}_per_second": n / filled, "batch_ms": batch["ms"]}
    found |= {"start_seconds": begun["seconds"], "start_peak_mb": begun["peak_mb"]}
    print(kind, n, found, flush=True)
    return found


def measure_workers(kind: str, databases: list[str], n: int) -> dict[str, float]:
    """Outcomes per second of one worker and of four at once."""
    found = {}
    for database in databases:
        in_process("fill", database, n)
    for size, batches in _BATCHES.items():
        for n_workers in (1, 4):
            rate = several(n_workers, databases, n, size, batches)
            found[f"{n_workers} of {size}"] = rate
            print(kind, "workers", n_workers, "batch", size, round(rate), flush=True)
    return found


@dataclass(frozen=True)
class Places:
    """Where databases are made: files in a folder, schemas of a server."""

    folder: str
    address: Callable[[str], str]

    def of(self, kind: str, name: str) -> str:
        return f"{self.folder}/{name}.db" if kind == "sqlite" else self.address(name)

    def cluster(self) -> str:
        """A new cluster of four shards."""
        address = self.address("cluster")
        asyncio.run(tables.create(Address.parse(address), 4, "100/s"))
        return address


def measure(places: Places, rows: list[int], out: Path | None, note: str) -> None:
    """Measure all; what is known is written after each number of rows."""
    found: dict[str, Any] = {"note": note, "sqlite": {"rows": {}}, "postgresql": {"rows": {}}, "shards": {}}
    for kind in ("sqlite", "postgresql"):
        databases = [places.of(kind, f"worker{k}") for k in range(4)]
        found[kind]["workers"] = measure_workers(kind, databases, rows[0])
    address = places.cluster()
    found["shards"]["workers"] = measure_workers("shards", [f"{address}#{k}" for k in range(4)], rows[0])
    for n in rows:
        for kind in ("postgresql", "sqlite"):
            found[kind]["rows"][n] = measure_rows(kind, places.of(kind, f"rows{n}"), n)
            if out is not None:
                out.write_text(json.dumps(found, indent=1) + "\n")
    if out is not None:
        draw(found, out.with_suffix(".png"))


def draw(found: dict[str, Any], path: Path) -> None:
    """Costs over the number of rows, and outcomes per second by workers."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for kind in ("sqlite", "postgresql"):
        rows = {int(n): one for n, one in found[kind]["rows"].items()}
        axes[0].semilogx(list(rows), [one["batch_ms"] for one in rows.values()], "o-", label=kind)
        axes[1].loglog(list(rows), [one["start_seconds"] for one in rows.values()], "o-", label=kind)
    axes[0].set(title="save of 500 outcomes", xlabel="rows", ylabel="ms", ylim=(0, None))
    axes[1].set(title="start: load all rows", xlabel="rows", ylabel="s")
    kinds = ("sqlite", "postgresql", "shards")
    for k, kind in enumerate(kinds):
        workers = found[kind]["workers"]
        places = np.arange(len(workers)) + 0.27 * (k - 1)
        axes[2].bar(places, list(workers.values()), 0.25, label=kind)
    names = [one.replace(" of ", " × ") for one in found["sqlite"]["workers"]]
    axes[2].set_xticks(range(len(names)), names)
    axes[2].set(title="outcomes per second", xlabel="workers × outcomes in a batch")
    axes[0].legend(frameon=False)
    axes[2].legend(frameon=False)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="100000,1000000,10000000")
    parser.add_argument("--note", default="2 cores, beside other work")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "store.json")
    parser.add_argument("--smallest", action="store_true", help="few rows; nothing is written")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        what, database, *numbers = given.work
        work: dict[str, Any] = {"fill": fill, "multiply": multiply, "save": save_batches, "start": start}
        print(json.dumps(work[what](database, *map(int, numbers))))
        for one in _OPEN:
            one.end()
        return
    sys.path.insert(0, str(HERE.parent / "tests"))
    from postgres_server import Server

    rows = [1000] if given.smallest else [int(text) for text in given.rows.split(",")]
    kept = dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes"), "on")
    server = Server(**kept, shared_buffers="512MB", max_wal_size="4GB")
    try:
        with tempfile.TemporaryDirectory() as folder:
            measure(Places(folder, server.address), rows, None if given.smallest else given.out, given.note)
    finally:
        server.close()


if __name__ == "__main__":
    main()
