"""Restart of an engine: from a checkpoint and the rows saved since, and from all rows; each in a process of its own.

Pages with 60-character URLs on 1,000 hosts, of which 1% were crawled; then a checkpoint is written while picks go on,
and outcomes of 0.1% are saved that it does not know. The two engines must pick alike: which share of the first picks is
the same is part of the result. What clocks did lately is in the checkpoint alone; so the share is computed again after
both engines have forgotten it. The checkpoint lies in the file cache of the system, as after the end of a process;
times are of the clock and of the processor.

    python benchmarks/bench_restart.py                    1e6 pages; results/restart.json
    python benchmarks/bench_restart.py --pages 10000000   1e7 pages: 10 GB of disk, 6 GB of memory, half an hour
    python benchmarks/bench_restart.py --smallest         1e3 pages; nothing is written
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
DAY, START, BATCH, PICKED = 86400.0, 1.7e9, 500, 5000
MANY = 20_000


def rss() -> float:
    """Bytes in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def crawled(engine: Any, pages: Any, now: float, rng: Any) -> list[Any]:
    """Record crawls of pages; their outcomes."""
    from recrawl.store.protocol import Outcome

    changed = rng.random(len(pages)) < 0.3
    engine.record(pages, now, changed=changed)
    found = zip(engine.url(pages), changed.tolist(), strict=True)
    return [Outcome(url, now, 0.1, 200, flag, f"main:{now if flag else 0:016}") for url, flag in found]


async def made(n: int, path: Path) -> dict[str, Any]:
    """A database with a checkpoint beside it and outcomes since."""
    from recrawl import Engine
    from recrawl._system import forks
    from recrawl.crawl.config.rules import Rules
    from recrawl.crawl.run.opening.checkpoint import rules_stamp
    from recrawl.engine.checkpoint import write_checkpoint
    from recrawl.store import SqliteStore

    rng, before = np.random.default_rng(1), rss()
    engine = Engine(n / (7 * DAY), start=START)
    for first in range(0, n, 1_000_000):
        some = range(first, min(first + 1_000_000, n))
        urls = [f"https://host{k % 1000:03}.example.org/section{k % 7}/article-{k:08d}.html" for k in some]
        engine.add(
            urls,
            START,
            fetched_at=START - rng.uniform(0, 7 * DAY, len(urls)),
            importance=rng.lognormal(0, 1, len(urls)),
        )
        del urls
    in_memory = rss() - before
    store, now = SqliteStore(path, keep=0), START
    fits = 0
    while engine.beliefs.crawls < n // 100 or engine.beliefs.fits == fits:  # until just after a fit of the tables
        now, fits = now + BATCH / engine.budget, engine.beliefs.fits
        crawled(engine, engine.pick(now, BATCH), now, rng)
    for first in range(0, n, MANY):
        await store.save(rows=engine.rows(np.arange(first, min(first + MANY, n))))
    mark, file = await store.set_mark(), store.checkpoint_path
    about = {"mark": mark, "rules": rules_stamp(Rules())}
    began = time.perf_counter()
    copy = forks.fork(lambda: write_checkpoint(engine, file, about))
    forked, longest = time.perf_counter() - began, 0.0
    while os.waitpid(copy, os.WNOHANG)[0] == 0:  # picks go on meanwhile
        at = time.process_time()
        engine.put_back(engine.pick(now, 100))
        longest = max(longest, time.process_time() - at)
    wrote = time.perf_counter() - began
    for _ in range(max(n // 1000 // BATCH, 1)):
        now += BATCH / engine.budget
        some = engine.pick(now, BATCH)
        await store.save(crawled(engine, some, now, rng), engine.rows(some))
    await store.close()
    return {
        "now": now,
        "bytes_per_page_beside_url": in_memory / n - 60,
        "checkpoint_bytes_per_page": file.stat().st_size / n,
        "fork_ms": 1e3 * forked,
        "write_s": wrote,
        "longest_pick_of_100_meanwhile_cpu_ms": 1e3 * longest,
    }


async def opened(path: Path, now: float, *, checkpoint: bool) -> dict[str, Any]:
    """Open the engine of a database; how long it took, and what it picks."""
    from recrawl.crawl.run.opening.pages import open_engine
    from recrawl.store import SqliteStore

    store = SqliteStore(path, keep=0)
    before, began = rss(), (time.process_time(), time.perf_counter())
    engine = await open_engine(store, now, checkpoint=checkpoint)
    cpu, clock = time.process_time() - began[0], time.perf_counter() - began[1]
    used = rss() - before
    began = time.process_time(), time.perf_counter()
    some = engine.pick(now + 1.0, min(PICKED, len(engine) // 2))
    first = time.process_time() - began[0]
    picked = engine.url(some)
    engine.put_back(some)
    baseline = engine.url(picked_at_baseline(engine, now + 1.0))
    await store.close()
    return {
        "clock_s": clock,
        "cpu_s": cpu,
        "first_pick_s": first,
        "mb": used / 1e6,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "picked": picked,
        "baseline": baseline,
    }


def picked_at_baseline(engine: Any, now: float) -> Any:
    """What an engine picks when its clocks have forgotten what happened lately."""
    from recrawl.engine.clocks.arrays import NEVER
    from recrawl.schedule.exact import access

    clocks = engine.clocks.arrays
    clocks.found[:] = clocks.expected[:] = 0.0
    clocks.newest[:] = NEVER
    engine.clocks.publish(engine.scheduler, now, reinsert=False)
    access.place_all(engine.scheduler)
    return engine.pick(now, min(PICKED, len(engine) // 2))


def in_process(*words: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, "--do", *words], check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def without_picks(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name not in ("picked", "baseline")}


def measured(n: int, folder: Path, *, rows: bool) -> dict[str, Any]:
    path = folder / "pages.db"
    found = in_process("made", str(path), str(n))
    now = str(found.pop("now"))
    for words in ("checkpoint", "rows"):  # once before: kernels are compiled
        in_process("made", str(folder / f"few-{words}.db"), "1000")
        in_process(words, str(folder / f"few-{words}.db"), str(START + DAY))
    one = in_process("checkpoint", str(path), now)
    if not rows:
        return {"pages": n, **found, "checkpoint": without_picks(one), "load": round(os.getloadavg()[0], 1)}
    other = in_process("rows", str(path), now)
    for name in ("picked", "baseline"):
        first, second = one.pop(name), other.pop(name)
        found[f"{name}_alike"] = len(set(first) & set(second)) / max(len(first), 1)
    return {"pages": n, **found, "checkpoint": one, "rows": other, "load": round(os.getloadavg()[0], 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    parser.add_argument("--checkpoint-only", action="store_true", help="do not build the engine from rows")
    parser.add_argument("--do", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.do:
        what, path, number = given.do
        if what == "made":
            print(json.dumps(asyncio.run(made(int(number), Path(path)))))
        else:
            print(json.dumps(asyncio.run(opened(Path(path), float(number), checkpoint=what == "checkpoint"))))
        return
    n = 1000 if given.smallest else given.pages
    with tempfile.TemporaryDirectory() as folder:
        found = measured(n, Path(folder), rows=not given.checkpoint_only)
    print(json.dumps(found, indent=1))
    if not given.smallest:
        path = HERE / "results" / "restart.json"
        rows = json.loads(path.read_text()) if path.exists() else []
        rows = [row for row in rows if row["pages"] != n] + [found]
        path.write_text(json.dumps(sorted(rows, key=lambda row: row["pages"]), indent=1) + "\n")


if __name__ == "__main__":
    main()
