"""Outcomes saved per second, and what saving and starting cost: SQLite and PostgreSQL in one run, on this machine.

    python benchmarks/bench_store.py [--rows 100000,1000000] [--out benchmarks/results/store.json]

Both write to disk before they acknowledge (SQLite: synchronous = FULL; PostgreSQL: fsync and synchronous_commit on, on
loopback). A batch is what a crawler saves at a time: outcomes, each with a copy, and the rows of their pages. Workers
are processes, each with a database of its own kind: a file, or a schema of the one server.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.store import BlockingStore, Outcome, open_store
from recrawl.store.testing.rows import example_rows

HERE = Path(__file__).parent
_BATCHES = {500: 40, 20: 200}  # outcomes in a batch, and how many batches are saved
_MANY = 20_000


def urls_of(first: int, last: int) -> list[str]:
    return [f"https://host{k % 500}.example.org/folder{k % 7}/page-{k}.html" for k in range(first, last)]


def fill(database: str, n: int) -> float:
    """Seconds to save the rows of n new pages."""
    with BlockingStore(open_store(database, keep=0)) as store:
        parts = [example_rows(urls_of(k, min(k + _MANY, n)), seed=k) for k in range(0, n, _MANY)]
        start = time.perf_counter()
        for rows in parts:
            store.save(rows=rows)
        return time.perf_counter() - start


def save_batches(database: str, n: int, size: int, batches: int) -> dict[str, float]:
    """Save batches of outcomes of random pages; outcomes per second, and milliseconds of a batch."""
    rng, took = np.random.default_rng(0), []
    with BlockingStore(open_store(database, keep=0)) as store:
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
    return sum(json.loads(worker.communicate()[0])["per_second"] for worker in workers)


def measure(kind: str, name: Any, rows: list[int]) -> dict[str, Any]:
    """All figures of one kind of store."""
    found: dict[str, Any] = {"rows": {}, "workers": {}}
    for n in rows:
        database = name(f"rows{n}")
        filled = in_process("fill", database, n)
        batch = in_process("save", database, n, 500, _BATCHES[500])
        begun = in_process("start", database)
        found["rows"][n] = {"fill_seconds": filled, "fill_per_second": n / filled, "batch_ms": batch["ms"]}
        found["rows"][n] |= {"start_seconds": begun["seconds"], "start_peak_mb": begun["peak_mb"]}
        print(kind, n, found["rows"][n], flush=True)
    n, databases = rows[0], [name(f"worker{k}") for k in range(4)]
    for database in databases:
        in_process("fill", database, n)
    for size, batches in _BATCHES.items():
        for n_workers in (1, 4):
            rate = several(n_workers, databases, n, size, batches)
            found["workers"][f"{n_workers} of {size}"] = rate
            print(kind, "workers", n_workers, "batch", size, round(rate), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="100000,1000000")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "store.json")
    parser.add_argument("--smallest", action="store_true", help="few rows; nothing is written")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        what, database, *numbers = given.work
        work: dict[str, Any] = {"fill": fill, "save": save_batches, "start": start}
        print(json.dumps(work[what](database, *map(int, numbers))))
        return
    sys.path.insert(0, str(HERE.parent / "tests"))
    from postgres_server import Server

    rows = [1000] if given.smallest else [int(text) for text in given.rows.split(",")]
    kept = dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes"), "on")
    server = Server(**kept, shared_buffers="512MB", max_wal_size="4GB")
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = {"sqlite": measure("sqlite", lambda name: f"{folder}/{name}.db", rows)}
            found["postgresql"] = measure("postgresql", server.address, rows)
    finally:
        server.close()
    if given.smallest:
        return
    given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
