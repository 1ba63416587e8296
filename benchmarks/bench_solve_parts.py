"""``recrawl solve`` of many pages in parts: time and memory against parts and processes, compared with one piece.

    python benchmarks/bench_solve_parts.py [--out benchmarks/results/solve_parts.json]

Memory is the largest of all processes (peak resident set). ``in_parts`` is that without what the processes of the same
command have when there are few pages; the size of a part is that of its two columns of numbers and the rates. The
largest table needs 6 GB of memory in one piece.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
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
SWEEPS = ((10_000_000, (1, 10, 40)), (100_000_000, (1, 100)))  # pages, and into how many parts they are divided


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


def sweep(folder: Path, n: int, parts: tuple[int, ...], idle: dict[int, float]) -> list[dict[str, Any]]:
    """The same pages in one piece and in parts, with several numbers of processes."""
    runs: list[dict[str, Any]] = []
    for n_parts in parts:
        files = folder / f"{n}-{n_parts}"
        write_parts(files, n, n_parts)
        for processes in idle if n_parts > 1 else (1,):
            run = solved(files, n, processes) | {"pages": n, "parts": n_parts, "processes": processes}
            run["in_parts"] = (run["peak_mb"] - idle[processes]) / (n / n_parts * 3 * 8 / 2**20)
            one = runs[0] if runs else run
            run["difference"] = max(abs(run[name] / one[name] - 1.0) for name in ("threshold", "freshness", "spent"))
            runs.append(run)
            print(run, flush=True)
        shutil.rmtree(files)
    return runs


def draw(runs: list[dict[str, Any]], path: Path) -> None:
    """Time against parts, one line for each number of processes; memory beside it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.5), layout="constrained")
    for n in sorted({run["pages"] for run in runs}):
        for k, processes in enumerate(sorted({run["processes"] for run in runs})):
            mine = [run for run in runs if (run["processes"], run["pages"]) == (processes, n)]
            style = {"marker": "o", "color": f"C{k}", "ls": "-" if n == runs[0]["pages"] else "--"}
            label = f"{n:.0e} pages, {processes} process{'es' if processes > 1 else ''}"
            left.plot([run["parts"] for run in mine], [run["seconds"] for run in mine], label=label, **style)
            right.plot([run["parts"] for run in mine], [run["peak_mb"] for run in mine], **style)
    for axes, name in ((left, "seconds"), (right, "MB of the largest process")):
        axes.set(xlabel="parts", ylabel=name, xscale="log", yscale="log")
    figure.legend(loc="outside right upper", frameon=False, fontsize="small")
    figure.suptitle("recrawl solve of a table in parts")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "solve_parts.json")
    parser.add_argument("--smallest", action="store_true", help="few pages; nothing is written")
    given, runs = parser.parse_args(), []
    counts = (1, 2) if given.smallest else (1, 2, 4)
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small"
        write_parts(small, 2000, 2)
        idle = {processes: solved(small, 2000, processes)["peak_mb"] for processes in counts}
        for n, parts in ((4000, (1, 2)),) if given.smallest else SWEEPS:
            runs += sweep(Path(folder), n, parts, idle)
    if given.smallest:
        return
    given.out.write_text(json.dumps({"cores": os.cpu_count(), "idle_mb": idle, "runs": runs}, indent=1) + "\n")
    draw(runs, given.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
