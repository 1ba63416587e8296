"""The drift experiment on seeds that had no part in choosing the defaults of `DriftStream`.

    python experiments/estimate/drift_seeds.py

Writes results/drift_seeds.json: for each crawl rate and jump the smallest and the largest figure over the seeds.
"""

from __future__ import annotations

import json
from pathlib import Path

from loops import drift

SEEDS = range(9101, 9109)
FIGURES = ("median", "rmse", "log_rmse", "rmse_over_oracle", "log_rmse_over_oracle", "rmse_over_true_prior")


def main() -> None:
    """Run every jump on every seed and write the ranges."""
    rows = []
    for ratio in (1.0, 0.5, 1 / 3):
        for factor in (10.0, 0.1, 3.0, 1 / 3, 1.0):
            found = [drift(factor, ratio, seed=seed)["drift"] for seed in SEEDS]
            ranges = {name: [min(f[name] for f in found), max(f[name] for f in found)] for name in FIGURES}
            rows.append({"ratio": ratio, "factor": factor, "seeds": len(SEEDS), **ranges})
    path = Path(__file__).parent / "results" / "drift_seeds.json"
    path.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
