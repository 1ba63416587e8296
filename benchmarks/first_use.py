"""How long the first use of a compiled kernel takes in a fresh process once the kernels are on disk.

    python benchmarks/first_use.py

Starts one process per use to fill the cache, then five more; the interpreter's own start is not counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PREFIX = "import time; t = time.perf_counter(); from recrawl import Pages, Scheduler, solve; "
USES = {
    "crawl_value": "from recrawl.model import crawl_value; crawl_value(Pages(1.0, recall=0.5, false_rate=0.3), 1.0, 1)",
    "solve": "solve(Pages([1.0, 2.0]), 1.0)",
    "solve_noisy": "solve(Pages([1.0, 2.0], recall=0.5, false_rate=0.3), 1.0)",
    "scheduler": "Scheduler(Pages([1.0, 2.0])).pick(1.0, 1)",
}


def seconds(use: str) -> float:
    code = f"{PREFIX}{use}; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def main() -> None:
    report = {}
    for name, use in USES.items():
        seconds(use)
        runs = [round(seconds(use), 3) for _ in range(5)]
        report[name] = {"best": min(runs), "worst": max(runs)}
    print(json.dumps(report, indent=1))
    (Path(__file__).parent / "results" / "first_use.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
