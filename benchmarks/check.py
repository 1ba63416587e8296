"""Run every benchmark at its smallest size, one after the other: `python benchmarks/check.py`, or `make bench-check`.

Nothing is written. Kernels are compiled first, however few pages there are. A benchmark that fails ends the run; the
last line says how much processor time all of them took. The one that needs a browser measures nothing where there is
none.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path


def used() -> float:
    """Seconds of processor time of the processes that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def main() -> None:
    os.environ["RECRAWL_COMPILE_FIRST"] = "1"
    for path in sorted(Path(__file__).parent.glob("bench_*.py")):
        before = used()
        done = subprocess.run([sys.executable, str(path), "--smallest"], capture_output=True, text=True)
        print(f"{path.name:20} {used() - before:6.1f} s of processor time", flush=True)
        if done.returncode:
            raise SystemExit(f"{done.stdout}\n{done.stderr}\n{path.name} failed")
    print(f"{'all':20} {used():6.1f} s of processor time")


if __name__ == "__main__":
    main()
