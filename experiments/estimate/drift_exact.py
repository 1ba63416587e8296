"""What the exact filter makes of a jump: does `DriftStream` lose by its three hypotheses or by what it reports?

    python experiments/estimate/drift_exact.py

The filter holds the probability of every rate on a fine grid and believes of jumps what `DriftStream` believes, both
directions at every crawl. It merges nothing and drops nothing. Writes results/drift_exact.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from loops import drift
from numpy.typing import NDArray
from worlds import outcomes

Array = NDArray[np.float64]

LN_RATE = np.linspace(np.log(1e-4), np.log(1e3), 100)
RATE = np.exp(LN_RATE)
HAZARD = 1 - 2 ** (-1 / 80)
REPORTS: dict[str, Callable[[Array], Array]] = {
    "mean": lambda chance: np.asarray(chance @ RATE),
    "geometric": lambda chance: np.exp(chance @ LN_RATE),
}


def gamma_on_grid(shape: float, mean: Array) -> Array:
    """Probability of every rate of the grid under a gamma, one row per page."""
    times = RATE / mean[:, None]
    chance = times**shape * np.exp(-shape * times)
    return np.asarray(chance / chance.sum(axis=1, keepdims=True))


def exact(report: str, factor: float, ratio: float, n: int, seed: int, before: int = 100, after: int = 20) -> Array:
    """Estimates over the new rate, 20 crawls after the jump."""
    rng = np.random.default_rng(seed)
    chance = gamma_on_grid(0.35, np.ones(n))
    for crawl in range(before + after):
        estimate = REPORTS[report](chance)
        interval = ratio / estimate
        changed = outcomes(rng, np.full(n, 1.0 if crawl < before else factor), interval)
        jumped = gamma_on_grid(1.0, 4 * estimate) / 8 + gamma_on_grid(1.0, estimate / 4) * 7 / 8
        quiet = np.exp(-RATE * interval[:, None])
        chance = ((1 - HAZARD) * chance + HAZARD * jumped) * np.where(changed[:, None], 1 - quiet, quiet)
        chance /= chance.sum(axis=1, keepdims=True)
    return np.asarray(REPORTS[report](chance) / factor)


def main() -> None:
    """Run both reports on every jump and crawl rate."""
    rows = []
    for ratio in (1.0, 0.5, 1 / 3):
        for factor in (10.0, 0.1, 1.0):
            known = drift(factor, ratio)
            ours = {key: known["drift"][key] for key in ("median", "rmse", "rmse_over_oracle")}
            row = {"ratio": ratio, "factor": factor, "pages": 10_000, "drift": ours}
            for report in REPORTS:
                found = exact(report, factor, ratio, 10_000, seed=1)
                rmse = np.sqrt(np.mean((found - 1) ** 2))
                figures = {"median": np.median(found), "rmse": rmse, "rmse_over_oracle": rmse / known["oracle"]["rmse"]}
                row[report] = {name: float(value) for name, value in figures.items()}
            rows.append(row)
    path = Path(__file__).parent / "results" / "drift_exact.json"
    path.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
