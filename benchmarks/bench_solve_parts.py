"""``recrawl solve`` of many pages in parts: time and memory against parts and processes, compared with one piece.

    python benchmarks/bench_solve_parts.py [--pages 10000000] [--out benchmarks/results/solve_parts.json]

Memory is the largest of all processes (peak resident set), without what a process has before it reads a part; the size
of a part is that of its two columns of numbers and the rates.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

HERE = Path(__file__).parent


def write_parts(folder: Path, n: int, n_parts: int) -> None:
    """Files of pages with drawn rates; the same pages whatever the number of parts."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    rate, weight = rng.gamma(0.5, 1.0, n) + 1e-5, rng.pareto(1.5, n) + 0.01
    for k, (rates, weights) in enumerate(zip(np.split(rate, n_parts), np.split(weight, n_parts), strict=True)):
        parquet.write_table(pa.table({"change_rate": rates, "importance": weights}), folder / f"{k:03d}.parquet")


def watch(process: subprocess.Popen[str]) -> float:
    """The largest peak resident set of a process and its children, in MB, while it runs."""
    most = 0.0
    while process.poll() is None:
        for pid in _family(process.pid):
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            if found := re.search(r"VmHWM:\s+(\d+)", status):
                most = max(most, int(found[1]) / 1024)
        time.sleep(0.05)
    return most


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(member for child in children for member in _family(int(child)))]


def solved(folder: Path, n: int, processes: int) -> dict[str, Any]:
    """One run of the command."""
    words = ["from recrawl.cli import main; main()", "solve", *map(str, sorted(folder.iterdir()))]
    command = [sys.executable, "-c", *words, "--budget", f"{n // 5}/day", "--processes", str(processes), "--json"]
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        peak = watch(process)
        figures = json.loads(process.stdout.read()) if process.stdout else {}
    found = {"seconds": time.perf_counter() - start, "peak_mb": peak, "passes": figures["iterations"]}
    return found | {name: figures[name] for name in ("threshold", "freshness", "spent", "gap", "never_crawled")}


def draw(found: dict[str, Any], path: Path) -> None:
    """Time against parts, one line for each number of processes; memory beside it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    runs = found["runs"]
    for processes in sorted({run["processes"] for run in runs}):
        mine = [run for run in runs if run["processes"] == processes]
        label = f"{processes} process{'es' if processes > 1 else ''}"
        left.plot([run["parts"] for run in mine], [run["seconds"] for run in mine], "o-", label=label)
        right.plot([run["parts"] for run in mine], [run["peak_mb"] for run in mine], "o-", label=label)
    for axes, name in ((left, "seconds"), (right, "MB of the largest process")):
        axes.set(xlabel="parts", ylabel=name, xscale="log", ylim=(0, None))
        axes.legend(frameon=False)
    figure.suptitle(f"recrawl solve, {found['pages']:.0e} pages")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "solve_parts.json")
    parser.add_argument("--smallest", action="store_true", help="few pages; nothing is written")
    given = parser.parse_args()
    n, runs = 4000 if given.smallest else given.pages, []
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small"
        write_parts(small, 2000, 2)
        idle = solved(small, 2000, 2)["peak_mb"]
        for n_parts in (1, 10, 40):
            parts = Path(folder) / f"{n_parts}"
            write_parts(parts, n, n_parts)
            for processes in (1, 2, 4) if n_parts > 1 else (1,):
                run = solved(parts, n, processes) | {"parts": n_parts, "processes": processes}
                run["in_parts"] = (run["peak_mb"] - idle) / (n / n_parts * 3 * 8 / 2**20)
                runs.append(run)
                print(run, flush=True)
    one = runs[0]
    for run in runs:
        run["difference"] = max(abs(run[name] / one[name] - 1.0) for name in ("threshold", "freshness", "spent"))
    found = {"pages": n, "cores": os.cpu_count(), "idle_mb": idle, "runs": runs}
    if given.smallest:
        return
    given.out.write_text(json.dumps(found, indent=1) + "\n")
    draw(found, given.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
