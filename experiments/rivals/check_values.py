"""What the adaptive systems settle at on Poisson pages, beside the values expected of them: a table and a JSON file.

    python experiments/rivals/check_values.py
"""

import json
import sys
from pathlib import Path

import numpy as np

from recrawl.simulate import Trace, simulate
from recrawl.simulate.rivals.registry import rival

DAYS = (0.5, 3.0, 10.0, 60.0)  # mean time between changes
EXPECTED = {  # mean freshness, crawls' mean interval × change rate; for each of DAYS
    "nutch": ((0.52, 1.21), (0.53, 1.18), (0.56, 1.14), (0.64, 0.88)),
    "stormcrawler": ((0.69, 0.61), (0.71, 0.54), (0.73, 0.49), (0.91, 0.20)),
    "commoncrawl-news": ((0.54, 1.25), (0.55, 1.18), (0.56, 1.14), (0.62, 0.94)),
    "heritrix": ((0.64, 0.78), (0.64, 0.78), (0.64, 0.78), (0.82, 0.38)),
    "infomesh": ((0.53, 1.06), (0.67, 0.46), (0.78, 0.26), (0.95, 0.09)),
}
PAGES, CHANGES, WARM_UP = 100, 2000, 0.1


def poisson_trace(days: float, rng: np.random.Generator) -> Trace:
    """Pages that change every so many days on average, CHANGES times each."""
    end = days * CHANGES
    count = rng.poisson(CHANGES, PAGES)
    offset = np.concatenate([[0], np.cumsum(count)])
    changed_at = np.concatenate([np.sort(rng.uniform(0.0, end, n)) for n in count])
    return Trace(0.0, end, offset=offset, changed_at=changed_at)


def measure(name: str, days: float, seed: int = 1) -> tuple[float, float]:
    """Mean freshness, and mean interval × change rate, at the system's own demand."""
    trace = poisson_trace(days, np.random.default_rng(seed))
    begin = WARM_UP * trace.end
    run = simulate(rival(name, day=1.0), trace, None, count_from=begin)
    return run.freshness, (trace.end - begin) * PAGES / run.requests / days


def main() -> None:
    """Measure, print, write."""
    rows = []
    for name, expected in EXPECTED.items():
        for days, (fresh, interval) in zip(DAYS, expected, strict=True):
            found = [round(x, 3) for x in measure(name, days)]
            rows.append({"system": name, "days": days, "found": found, "expected": [fresh, interval]})
            off = max(abs(found[0] - fresh), abs(found[1] - interval))
            sys.stdout.write(
                f"{name:18}{days:6g}   {found[0]:.3f} {found[1]:.3f}   {fresh:.2f} {interval:.2f}   {off:.3f}\n"
            )
    Path(__file__).with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
