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
PAGES = 100


def poisson_trace(days: float, end: float, rng: np.random.Generator) -> Trace:
    """Pages that change every so many days on average."""
    count = rng.poisson(end / days, PAGES)
    offset = np.concatenate([[0], np.cumsum(count)])
    changed_at = np.concatenate([np.sort(rng.uniform(0.0, end, n)) for n in count])
    return Trace(0.0, end, offset=offset, changed_at=changed_at)


def measure(name: str, days: float, begin: float, end: float, seed: int = 1) -> tuple[float, float]:
    """Mean freshness, and mean interval × change rate, at the system's own demand, counted from ``begin``."""
    trace = poisson_trace(days, end, np.random.default_rng(seed))
    run = simulate(rival(name, day=1.0), trace, None, count_from=begin)
    return run.freshness, (end - begin) * PAGES / run.requests / days


def from_start(name: str, days: float) -> tuple[float, float]:
    """With the time in which the first interval is unlearned: 2000 days, or 200 changes if that is longer.

    The length behind the expected values is not recorded; this one was chosen to fit them.
    """
    return measure(name, days, 0.0, max(2000.0, 200.0 * days))


def settled(name: str, days: float) -> tuple[float, float]:
    """Without it: from day 1000 on, or from 200 changes on."""
    begin = max(1000.0, 200.0 * days)
    return measure(name, days, begin, 10.0 * begin)


def main() -> None:
    """Measure, print, write."""
    rows = []
    sys.stdout.write(f"{'system':18}{'days':>5}   expected    from start     settled\n")
    for name, expected in EXPECTED.items():
        for days, aim in zip(DAYS, expected, strict=True):
            started, steady = from_start(name, days), settled(name, days)
            figures = {"expected": aim, "from_start": started, "settled": steady}
            rows.append({"system": name, "days": days} | {k: [round(x, 3) for x in v] for k, v in figures.items()})
            texts = (f"{aim[0]:.2f} {aim[1]:.2f}", *(f"{f:.3f} {r:.3f}" for f, r in (started, steady)))
            sys.stdout.write(f"{name:18}{days:5g}   {'   '.join(texts)}\n")
    Path(__file__).with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
