"""Start a crawl of a million known pages: how long it takes and how much memory it holds.

    python benchmarks/start.py --pages 1000000 --out benchmarks/results/start.json

The database is made by an engine that has crawled every page at least once; start-up is measured in a process of its
own, from the opening of the database to the first pages picked.
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

import numpy as np

from recrawl import Engine
from recrawl.crawl.run.opening.pages import open_engine, save_pages
from recrawl.store import BlockingStore, SqliteStore

NOW = 1.75e9
HOSTS = 5000


def make(path: Path, n: int) -> None:
    """A database of n pages, all of them crawled, some failing, some gone."""
    rng = np.random.default_rng(0)
    engine = Engine(50.0, start=NOW, host_spacing=1.0, host_concurrency=1)
    urls = [f"https://host{k % HOSTS}.example.org/some/folder/page-{k}.html" for k in range(n)]
    ids = engine.add(urls, NOW, fetched_at=NOW - rng.uniform(0, 30 * 86400.0, n))
    for first in range(0, n, 20_000):
        some = ids[first : first + 20_000]
        kind, now = rng.random(len(some)), NOW + first / 50.0
        engine.record(some, now, changed=rng.random(len(some)) < 0.3, failed=kind < 0.02, gone=kind > 0.99)
    with BlockingStore(SqliteStore(path)) as store:
        store.run(save_pages(engine, store.store, ids))


def start(path: Path) -> dict[str, float]:
    """Open the database and pick; what it took. Kernels are compiled (or loaded) beforehand."""
    warm = Engine(1.0, host_spacing=1.0, host_concurrency=1)
    warm.add([f"https://a.example/{k}" for k in range(20)], 0.0, fetched_at=0.0)
    warm.record(warm.pick(1e5, 1), 1e5, changed=[True])
    Engine.restore(warm.rows(), 2e5).pick(3e5, 1)
    before, cpu, began = _resident(), time.process_time(), time.perf_counter()
    with BlockingStore(SqliteStore(path)) as store:
        loaded = store.load()
        read = time.perf_counter() - began
        pages = len(loaded["url"])
        del loaded
        settings = {"budget": 50.0, "host_spacing": 1.0, "host_concurrency": 1}
        engine = store.run(open_engine(store.store, NOW + pages / 50.0 + 3600.0, **settings))
        picked = engine.pick(engine.now + 1.0, 100)
    return {
        "pages": pages,
        "read_s": round(read, 2),
        "start_s": round(time.perf_counter() - began - read, 2),
        "cpu_s": round(time.process_time() - cpu, 2),
        "picked": len(picked),
        "resident_before_mb": round(before, 1),
        "resident_mb": round(_resident(), 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--start", type=Path, help="Only start from this database.")
    given = parser.parse_args()
    if given.start is not None:
        print(json.dumps(start(given.start)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "start.db"
        began = time.perf_counter()
        make(path, given.pages)
        made = {"database_mb": round(path.stat().st_size / 2**20, 1), "made_s": round(time.perf_counter() - began, 1)}
        command = [sys.executable, __file__, "--start", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = {**json.loads(done.stdout), **made}
    print(json.dumps(found, indent=1))
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
