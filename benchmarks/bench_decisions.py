"""Where the time of a decision goes: pick and record of an engine that learns, default settings, by parts.

Pages have copies of all ages up to a week and change at rates of their own; the budget is a crawl per page and week.
After a first week, or several, each run makes some decisions, in batches. Rates are decisions per second of processor
time, fits included: the next is due when there were 1.3 times as many crawls as at the last, so that they weigh most in
the second week. Parts are measured by a second run of the same decisions under a profiler, which adds to Python's part.

    python benchmarks/bench_decisions.py                    1e5 and 1e6 pages; some minutes; results/decisions.json
    python benchmarks/bench_decisions.py --label before     the same, kept under that label
    python benchmarks/bench_decisions.py --largest 10000000 and 1e7; ten minutes and 5 GB more
    python benchmarks/bench_decisions.py --smallest         1e3 pages; nothing is written
    python benchmarks/bench_decisions.py --beside TREE      this code and that of another tree in turns; beside.json
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from bench_life import DAY, World

RESULTS = Path(__file__).parent / "results"
RUNS = (  # pages, pages per pick, sources of signals, weeks before
    (100_000, 100, 0, 1),
    (100_000, 1000, 0, 1),
    (100_000, 1, 0, 1),
    (100_000, 100, 1, 1),
    (100_000, 1, 0, 5),
    (100_000, 100, 1, 5),
    (1_000_000, 1000, 0, 1),
    (1_000_000, 1000, 0, 5),
    (10_000_000, 1000, 0, 1),
)
BESIDE = ((50_000, 1000, 0), (50_000, 100, 1), (30_000, 1, 0))  # pages, pages per pick, sources of two source trees
ROUNDS, OF_ROUND = 6, 6000  # in turns, and decisions of each
PARTS = {  # kernels by what they do
    "pick": ("pick", "pick_promoting"),
    "learn": ("learn_crawls", "end_crawls"),
    "place": ("record", "return_pages", "reinsert_some", "place_crawled"),
    "likely": ("fill_doubted_at", "all_likely"),
    "fits": ("believe_all", "count_all", "likelihood_of_strengths", "put_back", "reset_layers", "apply_beliefs"),
    "clocks": ("publish_all", "reinsert_all"),
}


class Run:
    """An engine and its world, after a week."""

    def __init__(self, pages: int, sources: int) -> None:
        from recrawl import Engine

        self.world, self.engine, self.sources = World(pages), Engine(pages / (7 * DAY), sources=sources), sources
        self._rng, self._certain = np.random.default_rng(3), np.zeros(pages, np.bool_)
        self._sums = np.cumsum(self.world.rate)
        self.engine.add(self.world.urls, 0.0, fetched_at=-self.world.ages)
        self.world.last[:] = -self.world.ages
        self.cpu = {"pick": 0.0, "record": 0.0, "signal": 0.0}

    def decide(self, n: int, batch: int) -> None:
        """Make n decisions; with a source, as many signals, of which four in five tell of a change."""
        clock = time.process_time
        for _ in range(n // batch):
            self.world.now += batch / self.world.budget
            if self.sources:
                true = np.searchsorted(self._sums, self._rng.random(batch * 4 // 5) * self._sums[-1])
                self._certain[true] = True
                signalled = np.append(true, self._rng.integers(0, len(self._certain), batch - len(true)))
                began = clock()
                self.engine.signal(signalled, self.world.now)
                self.cpu["signal"] += clock() - began
            began = clock()
            pages = self.engine.pick(self.world.now, batch)
            self.cpu["pick"] += clock() - began
            if not len(pages):
                continue
            changed = self.world.crawl(pages) | self._certain[pages]
            self._certain[pages] = False
            began = clock()
            self.engine.record(pages, self.world.now, changed=changed)
            self.cpu["record"] += clock() - began


def measure(pages: int, batch: int, sources: int, weeks: int = 1) -> dict[str, Any]:
    """Decisions per second, and microseconds per decision by part."""
    run = Run(pages, sources)
    run.decide(weeks * pages, max(batch, 100))
    if batch < 100:
        run.decide(100 * batch, batch)
    n = min(pages if batch > 1 else 20_000, 300_000) if weeks == 1 else int(0.31 * weeks * pages)  # with one fit
    run.cpu, before = dict.fromkeys(run.cpu, 0.0), dict(run.engine.stats)
    run.decide(n, batch)
    made, cpu = {name: value - before[name] for name, value in run.engine.stats.items()}, dict(run.cpu)
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    run.decide(n, batch)
    profile.disable()
    per = {name: 1e6 * took / made["recorded"] for name, took in cpu.items()}
    return {
        "pages": pages,
        "batch": batch,
        "sources": sources,
        "weeks": weeks,
        "decisions_per_cpu_s": made["recorded"] / (sum(cpu.values()) or 1.0),
        "us": {name: round(took, 2) for name, took in per.items()},
        "us_profiled": parts_of(profile, n),
        "values_per_decision": round(made["evaluated"] / made["recorded"], 1),
        "wakes_per_decision": round(made["wakes"] / made["recorded"], 1),
        "refits": made["refits"],
        "load": round(os.getloadavg()[0], 1),
    }


def parts_of(profile: cProfile.Profile, n: int) -> dict[str, float]:
    """Microseconds per decision of each part; what is in no kernel is Python's."""
    stats: Any = pstats.Stats(profile)
    took = dict.fromkeys((*PARTS, "python"), 0.0)
    for (file, _, name), (_, _, own, _, _) in stats.stats.items():
        kernel = "kernels" in file and next((part for part, names in PARTS.items() if name in names), None)
        if "bench_decisions" not in file and "bench_life" not in file:
            took[kernel or "python"] += own
    return {part: round(1e6 * seconds / n, 2) for part, seconds in took.items()}


