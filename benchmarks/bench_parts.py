"""Cost of siblings: decisions per second with and without them.

A million pages in folders of 50; besides changes of single pages, sweeps change most of a folder. The budget is 2% of
the pages per day. Each engine starts cold and runs for 90 days; the last third counts, fitting included, in processor
time. Beside them the scheduler alone, with every page's mean rate.

    python benchmarks/bench_parts.py            1e5 and 1e6 pages; some minutes
    python benchmarks/bench_parts.py --quick    1e4 pages; results are not written
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.engine import Engine
from recrawl.model.pages import Pages
from recrawl.schedule.exact.scheduler import Scheduler
from recrawl.simulate.run.policies import admit_unknown, effects_of, greedy, learning
from recrawl.simulate.run.run import Contender, admit_known, simulate
from recrawl.simulate.trace import Trace

RESULTS = Path(__file__).parent / "results"
DAYS, FOLDER, SHARE = 90.0, 50, 0.02
POLICIES = {
    "scheduler": "scheduler alone, rates known",
    "learned:none": "engine, independent pages",
    "learned:siblings": "engine, siblings",
}


def sweeping(n: int, rng: np.random.Generator) -> Trace:
    """Pages with rates of their own (gamma), in folders that are swept once in 60 days on average."""
    rate = rng.gamma(0.5, 0.04, n)
    count = rng.poisson(rate * DAYS)
    own, at = np.repeat(np.arange(n), count), rng.random(int(count.sum())) * DAYS
    swept = np.repeat(np.arange(n // FOLDER), rng.poisson(DAYS / 60.0, n // FOLDER))
    hit = rng.random((len(swept), FOLDER)) < 0.6
    page = np.concatenate([own, (swept[:, None] * FOLDER + np.arange(FOLDER))[hit]])
    when = np.concatenate([at, np.repeat(rng.random(len(swept)) * DAYS, FOLDER).reshape(-1, FOLDER)[hit]])
    order = np.lexsort((when, page))
    offset = np.concatenate([[0], np.cumsum(np.bincount(page, minlength=n))])
    url = np.array([f"https://h{i // 5000}.example/{i // 500 % 10}/{i // FOLDER % 10}/{i}" for i in range(n)])
    importance = rng.pareto(1.5, n) + 0.1
    pages = Pages(rate + 0.6 / 60.0, importance)
    return Trace(0.0, DAYS, offset, when[order], importance, url=url, pages=pages, day=1.0)


def measure(name: str, trace: Trace) -> dict[str, Any]:
    """Decisions per second in the last third of a run, values per decision, and memory."""
    held: list[Engine | Scheduler] = []
    make = greedy("no-signals") if name == "scheduler" else learning(**effects_of(name))

    def keep(trace: Trace, budget: float, rng: np.random.Generator) -> Engine | Scheduler:
        held.append(make(trace, budget, rng))
        return held[0]

    marks: list[tuple[float, float, int, int]] = []

    def mark(done: float) -> None:
        stats = held[0].stats
        marks.append((done, time.process_time(), stats["decisions"], stats["evaluated"]))

    admit = admit_known if name == "scheduler" else admit_unknown
    found = simulate(Contender(name, keep, admit), trace, SHARE * len(trace), progress=mark)
    first = next(m for m in marks if m[0] >= 2.0 / 3.0)
    took, made, values = (marks[-1][k] - first[k] for k in (1, 2, 3))
    policy = held[0]
    scheduler = policy if isinstance(policy, Scheduler) else policy.scheduler
    return {
        "pages": len(trace),
        "policy": name,
        "decisions_per_second": made / took,
        "values_per_decision": values / made,
        "scheduler_bytes_per_page": scheduler.nbytes / len(trace),
        "engine_bytes_per_page": _bytes(policy) / len(trace),
        "staleness": found.staleness,
    }


def _bytes(policy: Engine | Scheduler) -> int:
    """Arrays of what is believed; URLs are not counted."""
    if isinstance(policy, Scheduler):
        return 0
    *beliefs, signals = policy.beliefs.belief
    arrays: list[Any] = [*beliefs, *signals, *policy.calibration, *policy.clocks.arrays]
    return sum(array.nbytes for array in arrays)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Bars: decisions per second, by policy and number of pages."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.6), dpi=110, layout="constrained")
    axes = figure.subplots()
    sizes = sorted({row["pages"] for row in rows})
    for k, n in enumerate(sizes):
        mine = [row for row in rows if row["pages"] == n]
        places = [j + (k - 0.5) * 0.38 for j in range(len(mine))]
        axes.barh(places, [row["decisions_per_second"] for row in mine], 0.36, label=f"{n:,} pages")
    axes.set_yticks(range(len(POLICIES)), list(POLICIES.values()))
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("decisions per second")
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Software": None})


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    given = parser.parse_args()
    quick = given.quick
    for name in POLICIES:
        measure(name, sweeping(300 if given.smallest else 2000, np.random.default_rng(0)))  # compile
    if given.smallest:
        return
    rows = []
    for n in [10_000] if quick else [100_000, 1_000_000]:
        trace = sweeping(n, np.random.default_rng(1))
        for name in POLICIES:
            rows.append(measure(name, trace))
            print(json.dumps(rows[-1]), flush=True)
    if not quick:
        RESULTS.mkdir(exist_ok=True)
        found = {"cores": os.cpu_count(), "rows": rows}
        (RESULTS / "parts.json").write_text(json.dumps(found, indent=1) + "\n")
        draw(rows, RESULTS / "parts.png")


if __name__ == "__main__":
    main()
