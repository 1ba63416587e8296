"""Decisions and compilation of the scheduler of a checkout, for the columns of `structure.py`.

    PYTHONPATH=../before/src python benchmarks/structure_speed.py
    PYTHONPATH=src python benchmarks/structure_speed.py

Prints seconds of the processor that the first decision takes without kernels on disk, and decisions per second of the
processor among 100,000 pages: plain, and with a noisy signal for every decision. A decision is a pick and a record, in
batches of 1,000; the best of five turns counts. Run both checkouts in turn: the script uses public names alone.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

N, BATCH, CALLS, TURNS = 100_000, 1000, 200, 5
FIRST = "from recrawl import Pages, Scheduler; Scheduler(Pages([1.0, 2.0], recall=0.5, false_rate=0.3)).pick(1.0, 1)"


def first_decision() -> float:
    """Seconds of the processor until the first decision, with an empty folder of kernels."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "RECRAWL_COMPILE_FIRST": "1"}
        command = f"import time; {FIRST}; print(time.process_time())"
        done = subprocess.run(
            [sys.executable, "-c", command], capture_output=True, text=True, check=True, env=environment
        )
    return round(float(done.stdout.split()[-1]), 1)


def decisions(signals: bool) -> int:
    """Decisions per second of the processor."""
    import numpy as np

    from recrawl import Pages, Scheduler

    rng = np.random.default_rng(1)
    rate, importance, budget = rng.uniform(0.01, 1, N), rng.uniform(0, 1, N), N / 10
    quality = {"recall": rng.beta(0.25, 0.25, N), "false_rate": rng.uniform(0.1, 0.6, N)} if signals else {}
    scheduler = Scheduler(budget=budget, lease=1.0)
    scheduler.add(Pages(rate, importance, **quality), 0.0, fetched_at=-rng.uniform(0, 10, N))
    now, took = 0.0, []
    for turn in range(TURNS + 1):
        heard = rng.integers(0, N, (CALLS, BATCH))
        began = time.process_time()
        for call in range(CALLS):
            now += BATCH / budget
            if signals:
                scheduler.signal(heard[call], now)
            scheduler.record(scheduler.pick(now, BATCH), now)
        if turn:  # the first turn warms up
            took.append(time.process_time() - began)
    return round(CALLS * BATCH / min(took))


if __name__ == "__main__":
    found = {"compile cpu seconds of the first decision": first_decision()}
    found |= {"decisions per cpu second at 1e5 pages: plain, signals": [decisions(False), decisions(True)]}
    print(json.dumps(found))
