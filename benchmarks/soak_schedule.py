"""Memory of a scheduler over many decisions: nothing may grow once it has warmed up.

    python benchmarks/soak_schedule.py                 a hundred million decisions (minutes)
    python benchmarks/soak_schedule.py --decisions 1e6

A tenth of the pages have noisy signals, one signal comes for every ten decisions, a few leases are left to run out, and
the budget goes up and down by half. Times are epoch seconds with a budget of 20,000 crawls a second.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np

from recrawl import Pages, Scheduler

RESULTS = Path(__file__).parent / "results"
PAGES, BATCH, BUDGET, START = 200_000, 1000, 20_000.0, 1.8e9


def _resident_mb() -> float:
    """Resident memory of this process (its maximum if the system does not report the present value)."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=float, default=1e8)
    goal = int(parser.parse_args().decisions)
    rng = np.random.default_rng(3)
    signalled = rng.random(PAGES) < 0.1
    pages = Pages(
        rng.uniform(0.001, 0.1, PAGES),
        rng.uniform(0, 1, PAGES),
        np.where(signalled, rng.beta(0.25, 0.25, PAGES), 0.0),
        np.where(signalled, rng.uniform(0.01, 0.06, PAGES), 0.0),
    )
    scheduler = Scheduler(budget=BUDGET, start=START, lease=1.0)
    scheduler.add(pages, START, fetched_at=START - rng.uniform(0, 20, PAGES))
    signals = rng.integers(0, PAGES, (64, BATCH // 10))
    report, now, call = [], START, 0
    began = time.perf_counter()
    while scheduler.stats["decisions"] < goal:
        budget = BUDGET * (1.5 if (call // 2000) % 2 else 1.0)
        for _ in range(500):
            now += BATCH / budget
            scheduler.signal(signals[call % 64], now)
            ids = scheduler.pick(now, BATCH)
            scheduler.record(ids[: BATCH - call % 3], now)
            call += 1
        if len(report) == 0 or scheduler.stats["decisions"] >= (len(report) + 1) * goal / 20:
            rss = _resident_mb()
            row = {"decisions": scheduler.stats["decisions"], "array_bytes": scheduler.nbytes, "resident_mb": rss}
            report.append(
                {**row, "seconds": round(time.perf_counter() - began, 1), "scans": scheduler.stats["rebuilds"]}
            )
            print(json.dumps(report[-1]), flush=True)
    if goal >= 10**8:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "soak_schedule.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
