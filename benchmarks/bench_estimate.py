"""How fast estimation is, beside the naive twin (scipy root finding per page), and what it keeps in memory.

python benchmarks/bench_estimate.py [--pages 1000000] [--output benchmarks/results]

Writes estimate.json and estimate.png. One process, one thread; compilation is not counted; best of several rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from naive import estimate as naive

from recrawl.estimate import (
    DriftStream,
    GammaPrior,
    Observations,
    QualityStream,
    RateStream,
    estimate_change_rate,
)

CRAWLS = 98


def best_of(rounds: int, call: Callable[[], object]) -> float:
    """Shortest of several timings, in seconds of processor time: what else runs on the machine counts for less."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def histories(n: int, kind: str, rng: np.random.Generator) -> Observations:
    """n pages with 98 crawls: rates lognormal (median .17 per day), gaps distinct or whole days 1 … 7."""
    m = n * CRAWLS
    interval, changed = np.empty(m), np.empty(m, bool)
    for first in range(0, n, 20_000):
        last = min(n, first + 20_000)
        rows = slice(first * CRAWLS, last * CRAWLS)
        rate = np.repeat(np.exp(rng.normal(np.log(0.17), 0.5, last - first)), CRAWLS)
        size = len(rate)
        if kind == "distinct":
            interval[rows] = rng.exponential(1.0, size)
        else:
            often = rng.random(size) < 0.7
            interval[rows] = np.where(often, 1.0, rng.integers(2, 8, size))
        changed[rows] = rng.random(size) < -np.expm1(-rate * interval[rows])
    return Observations(np.arange(n + 1) * CRAWLS, interval, changed)


def batch(n: int, kind: str, rounds: int, sample: int = 1000) -> dict[str, Any]:
    """The MLE of n pages, and the twin's time and answers on a sample of them."""
    seen = histories(n, kind, np.random.default_rng(0))
    estimate_change_rate(seen[np.arange(10)], "mle", level=None)
    found = estimate_change_rate(seen, "mle", level=None).change_rate
    ours = best_of(rounds, lambda: estimate_change_rate(seen, "mle", level=None)) / n
    pages = [slice(seen.offset[i], seen.offset[i + 1]) for i in range(sample)]
    answers = [naive.mle(seen.interval[p], seen.changed[p]) for p in pages]
    twin = best_of(6 * rounds, lambda: [naive.mle(seen.interval[p], seen.changed[p]) for p in pages]) / sample
    error = float(np.max(np.abs(found[:sample] / np.array(answers) - 1)))
    return {
        "gaps": kind,
        "pages": n,
        "crawls_per_page": CRAWLS,
        "microseconds_per_page": ours * 1e6,
        "twin_microseconds_per_page": twin * 1e6,
        "times_faster": twin / ours,
        "largest_relative_difference": error,
        "seconds_for_all": ours * n,
        "bytes_per_page_input": 9 * CRAWLS + 8,
    }


def others(n: int, kind: str, rounds: int) -> list[dict[str, Any]]:
    """Time per page of the estimates with intervals."""
    seen = histories(n, kind, np.random.default_rng(1))
    rows = []
    for method in ("mle", "smoothed", "posterior", "regular", "naive"):
        call = lambda m=method: estimate_change_rate(seen, m, prior=GammaPrior(0.5, 2.0), day=1.0)  # noqa: E731
        call()
        rows.append(
            {
                "gaps": kind,
                "method": method,
                "with_intervals": True,
                "microseconds_per_page": best_of(rounds, call) / n * 1e6,
            }
        )
    return rows


def streams(n: int, rounds: int) -> list[dict[str, Any]]:
    """Updates per second, one crawl per page in random order of pages, and bytes of state per page."""
    rng = np.random.default_rng(2)
    ids, interval, changed = rng.permutation(n), rng.exponential(1.0, n), rng.random(n) < 0.4
    signals = rng.poisson(0.5, (n, 1))
    prior = GammaPrior(0.8, 2.0)
    made: list[tuple[str, Any, tuple[Any, ...]]] = [
        ("RateStream", RateStream(prior, n), ()),
        ("RateStream with half-life", RateStream(prior, n, half_life=30.0), ()),
        ("DriftStream", DriftStream(prior, n), ()),
        ("QualityStream, 1 source", QualityStream.from_quality([0.5], 0.3, n), (signals,)),
    ]
    rows = []
    for name, stream, more in made:
        for _ in range(5):  # compiles, and gives every page some history: the first crawls are cheaper
            stream.update(ids, interval, changed, *more)
        seconds = best_of(rounds, lambda s=stream, m=more: s.update(ids, interval, changed, *m))
        size = sum(v.nbytes for v in stream.state().values() if isinstance(v, np.ndarray) and len(v) == n)
        rows.append(
            {"stream": name, "pages": n, "million_updates_per_second": n / seconds / 1e6, "bytes_per_page": size / n}
        )
    return rows


def draw(results: dict[str, Any], path: Path) -> None:
    """Bars of time per page against the twin, and of updates per second."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    names = [f"{row['gaps']} gaps\n{row['times_faster']:.0f} times faster" for row in results["batch"]]
    place = np.arange(len(names))
    for shift, key, label, colour in (
        (-0.2, "twin_microseconds_per_page", "naive twin (scipy)", "#bbbbbb"),
        (0.2, "microseconds_per_page", "recrawl", "#4477aa"),
    ):
        values = [row[key] for row in results["batch"]]
        bars = left.bar(place + shift, values, 0.38, label=label, color=colour)
        left.bar_label(bars, [f"{v:.3g} µs" for v in values], fontsize=8)
    left.set(yscale="log", xticks=place, xticklabels=names, ylim=(0.05, 500))
    left.set(ylabel="µs per page of 98 crawls", title="Batch MLE")
    left.legend(frameon=False)
    speeds = [row["million_updates_per_second"] for row in results["streams"]]
    labels = [f"{row['stream']}\n{row['bytes_per_page']:.0f} bytes/page" for row in results["streams"]]
    right.axvline(5, color="#999999", linestyle="--", zorder=0)
    right.bar_label(right.barh(labels, speeds, color="#aa3377"), [f" {s:.1f}" for s in speeds])
    right.set(xlabel="million updates per second, one core (dashed: 5)", xlim=(0, max(speeds) * 1.15))
    right.set_title(f"Streaming, {results['streams'][0]['pages']:,} pages in random order")
    right.invert_yaxis()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run everything and write the results."""
    parser = argparse.ArgumentParser(description="Time the estimators.")
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--smallest", action="store_true", help="only whether it runs; nothing is written")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    if options.smallest:
        print(batch(1000, "distinct", 1), streams(1000, 1))
        return
    options.output.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {
        "machine": {"cores": os.cpu_count(), "processor": platform.machine(), "python": platform.python_version()},
        "threads_used": 1,
        "batch": [batch(options.pages, kind, options.rounds) for kind in ("distinct", "whole-day")],
        "with_intervals": [row for kind in ("distinct", "whole-day") for row in others(options.pages // 100, kind, 3)],
        "streams": streams(options.pages, options.rounds),
    }
    (options.output / "estimate.json").write_text(json.dumps(results, indent=1) + "\n")
    draw(results, options.output / "estimate.png")
    for row in results["batch"]:
        print(
            f"MLE, {row['gaps']}: {row['microseconds_per_page']:.3f} µs per page, {row['times_faster']:.0f} x the twin"
        )
    for row in results["streams"]:
        print(f"{row['stream']}: {row['million_updates_per_second']:.1f} M/s, {row['bytes_per_page']:.0f} B per page")


if __name__ == "__main__":
    main()