def take_turns() -> None:
    """The process of one source tree: an engine after a week makes decisions each time a line comes in."""
    pages, batch, sources = (int(number) for number in sys.argv[2:5])
    run = Run(pages, sources)
    run.decide(pages, max(batch, 100))
    run.decide(100 * batch if batch < 100 else 0, batch)
    print(flush=True)
    for _ in sys.stdin:
        run.cpu, before = dict.fromkeys(run.cpu, 0.0), run.engine.stats["recorded"]
        run.decide(OF_ROUND, batch)
        spent = 1e6 * sum(run.cpu.values()) / (run.engine.stats["recorded"] - before)
        print(json.dumps([spent, run.engine.threshold]), flush=True)


def beside(tree: Path, pages: int, batch: int, sources: int) -> dict[str, Any]:
    """Microseconds per decision of this code and another, in turns; how many times as fast this one is."""
    command = [sys.executable, __file__, "--turns", str(pages), str(batch), str(sources)]
    folders = [str(each.resolve() / "src") for each in (tree, Path(__file__).parents[1])]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    runs = [subprocess.Popen(command, env={**os.environ, "PYTHONPATH": folder}, **pipes) for folder in folders]
    for run in runs:
        run.stdout.readline()
    found: list[list[list[float]]] = [[], []]
    for turn in range(2 * ROUNDS):
        which = (turn + turn // 2) % 2  # each code comes first as often as the other
        print(file=runs[which].stdin, flush=True)
        found[which].append(json.loads(runs[which].stdout.readline()))
    for run in runs:
        run.communicate()
    assert [each[1] for each in found[0]] == [each[1] for each in found[1]]  # the same decisions
    before, now = (np.array([each[0] for each in part]) for part in found)
    spent = {"us_before": round(float(np.median(before)), 1), "us_now": round(float(np.median(now)), 1)}
    speed = {"times_as_fast": round(float(np.median(before / now)), 3), "load": round(os.getloadavg()[0], 1)}
    return {"pages": pages, "batch": batch, "sources": sources, **spent, **speed}


def main() -> None:
    if sys.argv[1:2] == ["--turns"]:
        take_turns()
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--label", default="now", help="under which the figures are kept")
    parser.add_argument("--largest", type=int, default=1_000_000, help="runs of more pages are left out")
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    parser.add_argument("--beside", type=Path, help="a source tree with other code, to be measured in turns with this")
    given = parser.parse_args()
    if given.beside:
        rows = [beside(given.beside, *run) for run in BESIDE]
        print(json.dumps(rows, indent=1))
        RESULTS.joinpath("beside.json").write_text(json.dumps(rows, indent=1) + "\n")
        return
    if given.smallest:
        print(measure(1000, 100, 0), measure(1000, 100, 1))
        return
    rows = []
    for run in RUNS:
        if run[0] <= given.largest:
            rows.append(measure(*run))
            print(json.dumps(rows[-1]), flush=True)
    path = RESULTS / "decisions.json"
    kept = json.loads(path.read_text()) if path.exists() else {"cores": os.cpu_count()}
    path.write_text(json.dumps({**kept, given.label: rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
