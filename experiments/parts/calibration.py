"""Does the engine mean what it says? Chances of a change foretold and found, staleness believed and true.

On recorded traces: ten bins of the foretold chance per trace and budget, over all crawls; the engine's own staleness,
looked at a hundred times in 182 days, beside the simulated truth. Writes calibration.json, calibration.png and
CALIBRATION.md.

    python experiments/parts/calibration.py --data FOLDER
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from ablation import ALL, DAYS, TRACES
from numpy.typing import NDArray

from recrawl.engine import Engine
from recrawl.engine.folders import folders
from recrawl.simulate.policies import admit_unknown, learning, parts_of
from recrawl.simulate.run import Contender, simulate
from recrawl.simulate.sources import Recorded, live_pages
from recrawl.simulate.trace import Trace

HERE = Path(__file__).parent
SHARES = (0.02, 0.05, 0.2)
WINDOW = "2022-08-01"
LOOKS = 100


def run(trace: Trace, share: float, pages: float) -> dict[str, Any]:
    """One engine on one trace: what it foretold and believed, what it found and what was true."""
    held: list[Engine] = []
    make = learning(**parts_of(ALL))

    def keep(trace: Trace, budget: float, rng: np.random.Generator) -> Engine:
        held.append(make(trace, budget, rng))
        return held[0]

    stale, weight, next_look = 0.0, 0.0, 0.0

    def look(done: float) -> None:
        nonlocal stale, weight, next_look
        if done < next_look:
            return
        next_look = done + 1.0 / LOOKS
        engine, ids = held[0], held[0].ids()
        importance = engine.pages(ids).importance
        stale += float((importance * (1.0 - engine.fresh(ids, engine.now))).sum())
        weight += float(importance.sum())

    found = simulate(Contender("learned", keep, admit_unknown), trace, share * pages / trace.day, progress=look)
    bins = held[0].parts.arrays.reliability
    error = error_of(trace, found.page_staleness)
    return {"believed": stale / weight, "true": found.staleness, "error": error, "bins": bins.tolist()}


def error_of(trace: Trace, staleness: NDArray[np.float64]) -> float:
    """Standard error of the true staleness if folders are drawn at random: how much of it is chance."""
    assert trace.url is not None
    _, folder = np.unique([folders(str(url))[-1] for url in trace.url], return_inverse=True)
    weight = trace.importance * np.maximum(trace.deleted_at - np.maximum(trace.created_at, trace.start), 0.0)
    mean = float(np.average(staleness, weights=weight))
    return float(np.sqrt((np.bincount(folder, weight * (staleness - mean)) ** 2).sum()) / weight.sum())


def within(row: dict[str, Any]) -> bool:
    """Whether the belief is as near to the truth as it was meant to be."""
    return bool(abs(row["believed"] - row["true"]) <= max(0.002, 0.15 * row["true"]))


def write(results: dict[str, dict[str, Any]], out: Path) -> None:
    """CALIBRATION.md and calibration.png."""
    lines = [
        "# What the engine foretells and believes",
        "",
        f"All parts, 182 days from {WINDOW}, cold. `python experiments/parts/calibration.py --data FOLDER` makes this",
        "file. Aim: believed staleness within max(0.002, 15%) of the truth. ± is a standard error of the truth, if the",
        "folders were drawn at random. Reliability: over the crawls of a bin, the chance of a change foretold → found.",
        "",
        "![Foretold and found chances of a change, per trace](calibration.png)",
        "",
        "| trace, budget | believed | true | within | foretold → found, bins with 50 crawls and more |",
        "|---|---|---|---|---|",
    ]
    for name, row in results.items():
        bins = "; ".join(f"{p / n:.2f} → {k / n:.2f}" for p, n, k in row["bins"] if n >= 50)
        ok = "yes" if within(row) else "**no**"
        lines.append(f"| {name} | {row['believed']:.4f} | {row['true']:.4f} ± {row['error']:.4f} | {ok} | {bins} |")
    lines += [
        "",
        "Where it is not within, the belief is too low, for pages that turn out to change: in the quarter of the pages",
        "(by importance) that was crawled most in the end, dotnet-docs at 2% is stale 0.030 of the time and believed",
        "to be 0.0085, ota-contrib at 20% 0.034 and 0.023; in the quarter crawled least the belief is too high,",
        "0.0075 for 0.0018 and 0.0071 for 0.0038. Pages that begin to change are believed quiet until crawls find it.",
    ]
    (out / "CALIBRATION.md").write_text("\n".join(lines) + "\n")
    draw(results, out / "calibration.png")


def draw(results: dict[str, dict[str, Any]], path: Path) -> None:
    """One panel per trace, one line per budget."""
    from matplotlib.figure import Figure

    traces = list(dict.fromkeys(name.split(", ")[0] for name in results))
    figure = Figure(figsize=(3.4 * len(traces), 3.6), dpi=110, layout="constrained")
    for axes, trace in zip(figure.subplots(1, len(traces), squeeze=False)[0], traces, strict=True):
        axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        for name, row in results.items():
            told = [(p / n, k / n, np.sqrt(max(k / n * (1 - k / n), 0.0) / n)) for p, n, k in row["bins"] if n >= 50]
            if name.startswith(f"{trace}, ") and told:
                foretold, found, error = zip(*told, strict=True)
                axes.errorbar(foretold, found, yerr=error, marker="o", markersize=3, label=name.split(", ")[1])
        axes.set_title(trace, fontsize=9)
        axes.set_xlabel("chance of a change foretold")
    figure.axes[0].set_ylabel("found")
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Software": None})


def main() -> None:
    """Run every trace and budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the recorded traces")
    parser.add_argument("--out", type=Path, default=HERE)
    given = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    for name in TRACES:
        if not (given.data / name).is_dir():
            print(f"there is no folder {given.data / name}, left out")
            continue
        source = Recorded(given.data / name, DAYS, 0.0, WINDOW)
        trace = source.trace(np.random.default_rng(0))
        pages = live_pages(source, trace)
        for share in SHARES:
            results[f"{name}, {share:.0%} per day"] = row = run(trace, share, pages)
            print(name, share, f"believed {row['believed']:.4f} true {row['true']:.4f}", flush=True)
    if results:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "calibration.json").write_text(json.dumps(results, indent=1) + "\n")
        write(results, given.out)


if __name__ == "__main__":
    main()
