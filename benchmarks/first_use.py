"""How long the first use of recrawl takes: with kernels on disk, and with none.

    python benchmarks/first_use.py
    python benchmarks/first_use.py --cold
    python benchmarks/first_use.py --warm

Warm: starts one process per use to fill the cache, then five more; the interpreter's own start is not counted.
Cold: a new folder for kernels each. `run` and `demo` prepare as the commands do before their first decision (a demo
runs in memory for that); "demo after run" finds what `run` left on disk. `engine` is an engine of 5,000 pages from the
import to its first pick. Seconds of the processor, seconds, and how many compilations of how many functions there were.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PREFIX = "import time; t = time.perf_counter(); from recrawl import Pages, Scheduler, solve; "
USES = {
    "crawl_value": "from recrawl.model import crawl_value; crawl_value(Pages(1.0, recall=0.5, false_rate=0.3), 1.0, 1)",
    "solve": "solve(Pages([1.0, 2.0]), 1.0)",
    "solve_noisy": "solve(Pages([1.0, 2.0], recall=0.5, false_rate=0.3), 1.0)",
    "scheduler": "Scheduler(Pages([1.0, 2.0])).pick(1.0, 1)",
}
COLD = {
    "run": "from recrawl.crawl.run.opening.warming import warm_up; warm_up()",
    "demo": "import asyncio; from recrawl.demo.live import warm_up; asyncio.run(warm_up())",
    "engine": """
from recrawl import Engine
engine = Engine(1.0)
engine.add([f"https://h{k % 50}.example/{k}" for k in range(5000)], 0.0, importance=[1.0 + k for k in range(5000)])
engine.pick(0.0, 1)
""",
}
COUNTED = """
import json, time
began = time.perf_counter()
from numba.core import event

names = []


class Listener(event.Listener):
    def on_start(self, event):
        names.append(event.data["dispatcher"].py_func)

    def on_end(self, event):
        pass


event.register("numba:compile", Listener())
{use}
passed = round(time.perf_counter() - began, 1)
found = {{"cpu_s": round(time.process_time(), 1), "s": passed}}
print(json.dumps({{**found, "compilations": len(names), "functions": len(set(names))}}))
"""


def output(code: str, **environment: str) -> str:
    """What a process of its own prints last."""
    given = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=given)
    return done.stdout.splitlines()[-1]


def warm() -> dict[str, Any]:
    report = {}
    for name, use in USES.items():
        code = f"{PREFIX}{use}; print(time.perf_counter() - t)"
        output(code)
        runs = [round(float(output(code)), 3) for _ in range(5)]
        report[name] = {"best": min(runs), "worst": max(runs)}
    return report


def cold() -> dict[str, Any]:
    report: dict[str, Any] = {}
    for uses in (("run", "demo"), ("demo",), ("engine",)):
        with tempfile.TemporaryDirectory() as folder:
            for name in uses:
                found = json.loads(output(COUNTED.format(use=COLD[name]), NUMBA_CACHE_DIR=folder))
                report[name if name == uses[0] else f"{name} after {uses[0]}"] = found
                print(name, found, flush=True)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cold", action="store_true", help="only without kernels on disk")
    parser.add_argument("--warm", action="store_true", help="only with kernels on disk")
    given = parser.parse_args()
    file = Path(__file__).parent / "results" / "first_use.json"
    report = json.loads(file.read_text())
    if not given.cold:
        report |= warm()
    if not given.warm:
        report["without_kernels"] = cold()
    print(json.dumps(report, indent=1))
    file.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
