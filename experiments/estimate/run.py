"""Run the estimation experiments and write their tables and pictures.

python experiments/estimate/run.py [--quick] [--output FOLDER]

Writes results.json, results.md and one PNG per question. Seeded: two runs give the same figures.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from accuracy import bias_and_error, closeness, coverage
from loops import drift, hours_loop
from pictures import draw_all
from signals import appendix_e
from tables import write_tables


def run(quick: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """All figures, and the points the pictures need besides."""
    small = 10 if quick else 1
    figures: dict[str, Any] = {}
    figures["bias"] = bias_and_error(n=4000 // small)
    figures["coverage"] = coverage(n=20_000 // small)
    figures["closeness"] = closeness(n=5000 // small)
    figures["hours_loop"] = [hours_loop(1000.0, 1000 // small), hours_loop(12_000.0, 200 // small)]
    figures["drift"] = [drift(f, r, n=10_000 // small) for r in (1.0, 0.5, 1 / 3) for f in (10.0, 0.1, 1.0)]
    long, points = appendix_e(n=300 // small)
    short, _ = appendix_e(n=2000 // small, horizon=300.0, seed=7)
    figures["appendix_e"] = long + short
    return figures, points


def main() -> None:
    """Parse the options, run, write."""
    parser = argparse.ArgumentParser(description="Run the estimation experiments.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the pages, for a look")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    figures, points = run(options.quick)
    figures["seconds"] = round(time.perf_counter() - start, 1)
    (options.output / "results.json").write_text(json.dumps(figures, indent=1) + "\n")
    write_tables(figures, options.output / "results.md")
    draw_all(figures, points, options.output)


if __name__ == "__main__":
    main()
