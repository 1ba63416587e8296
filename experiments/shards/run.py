"""How much freshness is lost when pages are divided among shards that each plan alone; writes JSON and a plot.

Two populations of 50,000 pages: each page on a host of its own with change rate and importance uniform on [0, 1], and
1,000 hosts of very unequal size (the k-th has a share ∝ 1/k of the pages) whose pages resemble each other: both columns
are multiplied by a factor per host, lognormal with σ = 1. Budget: 0.1 crawls per page and time.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from recrawl import Pages, solve
from recrawl.schedule import shard_loss, shard_of

HERE = Path(__file__).parent
N_PAGES, N_HOSTS, PER_PAGE = 50_000, 1_000, 0.1
SHARDS = [1, 2, 4, 8, 16, 32, 64, 128]
SPLITS = ("equal", "pages", "threshold")
LABELS = ("the same for each shard", "by pages", "equal thresholds (below 1e-12, drawn at 1e-9)")
SEEDS = range(3)


def random_hosts(rng: np.random.Generator) -> Pages:
    """Every page on a host of its own."""
    return Pages(rng.random(N_PAGES), rng.random(N_PAGES), host=np.arange(N_PAGES))


def unequal_hosts(rng: np.random.Generator) -> Pages:
    """Few large hosts, many small ones, pages of a host alike."""
    share = 1 / np.arange(1, N_HOSTS + 1)
    host = rng.choice(N_HOSTS, N_PAGES, p=share / share.sum())
    change, importance = rng.lognormal(0.0, 1.0, (2, N_HOSTS))
    return Pages(rng.random(N_PAGES) * change[host], rng.random(N_PAGES) * importance[host], host=host)


def measure(pages: Pages, n_shards: int) -> dict[str, Any]:
    """Loss of freshness under every split, and the budget with which one scheduler would be as fresh."""
    budget = PER_PAGE * len(pages)
    shard = shard_of(pages.host, n_shards)
    row: dict[str, Any] = {"largest_shard": int(np.bincount(shard).max())}
    for split in SPLITS:
        found = shard_loss(pages, shard, budget, split)
        wasted = 1 - solve(pages, target=found.split).spent / budget
        row[split] = {"freshness": found.split, "loss": found.loss, "wasted_budget": wasted}
        row["one"] = found.one
    return row


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation over the seeds."""
    result: dict[str, Any] = {"one": float(np.mean([row["one"] for row in rows]))}
    result["largest_shard"] = float(np.mean([row["largest_shard"] for row in rows]))
    for split in SPLITS:
        for name in ("loss", "wasted_budget"):
            values = [row[split][name] for row in rows]
            result[f"{split}_{name}"] = {"mean": float(np.mean(values)), "sd": float(np.std(values, ddof=1))}
    return result


def plot(results: dict[str, Any]) -> None:
    """Loss over the number of shards."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axis, (name, rows) in zip(axes, results.items(), strict=True):
        for split, label in zip(SPLITS, LABELS, strict=True):
            means = np.array([max(row[f"{split}_loss"]["mean"], 1e-9) for row in rows.values()])
            axis.plot(SHARDS[1:], means[1:], marker="o", label=label)
        axis.set(xscale="log", yscale="log", xlabel="shards", title=name, ylim=(5e-10, 1))
        axis.set_xticks(SHARDS[1:], [str(n) for n in SHARDS[1:]])
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("freshness lost against one scheduler")
    axes[0].legend(title="budget divided", loc="upper left", fontsize="small")
    figure.tight_layout()
    figure.savefig(HERE / "shards.png", dpi=110, metadata={"Software": None})


def main() -> None:
    """Run all, write the figures and the plot."""
    results: dict[str, Any] = {}
    for name, population in (("random hosts", random_hosts), ("unequal hosts", unequal_hosts)):
        rows: dict[int, list[dict[str, Any]]] = {n: [] for n in SHARDS}
        for seed in SEEDS:
            pages = population(np.random.default_rng(seed))
            for n in SHARDS:
                rows[n].append(measure(pages, n))
        results[name] = {str(n): summary(found) for n, found in rows.items()}
    settings = {"pages": N_PAGES, "hosts": N_HOSTS, "budget_per_page": PER_PAGE, "seeds": len(SEEDS)}
    (HERE / "shards.json").write_text(json.dumps({"settings": settings, "results": results}, indent=1) + "\n")
    plot(results)


if __name__ == "__main__":
    main()
