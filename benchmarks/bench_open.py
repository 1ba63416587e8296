"""How long commands take on databases of many pages: crawled, never crawled, and half of each.

    python benchmarks/bench_open.py
    python benchmarks/bench_open.py --before OTHER_CHECKOUT --pages 10000 40000

Each command runs in a process of its own, kernels on disk; seconds of processor time and of the clock. ``--before``
measures another checkout of the source on the same databases. Results are kept beside those measured before.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from open_databases import KINDS, url_of

RESULTS = Path(__file__).parent / "results"
SIZES = (10_000, 40_000, 100_000, 200_000, 1_000_000)
HERE = Path(__file__).parents[1]
_PROGRAM = "from recrawl.cli import main; main()"


def commands(n: int, folder: Path) -> dict[str, list[str]]:
    """The commands by name, each with its arguments."""
    return {
        "status": ["status"],
        "why": ["why", url_of(n // 2, max(n // 200, 1))],
        "run --dry-run": ["run", "--dry-run", "10", "--budget", "10/s"],
        "export": ["export", "--pages", str(folder / "pages.csv")],
        "add": ["add", "https://new.example.org/"],
    }


def python(source: Path, *arguments: str) -> None:
    """Run Python with the packages of a checkout."""
    there = {**os.environ, "PYTHONPATH": str(source / "src")}
    subprocess.run([sys.executable, *arguments], env=there, check=True, stdout=subprocess.DEVNULL)


def measured(source: Path, command: list[str], database: Path) -> dict[str, float]:
    """Seconds of one command, of the processor and of the clock."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    python(source, "-c", _PROGRAM, *command, "--database", str(database))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu_s": round(cpu, 2), "s": round(time.perf_counter() - began, 2)}


def measure(source: Path, sizes: list[int], kinds: list[str], names: list[str]) -> list[dict[str, Any]]:
    """All commands on all databases."""
    found = []
    for n in sizes:
        for kind in kinds:
            with tempfile.TemporaryDirectory() as place:
                database = Path(place) / "pages.db"
                python(source, str(Path(__file__).with_name("open_databases.py")), str(database), str(n), kind)
                for name, command in commands(n, Path(place)).items():
                    if name in names:
                        copy = shutil.copy(database, Path(place) / "copy.db") if name == "add" else database
                        row = {"pages": n, "kind": kind, "command": name, **measured(source, command, Path(copy))}
                        print(row, flush=True)
                        found.append(row)
    return found


def plot(results: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Processor time against the number of pages, one panel per command."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names = list(commands(1, Path()))
    figure, panels = plt.subplots(1, len(names), figsize=(3.2 * len(names), 3.4), sharey=True, layout="constrained")
    for panel, name in zip(panels, names, strict=True):
        for color, kind in enumerate(KINDS):
            for label, style in (("before", ":"), ("after", "-")):
                rows = [r for r in results.get(label, []) if r["command"] == name and r["kind"] == kind]
                if rows:
                    points = sorted((r["pages"], r["cpu_s"]) for r in rows)
                    panel.plot(*zip(*points, strict=True), style, color=f"C{color}", marker="o", markersize=3,
                               label=f"{kind}, {label}")  # fmt: skip
        panel.set(title=name, xscale="log", yscale="log", xlabel="pages")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("processor time (s)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=8)
    figure.savefig(path, dpi=110)


def merged(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with the newest measurement of each case."""
    rows = {(row["pages"], row["kind"], row["command"]): row for row in [*old, *new]}
    return [rows[key] for key in sorted(rows)]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--commands", nargs="+", default=list(commands(1, Path())))
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    parser.add_argument("--before", type=Path, help="Another checkout to measure.")
    given = parser.parse_args()
    if given.smallest:
        measure(HERE, [100], list(KINDS)[:1], ["status"])
        return
    source, label = (given.before, "before") if given.before else (HERE, "after")
    path = RESULTS / "open.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    found = measure(source, given.pages, given.kinds, given.commands)
    results[label] = merged(results.get(label, []), found)
    path.write_text(json.dumps(results, indent=1) + "\n")
    plot(results, RESULTS / "open.png")


if __name__ == "__main__":
    main()
